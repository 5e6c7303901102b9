package service_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// tenantsOf returns names of tenants in different lanes.
func tenantsOf(n int) []string {
	var names []string
	taken := map[int]bool{wire.Lane(""): true}
	for i := 0; len(names) < n; i++ {
		if name := fmt.Sprintf("tenant-%d", i); !taken[wire.Lane(name)] {
			taken[wire.Lane(name)] = true
			names = append(names, name)
		}
	}
	return names
}

// One tenant's flood does not hold up another's job, at no stage.
func TestFairShare(t *testing.T) {
	for i, waits := range []string{"BTN_MODEL", "BTN_NETWORK", "BTN_TASK", "BTN_PARTIAL"} {
		stage := allStages()[i]
		t.Run(string(stage), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, embedded.Options{NoRedis: true}, quick)
			if i > 0 {
				r.run(quick, allStages()[:i]...)
			}
			const flood = 200
			tenants := tenantsOf(2)
			w, _ := request(t, "", grid(t, 2, 2, 1), query.Settings{})
			for i := range flood {
				w.Job, w.Tenant = fmt.Sprintf("flood-%d", i), tenants[0]
				r.submit(w)
			}
			r.eventually(
				"the flood waits before the stage",
				func() bool { return r.messages(waits) == flood },
			)
			w.Job, w.Tenant = "quiet", tenants[1]
			r.submit(w)
			r.eventually(
				"so does the quiet tenant's job",
				func() bool { return r.messages(waits) == flood+1 },
			)
			r.run(quick.WithHook(func(s string, _ message.Subject) {
				if s == stage {
					time.Sleep(10 * time.Millisecond)
				}
			}), allStages()[i:]...)
			r.wait("quiet")
			if n := r.messages("BTN_ANSWER"); n > flood/2 {
				t.Errorf("the quiet tenant's only job was answered after %d of the other's", n-1)
			}
			for i := range flood {
				r.wait(fmt.Sprintf("flood-%d", i))
			}
		})
	}
}

// A worker with a task that takes long keeps none that another could do.
func TestNothingIsHoarded(t *testing.T) {
	t.Parallel()
	patient := quick
	patient.AckWait = time.Minute // nothing comes back by itself
	r := newRig(t, embedded.Options{NoRedis: true}, patient)
	r.run(quick, query.StageReparam, query.StageLearn, query.StageAggregate)
	block := make(chan struct{})
	release := sync.OnceFunc(func() { close(block) })
	t.Cleanup(release) // or a failure would wait for ever
	var blocked atomic.Value
	hook := func(_ string, s message.Subject) {
		if blocked.CompareAndSwap(nil, s.Job) {
			<-block
		}
	}
	for range 2 {
		r.run(quick.WithHook(hook), query.StageContract)
	}
	w, _ := request(t, "", heavy(t), query.Settings{Method: query.MethodExact})
	jobs := []string{}
	for i, tenant := range tenantsOf(5) {
		w.Job, w.Tenant = fmt.Sprintf("dear-%d", i), tenant
		r.submit(w)
		jobs = append(jobs, w.Job)
	}
	r.eventually(
		"four jobs are done while the fifth is held",
		func() bool { return r.messages("BTN_ANSWER") == 4 },
	)
	release()
	for _, job := range jobs {
		if a := r.wait(job); a.Status != wire.StatusOK {
			t.Errorf("%s: %s %v", job, a.Status, a.Error)
		}
	}
}

// A task that takes long does not hold up tasks of milliseconds, though there is one worker only, nor a
// long one of another tenant; of one tenant one is done at a time.
func TestSmallPassesLarge(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	r.run(quick, query.StageReparam, query.StageLearn, query.StageAggregate)
	block := make(chan struct{})
	release := sync.OnceFunc(func() { close(block) })
	t.Cleanup(release)
	begun := make(chan struct{}, 100)
	second := make(chan struct{})
	once := sync.OnceFunc(func() { close(second) })
	var released, early atomic.Bool
	patient := quick
	patient.MaxDeliveries = 1000
	r.run(patient.WithHook(func(_ string, s message.Subject) {
		switch s.Job {
		case "large":
			begun <- struct{}{}
			<-block
		case "second":
			once()
		case "third":
			early.CompareAndSwap(false, !released.Load())
		}
	}), query.StageContract)
	tenants := tenantsOf(3)
	large, _ := request(t, "large", heavy(t), query.Settings{Method: query.MethodExact})
	large.Tenant = tenants[0]
	r.submit(large)
	<-begun
	third := large
	third.Job = "third"
	r.submit(third)
	other := large
	other.Job, other.Tenant = "second", tenants[1]
	r.submit(other)
	for i := range 50 {
		small, _ := request(t, fmt.Sprintf("small-%d", i), grid(t, 2, 2, 1), query.Settings{})
		small.Tenant = tenants[2]
		r.submit(small)
		if a := r.wait(small.Job); a.Status != wire.StatusOK {
			t.Errorf("%s: %s %v", small.Job, a.Status, a.Error)
		}
	}
	<-second
	if early.Load() {
		t.Error("two large ones of one tenant at a time")
	}
	released.Store(true)
	release()
	for _, job := range []string{"large", "second", "third"} {
		r.wait(job)
	}
}

// A lane takes so many jobs and no more, for any load of other lanes; every accepted job is answered.
func TestCrowdedLane(t *testing.T) {
	t.Parallel()
	narrow := quick
	narrow.Backlog = 16
	r := newRig(t, embedded.Options{NoRedis: true}, narrow)
	r.must(setUp(r.ctx, r.nc, quick)) // leaves the bound
	tenants := tenantsOf(2)
	w, _ := request(t, "", grid(t, 2, 2, 1), query.Settings{})
	w.Tenant = tenants[0]
	var accepted []string
	var refusal error
	for i := range 100 {
		w.Job = fmt.Sprintf("crowd-%d", i)
		if _, refusal = r.client.Submit(r.ctx, w); refusal != nil {
			break
		}
		accepted = append(accepted, w.Job)
	}
	if !errors.Is(refusal, client.ErrBusy) || !errors.Is(refusal, client.ErrFull) ||
		fault.CodeOf(refusal) != fault.Infrastructure {
		t.Errorf("refused with %v", refusal)
	}
	if n := len(accepted); n < 8 || n > 16 {
		t.Errorf("%d accepted, at most 16 may wait", n)
	}
	w.Job = accepted[0]
	r.submit(w) // no new job
	w.Job, w.Tenant = "other", tenants[1]
	r.submit(w)
	r.run(quick, allStages()...)
	for _, job := range append(accepted, "other") {
		if a := r.wait(job); a.Status != wire.StatusOK {
			t.Errorf("%s: %s %v", job, a.Status, a.Error)
		}
	}
	w.Job, w.Tenant = "later", tenants[0]
	r.eventually("room", func() bool { _, err := r.client.Submit(r.ctx, w); return err == nil })
	r.wait("later")
}

// More than the stages can take: every accepted job is answered, also where streams are full, and soon;
// the rest is refused.
func TestBackpressure(t *testing.T) {
	t.Parallel()
	narrow := quick
	narrow.Backlog = 32
	narrow.AckWait = 600 * time.Millisecond // five of them have to pass before a busy machine makes a job fail
	r := newRig(t, embedded.Options{NoRedis: true}, narrow)
	for _, name := range []string{"BTN_NETWORK", "BTN_TASK"} {
		s, err := r.js.Stream(r.ctx, name)
		r.must(err)
		c := s.CachedInfo().Config
		c.MaxMsgs = 3
		_, err = r.js.UpdateStream(r.ctx, c)
		r.must(err)
	}
	r.run(narrow.WithHook(func(s string, _ message.Subject) {
		if s == query.StageContract {
			time.Sleep(20 * time.Millisecond) // 200 jobs a second
		}
	}), allStages()...)
	w, _ := request(t, "", grid(t, 2, 2, 1), query.Settings{})
	var wait sync.WaitGroup
	var mu sync.Mutex
	refused, answered, most := 0, 0, 0
	for i := range 400 { // 400 a second
		w.Job = fmt.Sprintf("press-%d", i)
		began := time.Now()
		_, err := r.client.Submit(r.ctx, w)
		switch {
		case errors.Is(err, client.ErrFull):
			refused++
		case err != nil:
			t.Error(err)
		default:
			mu.Lock()
			before := answered
			mu.Unlock()
			wait.Go(func() {
				if a, err := r.client.Wait(r.ctx, fmt.Sprintf("press-%d", i)); err != nil {
					t.Errorf("job %d: %v", i, err)
				} else if a.Status != wire.StatusOK {
					t.Errorf("job %d: %s, %v", i, a.Status, a.Error)
				}
				mu.Lock()
				defer mu.Unlock()
				most = max(most, answered-before)
				answered++
			})
		}
		time.Sleep(time.Until(began.Add(2500 * time.Microsecond)))
	}
	wait.Wait()
	t.Logf("%d answered, %d refused, at most %d before one that was accepted earlier", answered, refused, most)
	if refused == 0 || answered < 50 {
		t.Errorf("%d refused, %d answered", refused, answered)
	}
	// The backlog, the messages that stages hold, and the jobs accepted before the next look at the
	// backlog: 90 to 180. Without a bound the last one waits for some 370.
	if most > 240 {
		t.Errorf("an accepted job waited for %d others", most)
	}
}
