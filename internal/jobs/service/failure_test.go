package service_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// failed waits for the job's answer and checks that it is an error of this code whose message has
// this text.
func (r *rig) failed(job, status string, code fault.Code, text string) *wire.Answer {
	r.t.Helper()
	a := r.wait(job)
	if a.Status != status || a.Error == nil || a.Error.Code != code ||
		!strings.Contains(a.Error.Message, text) {
		r.t.Errorf(
			"job %s: status %s, error %+v; want %s, %s, %q", job, a.Status, a.Error, status, code,
			text,
		)
	}
	return a
}

// works checks that the workers are alive: a job goes through.
func (r *rig) works(job string) {
	r.t.Helper()
	w, p := request(r.t, job, grid(r.t, 2, 2, 1), query.Settings{})
	want, err := infer.Run(r.ctx, p)
	r.must(err)
	r.submit(w)
	if got, want := plain(r.t, r.wait(job).Results), plain(r.t, want); got != want {
		r.t.Errorf("job %s: got\n%s\nwant\n%s", job, got, want)
	}
}

func TestGarbageOnEverySubject(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	r.run(quick, allStages()...)
	garbage := []byte("\xdd\xff\xff\xff\xff")
	for job, subject := range map[string]string{
		"g-model":   wire.ModelSubject(0, "g-model"),
		"g-network": message.NetworkSubject(1, "g-network"),
		"g-task":    message.TaskSubject(2, "g-task", 3, 1),
		"g-partial": message.PartialSubject(3, "g-partial", 4, 2),
	} {
		r.publish(subject, garbage)
		a := r.failed(job, wire.StatusError, fault.BadInput, "malformed")
		letters, err := r.client.DeadLettersOf(r.ctx, job)
		r.must(err)
		if len(letters) != 1 || letters[0].Subject != subject ||
			letters[0].Payload != wire.Digest(garbage) || letters[0].Stage != a.Error.Stage {
			t.Errorf("%s: dead letters %+v", job, letters)
		}
	}
	// Nobody's job ends by garbage where it is only talked about, and no job can be named on a
	// subject without one.
	for _, subject := range []string{
		wire.CancelSubject("g-model2"), message.DeadlineSubject(0, "g-model2"), message.RedriveSubject(
			0, "g-model2",
		),
		wire.Prefix + "task.0.j$b.1.0", wire.Prefix + "partial.0.j$b.1.0",
	} {
		r.publish(subject, garbage)
	}
	r.eventually("three more dead letters", func() bool { return r.messages("BTN_DLQ") == 6 })
	if _, err := r.client.Answer(r.ctx, "g-model2"); !errors.Is(err, client.ErrNotFound) {
		t.Errorf("answer of a job nobody submitted: %v", err)
	}
	r.works("after-garbage")
}

func TestMessageAndSubjectDisagree(t *testing.T) {
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	r.run(quick, allStages()...)
	w, p := request(t, "inside", grid(t, 2, 2, 1), query.Settings{})
	r.send(wire.ModelSubject(0, "outside"), &w)
	r.failed("outside", wire.StatusError, fault.BadInput, "the message says job inside")
	tasks, _ := r.tasks(p)
	tasks[0].Job, tasks[0].N = "chunky", 5
	r.send(message.TaskSubject(0, "chunky", 6, 0), tasks[0])
	r.failed("chunky", wire.StatusError, fault.BadInput, "chunk [0 5]")
	tasks[0].Job, tasks[0].N, tasks[0].Units = "unit", 1, []btn.Unit{{Part: 17}}
	r.send(message.TaskSubject(0, "unit", 1, 0), tasks[0])
	r.failed("unit", wire.StatusError, fault.BadInput, "component 17")
	r.works("after")
}

func TestBadModels(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	r.run(quick, allStages()...)
	asked := []query.Query{{}}
	for job, c := range map[string]struct {
		m    wire.Request
		text string
	}{
		"syntax":   {wire.Request{Text: "MARKOV\n2\n2 x\n", Queries: asked}, "line 3"},
		"evidence": {wire.Request{Text: "MARKOV\n1\n2\n1\n1 0\n2\n1 1\n", Queries: []query.Query{{}, {Evid: "1 0 5"}}}, "query 1"},
	} {
		c.m.Job = job
		r.submit(c.m)
		a := r.failed(job, wire.StatusError, fault.BadInput, c.text)
		if len(a.Results) != len(c.m.Queries) {
			t.Errorf("%s: %d results for %d queries", job, len(a.Results), len(c.m.Queries))
		}
	}
	m := wire.Request{
		Job:      "invalid",
		Text:     "MARKOV\n1\n2\n1\n1 0\n2\n1 1\n",
		Queries:  asked,
		Settings: query.Settings{Maps: "spiral"},
	}
	if _, err := r.client.Submit(r.ctx, m); fault.CodeOf(err) != fault.BadInput ||
		!strings.Contains(err.Error(), "spiral") {
		t.Errorf("invalid settings: %v", err)
	}
	m.Job, m.Settings.Maps = "no.dots*please", ""
	if _, err := r.client.Submit(r.ctx, m); fault.CodeOf(err) != fault.BadInput ||
		!strings.Contains(err.Error(), "no.dots") {
		t.Errorf("invalid id: %v", err)
	}
	r.works("after")
}

// A message that fails every worker ends its job after five deliveries, is kept as a dead letter,
// and can be replayed.
func TestPanicInAStage(t *testing.T) {
	t.Parallel()
	for _, stage := range allStages() {
		t.Run(string(stage), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, embedded.Options{NoRedis: true}, calm)
			var mended atomic.Bool
			var tries atomic.Int32
			c := calm.WithHook(func(s string, subject message.Subject) {
				if s == stage && subject.Job == "poison" && !mended.Load() {
					tries.Add(1)
					panic("poison")
				}
			})
			r.run(c, allStages()...)
			w, p := request(t, "poison", grid(t, 2, 2, 1), query.Settings{})
			r.submit(w)
			r.works("beside") // the worker is alive meanwhile
			a := r.failed("poison", wire.StatusError, fault.Internal, "panic: poison")
			if a.Error.Stage != string(stage) || tries.Load() != 5 {
				t.Errorf("stage %s, %d tries", a.Error.Stage, tries.Load())
			}
			letters, err := r.client.DeadLetters(r.ctx)
			r.must(err)
			if len(letters) != 1 || letters[0].Job != "poison" ||
				letters[0].Stage != string(stage) || letters[0].Deliveries != 5 {
				t.Fatalf("dead letters %+v", letters)
			}
			mended.Store(true)
			r.must(r.client.Replay(r.ctx, "poison"))
			want, err := infer.Run(r.ctx, p)
			r.must(err)
			a = r.wait("poison")
			if got, want := plain(t, a.Results), plain(t, want); got != want {
				t.Errorf("replayed: %s %+v\n%s\nwant\n%s", a.Status, a.Error, got, want)
			}
			if err := r.client.Replay(r.ctx, "poison"); !errors.Is(err, client.ErrNotReplayable) {
				t.Errorf("replay of a job that is answered: %v", err)
			}
			if letters, err := r.client.DeadLetters(r.ctx); err != nil || len(letters) != 0 {
				t.Errorf("dead letters after the replay: %v %v", letters, err)
			}
		})
	}
}

// A message on which worker after worker dies never reaches a handler a sixth time.
func TestWorkersThatDie(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	r.run(quick, query.StageReparam, query.StageLearn, query.StageAggregate)
	w, _ := request(t, "killer", grid(t, 2, 2, 1), query.Settings{})
	r.submit(w)
	for i := range 5 {
		began, die := make(chan struct{}), make(chan struct{})
		var once sync.Once
		_, kill := r.run(
			quick.WithHook(
				func(string, message.Subject) { once.Do(func() { close(began) }); <-die },
			),
			query.StageContract,
		)
		select {
		case <-began:
		case <-r.ctx.Done():
			t.Fatalf("worker %d got nothing", i)
		}
		go func() { time.Sleep(10 * time.Millisecond); close(die) }()
		kill()
	}
	r.run(quick, query.StageContract)
	r.failed("killer", wire.StatusError, fault.Internal, "delivered 5 times")
	r.works("after")
}

// A worker that is killed at work costs time and nothing else.
func TestKilledWorker(t *testing.T) {
	t.Parallel()
	for _, stage := range allStages() {
		t.Run(string(stage), func(t *testing.T) {
			t.Parallel()
			r := newRig(t, embedded.Options{NoRedis: true}, quick)
			for _, s := range allStages() {
				if s != stage {
					r.run(quick, s)
				}
			}
			began, die := make(chan struct{}), make(chan struct{})
			var once sync.Once
			_, kill := r.run(
				quick.WithHook(
					func(string, message.Subject) { once.Do(func() { close(began) }); <-die },
				),
				stage,
			)
			w, p := request(
				t, "survivor", grid(t, 3, 3, 5), query.Settings{}, factorgraph.Evidence{}, observe(1),
			)
			want, err := infer.Run(r.ctx, p)
			r.must(err)
			r.submit(w)
			<-began
			go func() { time.Sleep(10 * time.Millisecond); close(die) }()
			kill()
			r.run(quick, stage)
			if got, want := plain(t, r.wait("survivor").Results), plain(t, want); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if n := r.messages("BTN_ANSWER"); n != 1 {
				t.Errorf("%d answers", n)
			}
		})
	}
}

// Work that takes longer than AckWait is not given to another worker, and a worker does not work
// for ever.
func TestHeartbeatAndCeiling(t *testing.T) {
	t.Parallel()
	c := quick
	c.AckWait = 3 * time.Second // longer than a busy machine delays a heartbeat
	r := newRig(t, embedded.Options{NoRedis: true}, c)
	var runs atomic.Int32
	c.Ceiling = guard
	r.run(c.WithHook(func(s string, subject message.Subject) {
		if s == query.StageContract && subject.Job == "slow" {
			runs.Add(1)
			time.Sleep(3 * c.AckWait)
		}
	}), allStages()...)
	w, _ := request(t, "slow", grid(t, 2, 2, 1), query.Settings{})
	r.submit(w)
	if a := r.wait("slow"); a.Status != wire.StatusOK || runs.Load() != 1 {
		t.Errorf("status %s after %d runs", a.Status, runs.Load())
	}
	c.Ceiling = 100 * time.Millisecond
	r2 := newRig(t, embedded.Options{NoRedis: true}, quick)
	r2.run(c.WithHook(func(s string, _ message.Subject) {
		if s == query.StageContract {
			time.Sleep(3 * c.Ceiling)
		}
	}), allStages()...)
	w, _ = request(
		t, "endless", heavy(t), query.Settings{Method: query.MethodExact}, factorgraph.Evidence{},
		factorgraph.Evidence{}, factorgraph.Evidence{}, factorgraph.Evidence{},
	)
	r2.submit(w)
	r2.failed("endless", wire.StatusError, fault.OverBudget, "ceiling of 100ms")
}

func TestManyJobsAtOnce(t *testing.T) {
	r := newRig(t, embedded.Options{}, quick)
	r.run(quick, allStages()...)
	var wait sync.WaitGroup
	for i := range 100 {
		wait.Go(func() { r.works(fmt.Sprintf("many-%d", i)) })
	}
	wait.Wait()
}
