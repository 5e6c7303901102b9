package service_test

import (
	"testing"

	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// conflicts is how often an output differed from an earlier one of the same work.
func conflicts(t *testing.T, m *metrics.Metrics) (n float64) {
	t.Helper()
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == "basetensor_conflicts_total" {
			for _, c := range f.GetMetric() {
				n += c.GetCounter().GetValue()
			}
		}
	}
	return n
}

// clean checks that no outputs differed, and that there are no dead letters.
func (r *rig) clean(m *metrics.Metrics) {
	r.t.Helper()
	if n := conflicts(r.t, m); n != 0 {
		r.t.Errorf("%v outputs differed", n)
	}
	if n := r.messages("BTN_DLQ"); n != 0 {
		r.t.Errorf("%d dead letters", n)
	}
}

// Every stage may run twice on the same input: nothing changes, and nothing is found to differ.
func TestEveryStageTwice(t *testing.T) {
	r := newRig(t, embedded.Options{}, quick)
	_, p := request(
		t, "twice", grid(t, 3, 3, 6),
		query.Settings{Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius},
	)
	want, err := infer.Run(r.ctx, p)
	r.must(err)
	w, _ := request(t, "twice", p.Model, p.Settings)
	c := quick
	c.Metrics = metrics.New()
	stop, _ := r.run(c, query.StageReparam)
	r.submit(w)
	r.eventually("a network", func() bool { return r.messages("BTN_NETWORK") == 1 })
	lane := wire.Lane("")
	again := &message.Redrive{Job: "twice"}
	r.send(message.RedriveSubject(lane, "twice"), again) // its network is still there
	r.eventually("the redrive is done", func() bool { return r.messages("BTN_CONTROL") == 0 })
	stop()
	s, err := r.js.Stream(r.ctx, "BTN_NETWORK")
	r.must(err)
	network, err := s.GetLastMsgForSubject(r.ctx, message.NetworkSubject(lane, "twice"))
	r.must(err)

	stop, _ = r.run(c, query.StageLearn)
	r.eventually(
		"a task",
		func() bool { return r.messages("BTN_TASK") == 1 && r.messages("BTN_NETWORK") == 0 },
	)
	// learned again, out of the cache this time, while its task is still there
	r.publish(network.Subject, network.Data)
	r.eventually(
		"the network is learned again", func() bool { return r.messages("BTN_NETWORK") == 0 },
	)
	stop()

	r.run(c, allStages()...)
	first := plain(t, r.wait("twice").Results)
	if want := plain(t, want); first != want {
		t.Errorf("got\n%s\nwant\n%s", first, want)
	}
	r.publish(network.Subject, network.Data)
	r.send(message.RedriveSubject(lane, "twice"), again)
	r.eventually("all is disposed of", func() bool {
		return r.messages("BTN_NETWORK")+r.messages("BTN_TASK")+r.messages("BTN_CONTROL") == 0
	})
	if last := plain(t, r.wait("twice").Results); last != first {
		t.Errorf("the answer changed from\n%s\nto\n%s", first, last)
	}
	r.clean(c.Metrics)
}

// A partial of a plan that was lost and replaced by another is deleted: a job is answered by one plan.
func TestPlansOfOneJob(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, calm)
	w, p := request(t, "mixed", grid(t, 2, 2, 1), seeded(1, 2))
	want, err := infer.Run(r.ctx, p)
	r.must(err)
	c := calm
	c.ChunkFlops = 1
	stop, _ := r.run(c, query.StageReparam, query.StageLearn)
	r.submit(w)
	r.eventually("the tasks", func() bool { return r.messages("BTN_TASK") == 2 })
	stop()

	lane := wire.Lane("")
	s, err := r.js.Stream(r.ctx, "BTN_TASK")
	r.must(err)
	stored, err := s.GetLastMsgForSubject(r.ctx, message.TaskSubject(lane, "mixed", 2, 1))
	r.must(err)
	var task message.Task
	r.must(wire.Decode(stored.Data, &task))
	r.send(message.PartialSubject(lane, "mixed", 2, 1), &message.Partial{
		Job:         "mixed",
		Digest:      task.Digest,
		JobBlob:     wire.Digest([]byte("another plan")),
		K:           1,
		N:           2,
		NumericKind: message.NumericKind(),
		Values:      []btn.UnitValue{{Unit: task.Units[0]}},
	})
	r.run(c, allStages()...)
	if got, want := plain(t, r.wait("mixed").Results), plain(t, want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
