package service_test

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// gauges returns the values of a gauge or counter by its first label.
func gauges(t *testing.T, m *metrics.Metrics, name string) map[string]float64 {
	t.Helper()
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	values := map[string]float64{}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, one := range f.GetMetric() {
			values[one.GetLabel()[0].GetValue()] = one.GetGauge().GetValue() + one.GetCounter().GetValue()
		}
	}
	return values
}

// storedTasks is the oracle of the backlog: every stored task, read one by one and decoded.
func storedTasks(r *rig) (count, small, large float64) {
	r.t.Helper()
	s, err := r.js.Stream(r.ctx, "BTN_TASK")
	r.must(err)
	for at := s.CachedInfo().State.FirstSeq; at <= s.CachedInfo().State.LastSeq; at++ {
		m, err := s.GetMsg(r.ctx, at)
		if err != nil {
			continue // acknowledged
		}
		var task message.Task
		r.must(wire.Decode(m.Data, &task))
		if count++; task.Cost > 1e6 {
			large += task.Cost
		} else {
			small += task.Cost
		}
	}
	return count, small, large
}

// The backlog follows from the stream's contents: right while no contract-worker runs, and zero when all
// is done. A worker's measurements reach aggregators that start after it has gone.
func TestBacklog(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{}, calm)
	c := calm
	c.SweepAfter = time.Minute
	c.ChunkFlops = 1e6
	c.Metrics = metrics.New(query.StageAggregate)
	r.run(c, query.StageReparam, query.StageLearn, query.StageAggregate)

	const small, large = 12, 5
	jobs := func(round int) {
		for i := range small {
			m, _ := request(t, fmt.Sprintf("small-%d-%d", round, i), grid(t, 3, 3, uint64(i)), query.Settings{})
			m.Tenant = fmt.Sprint("tenant-", i) // several lanes
			r.submit(m)
		}
		for i := range large {
			m, _ := request(t, fmt.Sprintf("large-%d-%d", round, i), grid(t, 14, 14, uint64(i)), query.Settings{})
			r.submit(m)
		}
	}
	stage := query.StageContract
	backlog := func(what string) float64 { return gauges(t, c.Metrics, "basetensor_backlog_"+what)[stage] }

	// No worker: everything waits, at the assumed cost of work.
	jobs(0)
	var count, light, dear float64
	r.eventually("every job has its tasks", func() bool {
		passed := r.messages("BTN_MODEL") == small+large && r.messages("BTN_NETWORK") == 0
		count, light, dear = storedTasks(r) // after the last network has gone, so that none is to come
		return passed && count >= small+large
	})
	r.eventually("the backlog is seen", func() bool { return backlog("messages") == count && backlog("unread_messages") == 0 })
	if dear == 0 || light == 0 {
		t.Fatalf("%v flops of small tasks, %v of others: the models do not serve", light, dear)
	}
	if got, want := backlog("flops"), light+dear; math.Abs(got-want) > 0.005*want {
		t.Errorf("%g flops wait, the tasks say %g", got, want)
	}
	if got, least := backlog("seconds"), dear/3e9; got < 0.99*least || got > least+count*1e-3 {
		t.Errorf("%g s, with nothing measured %g to %g expected", got, least, least+count*1e-3)
	}
	for _, other := range []string{query.StageReparam, query.StageLearn, query.StageAggregate} {
		r.eventually("nothing waits before "+string(other), func() bool {
			n, told := gauges(t, c.Metrics, "basetensor_backlog_messages")[string(other)]
			return told && n == 0
		})
	}

	// A worker does it, and reports its cost.
	worker := c
	worker.Metrics = metrics.New(stage)
	stop, _ := r.run(worker, query.StageContract)
	r.eventually("the backlog is done", func() bool { return backlog("messages") == 0 && backlog("seconds") == 0 })
	r.eventually("the work is counted", func() bool {
		done := gauges(t, worker.Metrics, "basetensor_flops_total")[stage]
		return math.Abs(done-light-dear) < 1e-6*dear
	})
	if gauges(t, worker.Metrics, "basetensor_busy_seconds_total")[stage] <= 0 {
		t.Error("the worker was never busy")
	}
	stop()

	// The worker has gone. An aggregator that starts now knows its measurements.
	jobs(1)
	r.eventually("every job has its tasks", func() bool {
		n, _, _ := storedTasks(r)
		return r.messages("BTN_NETWORK") == 0 && n == count && r.messages("BTN_MODEL") == 2*(small+large)
	})
	perSmall, perFlop := reportedCosts(r)
	late := c
	late.Metrics = metrics.New(query.StageAggregate)
	r.run(late, query.StageAggregate)
	r.eventually("the backlog is seen", func() bool {
		return gauges(t, late.Metrics, "basetensor_backlog_messages")[stage] == count &&
			gauges(t, late.Metrics, "basetensor_backlog_unread_messages")[stage] == 0
	})
	_, _, dear = storedTasks(r)
	lights := count
	for _, cost := range costs(r) {
		if cost > 1e6 {
			lights--
		}
	}
	want := lights*perSmall + dear*perFlop
	if got := gauges(t, late.Metrics, "basetensor_backlog_seconds")[stage]; math.Abs(got-want) > 0.01*want {
		t.Errorf("%g s wait, by what the partials say %g", got, want)
	}
}

// costs lists the costs that the stored tasks state.
func costs(r *rig) (all []float64) {
	s, err := r.js.Stream(r.ctx, "BTN_TASK")
	r.must(err)
	for at := s.CachedInfo().State.FirstSeq; at <= s.CachedInfo().State.LastSeq; at++ {
		if m, err := s.GetMsg(r.ctx, at); err == nil {
			var task message.Task
			r.must(wire.Decode(m.Data, &task))
			all = append(all, task.Cost)
		}
	}
	return all
}

// reportedCosts returns the mean costs of tasks by the partials that state one: seconds per small task,
// and seconds per flop.
func reportedCosts(r *rig) (perSmall, perFlop float64) {
	s, err := r.js.Stream(r.ctx, "BTN_PARTIAL")
	r.must(err)
	var n, k float64
	for at := s.CachedInfo().State.FirstSeq; at <= s.CachedInfo().State.LastSeq; at++ {
		m, err := s.GetMsg(r.ctx, at)
		if err != nil {
			continue
		}
		var seconds, flops float64
		if _, err := fmt.Sscanf(contractSays(m.Header), "%g %g", &seconds, &flops); err != nil {
			continue
		}
		if seconds > 0 {
			perSmall += seconds
			n++
		}
		if flops > 0 {
			perFlop += 1 / flops
			k++
		}
	}
	if n == 0 || k == 0 {
		r.t.Fatalf("%v partials say what small tasks cost, %v what others do", n, k)
	}
	return perSmall / n, perFlop / k
}

// contractSays returns contract-worker's entry in a partial's header.
func contractSays(h nats.Header) string {
	_, after, _ := strings.Cut(h.Get("Btn-Work"), query.StageContract+" ")
	return after
}
