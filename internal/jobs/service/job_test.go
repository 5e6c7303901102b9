package service_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/base/sentence"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/wire"
)

func TestOneIdOneRequest(t *testing.T) {
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	w, _ := request(t, "same", grid(t, 2, 2, 1), query.Settings{})
	digest := r.submit(w)
	explicit := w
	explicit.Settings = query.Settings{}.WithDefaults()
	if again := r.submit(explicit); again != digest { // the same request, its defaults written out
		t.Errorf("digests %s and %s", digest, again)
	}
	other, _ := request(t, "same", grid(t, 2, 2, 2), query.Settings{})
	if _, err := r.client.Submit(r.ctx, other); !errors.Is(err, client.ErrJobTaken) ||
		fault.CodeOf(err) != fault.BadInput {
		t.Errorf("another model under the same id: %v", err)
	}
	other.Tenant = "somebody else" // in another lane
	if wire.Lane(other.Tenant) == wire.Lane("") {
		t.Fatal("the tenants share a lane")
	}
	if _, err := r.client.Submit(r.ctx, other); !errors.Is(err, client.ErrJobTaken) {
		t.Errorf("another model under the same id in another lane: %v", err)
	}
	r.run(quick, allStages()...)
	if a := r.wait("same"); a.Digest != digest {
		t.Errorf("answer to %s, want %s", a.Digest, digest)
	}
	if again := r.submit(w); again != digest {
		t.Error("submitted again after the answer: another digest")
	}
	// An answer is not replaced, by no publisher.
	b, err := wire.Encode(
		&wire.Answer{
			Job:    "same",
			Digest: digest,
			Status: wire.StatusCancelled,
			Error:  &query.ErrorInfo{Code: fault.Cancelled},
		},
	)
	r.must(err)
	if _, err := r.js.Publish(r.ctx, wire.AnswerSubject("same"), b); err == nil {
		t.Error("a stored answer was replaced")
	}
	if n := r.messages("BTN_MODEL"); n != 1 {
		t.Errorf("%d models", n)
	}
}

// Two requests that got the same id past the client, in two lanes, are not mixed: one is answered,
// the other a dead letter.
func TestRequestsAreNotMixed(t *testing.T) {
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	digests := map[string]string{}
	for lane, seed := range map[int]uint64{1: 1, 2: 2} {
		w, p := request(
			t, "twice", grid(t, 3, 3, seed),
			query.Settings{Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Components: 2},
		)
		for i := 0; wire.Lane(w.Tenant) != lane; i++ {
			w.Tenant = fmt.Sprint("tenant", i)
		}
		want, err := infer.Run(r.ctx, p)
		r.must(err)
		digest, err := w.Digest()
		r.must(err)
		digests[digest] = plain(t, want)
		r.send(wire.ModelSubject(lane, "twice"), &w)
	}
	r.run(quick, allStages()...)
	a := r.wait("twice")
	if want := digests[a.Digest]; want == "" || plain(t, a.Results) != want {
		t.Errorf("answer to %s:\n%s\nwant\n%s", a.Digest, plain(t, a.Results), want)
	}
	r.eventually(
		"the other request is a dead letter", func() bool { return r.messages("BTN_DLQ") > 0 },
	)
	if letters, err := r.client.DeadLettersOf(r.ctx, "twice"); err != nil ||
		letters[0].Error.Code != fault.BadInput {
		t.Errorf("%+v %v", letters, err)
	}
}

func TestDeadline(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	// No contract-worker: the job cannot end but by its deadline.
	r.run(quick, query.StageReparam, query.StageLearn, query.StageAggregate)
	w, _ := request(t, "late", grid(t, 2, 2, 1), query.Settings{Method: query.MethodExact}) // no estimate is an answer
	w.DeadlineMS = 700
	began := time.Now()
	r.submit(w)
	r.failed("late", wire.StatusDeadline, fault.Deadline, "passed") // a learn-worker says so where it comes too late
	if took := time.Since(began); took < 600*time.Millisecond {
		t.Errorf("a deadline of 700 ms took %v", took)
	}
	r.run(quick, query.StageContract)
	r.eventually("the task is disposed of", func() bool { return r.messages("BTN_TASK") == 0 })
	if n := r.messages("BTN_PARTIAL"); n != 0 {
		t.Errorf("%d chunks were contracted after the deadline", n)
	}
	w.Job, w.DeadlineMS = "in-time", guard.Milliseconds()
	r.submit(w)
	if a := r.wait("in-time"); a.Status != wire.StatusOK {
		t.Errorf("%s %v", a.Status, a.Error)
	}
	w.Job, w.DeadlineMS = "too-far", (1000 * time.Hour).Milliseconds()
	r.submit(w)
	r.failed("too-far", wire.StatusError, fault.BadInput, "kept for")
	w.Job, w.DeadlineMS = "overflow", math.MaxInt64
	b, err := wire.Encode(&w)
	if err == nil {
		r.publish(wire.ModelSubject(0, "overflow"), b)
		r.failed("overflow", wire.StatusError, fault.BadInput, "")
	}
}

// TestDeadlineIsTheTimers: a task that is opened after the deadline does not end its job, for the aggregator may have an estimate,
// though it comes more often than one whose workers die.
func TestDeadlineIsTheTimers(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	r.run(quick, query.StageReparam, query.StageLearn)
	w, _ := request(t, "late", grid(t, 2, 2, 1), query.Settings{Method: query.MethodExact}) // no estimate is an answer
	w.DeadlineMS = 10_000                                                                   // its task is there by then
	r.submit(w)
	began := time.Now() // not earlier: the deadline counts from when the request was stored
	r.eventually("there is a task, and its deadline has passed", func() bool {
		return r.messages("BTN_TASK") > 0 && time.Since(began) > 10_100*time.Millisecond
	})
	r.run(quick, query.StageContract)
	r.eventually("the task is disposed of", func() bool { return r.messages("BTN_TASK") == 0 })
	if n := r.messages("BTN_ANSWER"); n != 0 {
		t.Fatal("the contract-worker has ended the job")
	}
	watching := quick
	watching.SweepAfter = 300 * time.Millisecond
	r.run(watching, query.StageAggregate)
	if a := r.failed("late", wire.StatusDeadline, fault.Deadline, "deadline passed at"); a.Error.Stage != query.StageAggregate {
		t.Errorf("it was ended by %s", a.Error.Stage)
	}
}

// A deadline holds while nobody takes the model up.
func TestDeadlineWithoutWorkers(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	r.run(quick, query.StageAggregate)
	w, _ := request(t, "ignored", grid(t, 2, 2, 1), query.Settings{})
	w.DeadlineMS = 300
	r.submit(w)
	r.failed("ignored", wire.StatusDeadline, fault.Deadline, "deadline passed")
}

// A cancel ends a job at once, while a contraction is under way, and the contraction's task is disposed of.
func TestCancelStopsWork(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	c := quick
	began, ended := make(chan struct{}), make(chan struct{})
	end := sync.OnceFunc(func() { close(ended) })
	t.Cleanup(end)
	r.run(c.WithHook(func(s string, _ message.Subject) {
		if s == query.StageContract {
			close(began)
			<-ended
		}
	}), allStages()...)
	w, _ := request(
		t, "cancelled", heavy(t), query.Settings{Method: query.MethodExact},
		make([]factorgraph.Evidence, 3)...,
	)
	r.submit(w)
	<-began
	r.must(r.client.Cancel(r.ctx, "cancelled", "changed my mind"))
	a := r.failed("cancelled", wire.StatusCancelled, fault.Cancelled, "changed my mind")
	end()
	if len(a.Results) != 0 {
		t.Errorf("results %v", a.Results)
	}
	r.eventually("the task is disposed of", func() bool { return r.messages("BTN_TASK") == 0 })
	r.must(r.client.Cancel(r.ctx, "cancelled", "again"))
	r.must(r.client.Cancel(r.ctx, "never-submitted", ""))
	r.eventually("cancels are disposed of", func() bool { return r.messages("BTN_CONTROL") == 0 })
	if a := r.wait("cancelled"); a.Error.Message != "changed my mind" {
		t.Errorf("the answer changed: %v", a.Error)
	}
}

// A cancel that comes after the answer changes nothing.
func TestCancelAfterTheAnswer(t *testing.T) {
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	r.run(quick, allStages()...)
	r.works("done")
	r.must(r.client.Cancel(r.ctx, "done", ""))
	r.eventually("the cancel is disposed of", func() bool { return r.messages("BTN_CONTROL") == 0 })
	if a := r.wait("done"); a.Status != wire.StatusOK {
		t.Errorf("status %s", a.Status)
	}
}

// The sweeper drives jobs whose messages were lost, from wherever they were.
func TestSweeper(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	w, p := request(t, "lost", grid(t, 3, 3, 3), query.Settings{}, factorgraph.Evidence{}, observe(1))
	want, err := infer.Run(r.ctx, p)
	r.must(err)
	purge := func(name string) {
		s, err := r.js.Stream(r.ctx, name)
		r.must(err)
		r.must(s.Purge(r.ctx))
	}
	sweeping := quick
	sweeping.SweepAfter = 200 * time.Millisecond
	for _, lost := range []string{"BTN_NETWORK", "BTN_TASK", "BTN_PARTIAL"} {
		w.Job = "lost-" + lost
		for i := range want {
			want[i].Job = w.Job
		}
		var stops []func()
		for i, stream := range []string{"BTN_NETWORK", "BTN_TASK", "BTN_PARTIAL"} {
			stop, _ := r.run(quick, allStages()[i])
			stops = append(stops, stop)
			if i == 0 {
				r.submit(w)
			}
			r.eventually("output in "+stream, func() bool { return r.messages(stream) > 0 })
			if stream == lost {
				break
			}
		}
		purge(lost)
		stop, _ := r.run(sweeping, allStages()...)
		if got, want := plain(t, r.wait(w.Job).Results), plain(t, want); got != want {
			t.Errorf("lost from %s: got\n%s\nwant\n%s", lost, got, want)
		}
		stop()
		for _, stop := range stops {
			stop()
		}
		purge("BTN_PARTIAL")
	}
}

// The sweeper sums partials that were acknowledged without an answer.
func TestSweeperSums(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	w, p := request(t, "orphans", grid(t, 3, 3, 3), query.Settings{})
	want, err := infer.Run(r.ctx, p)
	r.must(err)
	for _, s := range allStages()[:3] {
		r.run(quick, s)
	}
	r.submit(w)
	r.eventually("a partial", func() bool { return r.messages("BTN_PARTIAL") == 1 })
	c, err := r.js.Consumer(r.ctx, "BTN_PARTIAL", laneConsumer("aggregate"))
	r.must(err)
	msg, err := c.Next()
	r.must(err)
	r.must(msg.DoubleAck(r.ctx))
	sweeping := quick
	sweeping.SweepAfter = 100 * time.Millisecond
	r.run(sweeping, query.StageAggregate)
	if got, want := plain(t, r.wait("orphans").Results), plain(t, want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// The aggregation is rebuilt from stored messages: after every partial another aggregator takes over,
// some by murder.
func TestAggregatorRestarts(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	_, p := request(
		t, "rebuilt", grid(t, 2, 3, 11),
		query.Settings{Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Components: 6},
	)
	tasks, want := r.tasks(p)
	r.run(quick, query.StageContract)
	for k, m := range tasks {
		stop, kill := r.run(quick, query.StageAggregate)
		r.send(message.TaskSubject(5, m.Job, m.N, m.K), m)
		r.eventually("the partial", func() bool { return r.messages("BTN_PARTIAL") == uint64(k+1) })
		if k == len(tasks)-1 {
			break
		}
		if k%2 == 0 {
			kill()
		} else {
			time.Sleep(30 * time.Millisecond) // listed and acknowledged
			stop()
		}
	}
	if got, want := plain(t, r.wait("rebuilt").Results), plain(t, want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestTwoNumericKinds(t *testing.T) {
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	_, p := request(
		t, "kinds", grid(t, 2, 2, 1),
		query.Settings{Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Components: 2},
	)
	tasks, _ := r.tasks(p)
	if len(tasks) != 2 {
		t.Fatalf("%d tasks, want 2", len(tasks))
	}
	r.run(quick, query.StageContract, query.StageAggregate)
	of := func(k int, kind string) *message.Partial {
		return &message.Partial{
			Job:         "kinds",
			Digest:      tasks[k].Digest,
			JobBlob:     tasks[k].JobBlob,
			K:           k,
			N:           2,
			NumericKind: kind,
			Values:      []btn.UnitValue{{Unit: tasks[k].Units[0]}},
		}
	}
	// Partials of another kind than the youngest are forgotten and recomputed, some times: the kinds of
	// this job never agree.
	other := of(1, "another-processor")
	r.send(message.PartialSubject(0, "kinds", 2, 0), of(0, message.NumericKind()))
	for again := range 4 {
		r.send(message.PartialSubject(0, "kinds", 2, 1-again%2), of(1-again%2, fmt.Sprint("kind-", again)))
		if again == 3 {
			break
		}
		r.eventually("the other partial is forgotten", func() bool { return r.messages("BTN_PARTIAL") == 1 })
	}
	r.failed("kinds", wire.StatusError, fault.Unsupported, sentence.Text(workers.ErrNumericKinds.Error()))
	_, p = request(
		t, "digests", grid(t, 2, 2, 1),
		query.Settings{Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Components: 2},
	)
	tasks, _ = r.tasks(p)
	other.Job, other.NumericKind, other.Digest = "digests", message.NumericKind(), wire.Digest(
		[]byte("another request"),
	)
	r.send(message.PartialSubject(0, "digests", 2, 1), other)
	r.send(message.TaskSubject(0, "digests", 2, 0), tasks[0])
	r.failed("digests", wire.StatusError, fault.BadInput, sentence.Text(workers.ErrDigests.Error()))
}

// Networks and plans above the server's limit travel in pieces, as models do.
func TestOversizedNetwork(t *testing.T) {
	r := newRig(t, embedded.Options{NoRedis: true, MaxPayload: 64 << 10}, quick)
	r.run(quick, allStages()...)
	dims := []int{20, 20, 30} // 96 kB
	table := make([]float64, 12000)
	for i := range table {
		table[i] = 1 + float64(i%7)
	}
	m := &factorgraph.Model{
		Domains: dims,
		Factors: []factorgraph.Factor{
			{Scope: []int{0, 1, 2}, Table: &tensor.Dense{Shape: dims, Data: table}},
		},
	}
	w, p := request(t, "large", m, query.Settings{}, factorgraph.Evidence{}, observe(3))
	want, err := infer.Run(r.ctx, p)
	r.must(err)
	for i, job := range []string{"large", "large-too"} { // the second finds the blobs there
		w.Job = job
		for i := range want {
			want[i].Job = job
		}
		r.submit(w)
		if got, want := plain(t, r.wait(job).Results), plain(t, want); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if n := len(r.lists()); n != 2+i { // the network's, and each request's
			t.Errorf("%d lists of pieces after job %s", n, job)
		}
	}
	again, _ := request(t, "large", m, query.Settings{}, observe(3))
	if _, err := r.client.Submit(r.ctx, again); !errors.Is(err, client.ErrJobTaken) {
		t.Errorf("another large request under the same id: %v", err)
	}
}

// A full stream is distinguished from a taken subject, and work resumes when there is room again.
func TestFullStream(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	limit := func(name string, msgs int64) {
		s, err := r.js.Stream(r.ctx, name)
		r.must(err)
		c := s.CachedInfo().Config
		c.MaxMsgs = msgs
		_, err = r.js.UpdateStream(r.ctx, c)
		r.must(err)
	}
	limit("BTN_MODEL", 1)
	first, p := request(t, "first", grid(t, 2, 2, 1), query.Settings{})
	second, _ := request(t, "second", grid(t, 2, 2, 1), query.Settings{})
	r.submit(first)
	if _, err := r.client.Submit(r.ctx, second); !errors.Is(err, client.ErrFull) ||
		fault.CodeOf(err) != fault.Infrastructure {
		t.Errorf("a full stream: %v", err)
	}
	r.submit(first) // the same job, although the stream is full
	limit("BTN_MODEL", -1)

	r.publish(message.NetworkSubject(0, "filler"), nil)
	limit("BTN_NETWORK", 1)
	patient := quick
	patient.MaxDeliveries = 100
	r.run(patient, query.StageReparam, query.StageContract, query.StageAggregate)
	ctx, cancel := context.WithTimeout(r.ctx, 300*time.Millisecond)
	defer cancel()
	if a, err := r.client.Wait(ctx, "first"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("answered while the network had no room: %v %v", a, err)
	}
	limit("BTN_NETWORK", -1)
	r.run(patient, query.StageLearn)
	want, err := infer.Run(r.ctx, p)
	r.must(err)
	if got, want := plain(t, r.wait("first").Results), plain(t, want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}
