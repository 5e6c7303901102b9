package service_test

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// seeded returns settings of a plan of so many parts, each a task of its own.
func seeded(seed uint64, parts int) query.Settings {
	return query.Settings{Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Components: parts, Seed: seed}
}

// planner returns c for a learn-worker that makes every plan by these settings.
func planner(c config, s query.Settings) config {
	c.ChunkFlops = 1
	return c.WithReplan(func(query.Settings) query.Settings { return s })
}

// aside removes the messages on subjects from a stream, and returns them for back.
func (r *rig) aside(stream string, subjects ...string) []*nats.Msg {
	r.t.Helper()
	s, err := r.js.Stream(r.ctx, stream)
	r.must(err)
	var taken []*nats.Msg
	for _, subject := range subjects {
		m, err := s.GetLastMsgForSubject(r.ctx, subject)
		r.must(err)
		taken = append(taken, &nats.Msg{Subject: m.Subject, Header: m.Header, Data: m.Data})
		r.must(s.DeleteMsg(r.ctx, m.Sequence))
	}
	return taken
}

// back publishes the messages from aside, without their headers.
func (r *rig) back(taken []*nats.Msg) {
	r.t.Helper()
	for _, m := range taken {
		_, err := r.js.PublishMsg(r.ctx, &nats.Msg{Subject: m.Subject, Data: m.Data})
		r.must(err)
	}
}

// crash is the point at which a learn-worker ended: the number of stored tasks of its plan, and the number of
// contracted ones among them.
type crash struct{ stored, contracted int }

// After a learn-worker has ended, behind any of its tasks, another makes a different plan, of as many parts or another
// number. The plan of the first task stays.
func TestTheFirstPlanStays(t *testing.T) {
	t.Parallel()
	const parts = 3
	for _, next := range []query.Settings{seeded(2, parts), seeded(2, parts+1), seeded(2, 1)} {
		for _, again := range []bool{false, true} { // begun again, or also delivered again
			t.Run(fmt.Sprintf("%d parts, again %v", next.Components, again), func(t *testing.T) {
				t.Parallel()
				theFirstPlanStays(t, seeded(1, parts), next, again)
			})
		}
	}
}

func theFirstPlanStays(t *testing.T, plan, next query.Settings, again bool) {
	r := newRig(t, embedded.Options{NoRedis: true}, calm)
	lane := wire.Lane("")
	crashes := map[string]crash{}
	for stored := range plan.Components + 1 {
		for contracted := range stored + 1 {
			crashes[fmt.Sprintf("at-%d-%d", stored, contracted)] = crash{stored, contracted}
		}
	}
	task := func(job string, k int) string { return message.TaskSubject(lane, job, plan.Components, k) }

	stop, _ := r.run(calm, query.StageReparam)
	began := time.Now()
	for job := range crashes {
		w, _ := request(t, job, grid(t, 2, 2, 1), query.Settings{Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius})
		r.submit(w)
	}
	r.eventually("the networks", func() bool { return r.messages("BTN_NETWORK") == uint64(len(crashes)) })
	stop()
	var networks, waiting []*nats.Msg
	s, err := r.js.Stream(r.ctx, "BTN_NETWORK")
	r.must(err)
	for job := range crashes {
		m, err := s.GetLastMsgForSubject(r.ctx, message.NetworkSubject(lane, job))
		r.must(err)
		networks = append(networks, &nats.Msg{Subject: m.Subject, Data: m.Data})
	}

	stop, _ = r.run(planner(calm, plan), query.StageLearn)
	r.eventually("the tasks", func() bool {
		return r.messages("BTN_NETWORK") == 0 && r.messages("BTN_TASK") == uint64(len(crashes)*plan.Components)
	})
	stop()

	// Tasks that were not stored before the end are removed, and tasks not contracted by then wait aside.
	for job, at := range crashes {
		for k := at.contracted; k < plan.Components; k++ {
			taken := r.aside("BTN_TASK", task(job, k))
			if k < at.stored {
				waiting = append(waiting, taken...)
			}
		}
	}
	stop, _ = r.run(calm, query.StageContract)
	r.eventually("some tasks are contracted", func() bool { return r.messages("BTN_TASK") == 0 })
	stop()
	r.back(waiting)

	// The next plan differs. By now the jobs are old enough for a lookup of their earlier plan.
	r.eventually("the jobs are not new", func() bool { return time.Since(began) > 3*time.Second })
	c := planner(calm, next)
	c.Metrics = metrics.New()
	if again {
		var begun sync.Map
		c = c.WithHook(func(stage string, s message.Subject) {
			if _, before := begun.LoadOrStore(s.Job, true); stage == query.StageLearn && !before {
				panic("the first delivery comes to its end")
			}
		})
	}
	r.back(networks)
	stop, _ = r.run(c, query.StageLearn)
	r.eventually("the networks are learned again", func() bool { return r.messages("BTN_NETWORK") == 0 })
	stop()
	c = calm
	c.Metrics = metrics.New()
	r.run(c, query.StageContract, query.StageAggregate)

	inProcess := func(by query.Settings) []query.Result {
		_, p := request(t, "", grid(t, 2, 2, 1), by)
		results, err := infer.Run(r.ctx, p)
		r.must(err)
		return results
	}
	first, second := inProcess(plan), inProcess(next)
	for job, at := range crashes {
		want := first
		if at.stored == 0 {
			want = second
		}
		want[0].Job = job
		got, want1 := r.wait(job), plain(t, want)
		if got.Status != wire.StatusOK || plain(t, got.Results) != want1 {
			t.Errorf("%s: %s %v, got\n%s\nwant\n%s", job, got.Status, got.Error, plain(t, got.Results), want1)
		}
	}
	r.clean(c.Metrics)
}

// Two learn-workers have the same networks at the same time, because they send no heartbeats. Their plans differ, and
// every job is answered by one of the possible plans.
func TestTwoPlansAtATime(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	const jobs = 12
	var seed atomic.Uint64
	both := make(chan struct{})
	var come atomic.Int64
	silent := quick
	silent.ChunkFlops = 1
	silent.Heartbeat = time.Hour
	silent.Metrics = metrics.New()
	silent.MaxDeliveries = 1000
	silent = silent.WithReplan(func(query.Settings) query.Settings {
		if come.Add(1) == 2*jobs {
			close(both)
		}
		select {
		case <-both:
		case <-r.ctx.Done():
		}
		n := seed.Add(1)
		return seeded(n%3, 2+int(n%2))
	})
	silent.Concurrency = jobs

	for k := range jobs {
		s := query.Settings{Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius}
		w, _ := request(t, fmt.Sprint("job-", k), grid(t, 2, 2, 1), s)
		r.submit(w)
	}
	stop, _ := r.run(quick, query.StageReparam)
	r.eventually("the networks", func() bool { return r.messages("BTN_NETWORK") == jobs })
	stop()
	for range 2 {
		r.run(silent, query.StageLearn)
	}
	r.eventually("both have all networks", func() bool {
		select {
		case <-both:
			return true
		default:
			return false
		}
	})
	r.run(quick, query.StageReparam, query.StageContract, query.StageAggregate)

	var possible []string
	for n := range uint64(3) {
		for parts := range 2 {
			_, p := request(t, "", grid(t, 2, 2, 1), seeded(n, 2+parts))
			want, err := infer.Run(r.ctx, p)
			r.must(err)
			possible = append(possible, fmt.Sprint(*want[0].LogZ))
		}
	}
	for k := range jobs {
		a := r.wait(fmt.Sprint("job-", k))
		if a.Status != wire.StatusOK || !slices.Contains(possible, fmt.Sprint(*a.Results[0].LogZ)) {
			t.Errorf("job %d: %s, %v %v", k, a.Status, a.Error, a.Results)
		}
	}
	if n := r.messages("BTN_DLQ"); n != 0 {
		t.Errorf("%d dead letters", n)
	}
}
