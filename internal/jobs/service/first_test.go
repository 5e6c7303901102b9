package service_test

import (
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// stored reports whether the first answer of a job is.
func (r *rig) stored(job string) bool {
	s, err := r.js.Stream(r.ctx, "BTN_PARTIAL")
	r.must(err)
	_, err = s.GetLastMsgForSubject(r.ctx, message.FirstSubject(job))
	return err == nil
}

// first checks that a job's answer is the value of belief propagation, and says why.
func (r *rig) first(job, why string) {
	r.t.Helper()
	a := r.wait(job)
	if a.Status != wire.StatusOK || len(a.Results) != 1 || a.Error != nil {
		r.t.Fatalf("job %s: %s, %+v", job, a.Status, a.Error)
	}
	result := a.Results[0]
	if result.LogZ == nil || result.Exact || result.Method != query.MethodRegions || result.Bounds == nil || result.Job != job ||
		!slices.ContainsFunc(result.Warnings, func(w string) bool {
			return strings.Contains(w, "belief propagation only") && strings.Contains(w, why)
		}) {
		r.t.Errorf("job %s: %+v", job, result)
	}
}

// hung is c for a planner that never returns before the test ends.
func hung(t *testing.T, c config) config {
	over := make(chan struct{})
	t.Cleanup(func() { close(over) })
	return c.WithReplan(func(s query.Settings) query.Settings {
		<-over
		return s
	})
}

// The planner hangs: the job is answered at its deadline, by the aggregator alone.
func TestThePlannerHangs(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	r.run(hung(t, quick), query.StageReparam, query.StageLearn)
	w, _ := request(t, "late", grid(t, 4, 4, 1), query.Settings{})
	w.DeadlineMS = 5000
	r.submit(w)
	began := time.Now()
	r.eventually("the first answer is stored, or its deadline has passed", func() bool {
		return r.stored("late") || time.Since(began) > 5*time.Second
	})
	r.run(quick, query.StageAggregate)
	r.first("late", "deadline passed at")
}

// Nobody contracts, and whoever does dies or fails: the first answer stands, and of a job without a deadline the error.
func TestTheFirstAnswerStands(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, calm)
	r.run(calm, query.StageReparam, query.StageLearn, query.StageAggregate)
	var mu sync.Mutex
	tries := map[string]int{}
	r.run(calm.WithHook(func(_ string, s message.Subject) {
		mu.Lock()
		tries[s.Job]++
		mu.Unlock()
		panic("poison")
	}), query.StageContract)
	for job, deadline := range map[string]time.Duration{"insured": guard, "not": 0} {
		w, _ := request(t, job, heavy(t), query.Settings{})
		w.DeadlineMS = deadline.Milliseconds()
		r.submit(w)
	}
	r.first("insured", "panic: poison")
	r.failed("not", wire.StatusError, fault.Internal, "panic: poison")
	mu.Lock()
	defer mu.Unlock()
	if tries["insured"] == 0 {
		t.Error("nobody contracted")
	}
}

// A cancel is no failure that the first answer stands for.
func TestACancelStays(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, calm)
	r.run(calm, query.StageReparam, query.StageLearn, query.StageAggregate)
	w, _ := request(t, "cancelled", heavy(t), query.Settings{})
	w.DeadlineMS = guard.Milliseconds()
	r.submit(w)
	r.eventually("the first answer", func() bool { return r.stored("cancelled") })
	r.must(r.client.Cancel(r.ctx, "cancelled", "nobody wants it"))
	r.failed("cancelled", wire.StatusCancelled, fault.Cancelled, "nobody wants it")
}
