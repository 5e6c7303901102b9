package service_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// hanging is a configuration in which a stage ignores its context on jobs that are called hang-…, until
// release is called. hangs counts the hanging jobs.
func hanging(t *testing.T, c config, stage string) (_ config, release func(), hangs *atomic.Int64) {
	block, hangs := make(chan struct{}), new(atomic.Int64)
	var once sync.Once
	release = func() { once.Do(func() { close(block) }) }
	t.Cleanup(release)
	return c.WithHook(func(s string, subject message.Subject) {
		if s == stage && strings.HasPrefix(subject.Job, "hang") {
			hangs.Add(1)
			<-block
		}
	}), release, hangs
}

// A handler that ignores the end of its context is given up, in every stage: its message is a dead
// letter, its job an error, its slot is free, and its goroutine is counted until it returns. The
// process goes on.
func TestHandlersThatDoNotReturn(t *testing.T) {
	for _, stage := range allStages() {
		t.Run(string(stage), func(t *testing.T) {
			before := hop.LostGoroutines()
			r := newRig(t, embedded.Options{NoRedis: true}, quick)
			c := quick
			c.Ceiling, c.Overdue, c.Concurrency, c.Metrics = 3*time.Second, 100*time.Millisecond, 1, metrics.New()
			var told atomic.Pointer[hop.HungError]
			c.Hung = func(e *hop.HungError) { told.Store(e) }
			c, release, _ := hanging(t, c, stage)
			stop, _ := r.run(c, allStages()...)
			w, _ := request(t, "hang", grid(t, 2, 2, 1), query.Settings{})
			w.Tenant = "ann"
			r.submit(w)
			a := r.failed(
				"hang", wire.StatusError, fault.Internal,
				"did not return within 100ms after its context ended",
			)
			if a.Error.Stage != string(stage) {
				t.Errorf("stage %s", a.Error.Stage)
			}
			letters, err := r.client.DeadLettersOf(r.ctx, "hang")
			r.must(err)
			if len(letters) != 1 || letters[0].Stage != string(stage) ||
				letters[0].Deliveries != 1 || letters[0].Tenant != "ann" {
				t.Errorf("dead letters %+v", letters)
			}
			r.eventually("the process is told", func() bool { return told.Load() != nil })
			e := told.Load()
			if e.Job != "hang" || e.Tenant != "ann" || e.Stage != string(stage) ||
				e.Took < c.Ceiling ||
				fault.CodeOf(e) != fault.Internal || e.Subject != letters[0].Subject {
				t.Errorf("told %+v", e)
			}
			if n := hop.LostGoroutines() - before; n != 1 {
				t.Errorf("%d goroutines are lost", n)
			}
			if n := gathered(t, c.Metrics, "basetensor_hung_total"); n != 1 {
				t.Errorf("%v handlers were given up", n)
			}
			if n := gathered(t, c.Metrics, "basetensor_lost_goroutines"); n != float64(before+1) {
				t.Errorf("%v lost goroutines in the metrics", n)
			}
			r.works("beside") // its only slot is free again
			release()
			r.eventually(
				"the goroutine comes back", func() bool { return hop.LostGoroutines() == before },
			)
			r.works("after")
			stop()
			if n := r.messages("BTN_ANSWER"); n != 3 {
				t.Errorf("%d answers", n)
			}
		})
	}
}

// The end of a worker does not wait for a handler that ignores it.
func TestDrainEndsWhatDoesNotReturn(t *testing.T) {
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	c := quick
	c.Drain, c.Overdue = 50*time.Millisecond, 100*time.Millisecond
	var hung error
	c.Hung = func(e *hop.HungError) { hung = e }
	c, _, hangs := hanging(t, c, query.StageLearn)
	stop, _ := r.run(c, allStages()...)
	w, _ := request(t, "hang", grid(t, 2, 2, 1), query.Settings{})
	r.submit(w)
	r.eventually("it hangs", func() bool { return hangs.Load() == 1 })
	stop()
	var e *hop.HungError
	if !errors.As(hung, &e) || e.Job != "hang" {
		t.Errorf("told %v", hung)
	}
	r.run(quick, query.StageAggregate) // which is asked to end the job
	r.failed("hang", wire.StatusError, fault.Internal, "did not return")
}

// The four-hang test: messages that never end, as many as there are slots and more, hold up no other
// tenant, long before any of them is given up. Nor do heavy tasks, which a worker takes one at a time,
// hold up other heavy ones.
func TestOtherTenantsPassThoseThatHang(t *testing.T) {
	costly, err := generate.Complete(19, generate.Ising{Delta: 0.3, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name  string
		stage string
		model *factorgraph.Model
	}{
		{"reparam", query.StageReparam, grid(t, 2, 2, 1)},
		{"learn", query.StageLearn, grid(t, 2, 2, 1)},
		{"contract", query.StageContract, grid(t, 2, 2, 1)},
		{"contract, heavy", query.StageContract, costly},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			othersPass(t, c.stage, c.model)
		})
	}
}

// othersPass has eight jobs of a tenant hang in a stage, and two of a tenant of every other lane
// answered meanwhile.
func othersPass(t *testing.T, stage string, m *factorgraph.Model) {
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	c, _, _ := hanging(t, quick, stage)
	c.Drain, c.Overdue = 50*time.Millisecond, 50*time.Millisecond
	r.run(c, allStages()...)
	w, p := request(t, "", m, query.Settings{})
	for i := range 8 {
		w.Job, w.Tenant = fmt.Sprintf("hang-%d", i), "mallory"
		r.submit(w)
	}
	want, err := infer.Run(r.ctx, p)
	r.must(err)
	longest := time.Duration(0)
	lanes := map[int]bool{wire.Lane("mallory"): true}
	for i := 0; len(lanes) < wire.Lanes; i++ {
		w.Tenant = fmt.Sprintf("tenant-%d", i)
		if lanes[wire.Lane(w.Tenant)] {
			continue
		}
		lanes[wire.Lane(w.Tenant)] = true
		began := time.Now()
		for _, job := range []string{w.Tenant + "-a", w.Tenant + "-b"} {
			w.Job = job
			r.submit(w)
		}
		for _, job := range []string{w.Tenant + "-a", w.Tenant + "-b"} {
			want[0].Job = job
			a, err := r.client.Wait(r.ctx, job)
			r.must(err)
			if got, want := plain(t, a.Results), plain(t, want); got != want {
				t.Errorf("%s: got\n%s\nwant\n%s", job, got, want)
			}
		}
		longest = max(longest, time.Since(began))
	}
	t.Logf("the longest that two jobs of another tenant took: %v", longest)
	if hop.LostGoroutines() != 0 {
		t.Error("a handler was given up meanwhile: the test shows nothing")
	}
}

// gathered is the sum of a metric over its labels.
func gathered(t *testing.T, m *metrics.Metrics, name string) (sum float64) {
	t.Helper()
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() == name {
			for _, c := range f.GetMetric() {
				sum += c.GetCounter().GetValue() + c.GetGauge().GetValue()
			}
		}
	}
	return sum
}
