package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/micro"
)

// patiently asks again while nobody offers the service yet.
func (r *rig) patiently(m wire.Request) (*wire.Answer, error) {
	for {
		a, err := r.client.Infer(r.ctx, m)
		if err == nil || !strings.Contains(err.Error(), "no reparam-worker offers") ||
			r.ctx.Err() != nil {
			return a, err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// A request has the answer that a job has, bit for bit, by value and by digest; without an id it
// gets one, and under an id it is that job.
func TestRequestAndReply(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	r.run(quick, allStages()...)
	m := grid(t, 3, 3, 7)
	w, p := request(t, "mine", m, query.Settings{}, observe(1), observe(0, 1))
	want, err := infer.Run(r.ctx, p)
	r.must(err)
	digest := r.register(m)
	for _, ask := range []wire.Request{w, w, byDigest(w, digest), byDigest(w, digest)} {
		if ask.ModelDigest != "" {
			ask.Job = ""
		}
		a, err := r.patiently(ask)
		r.must(err)
		if ask.Job != "" && a.Job != ask.Job || !wire.ValidJob(a.Job) {
			t.Errorf("job %q, asked as %q", a.Job, ask.Job)
		}
		for q := range want {
			want[q].Job = a.Job
		}
		if got, want := plain(t, a.Results), plain(t, want); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if stored, err := r.client.Answer(r.ctx, a.Job); err != nil || stored.Digest != a.Digest {
			t.Errorf("the stored answer: %v %v", stored, err)
		}
	}
	if n := r.messages("BTN_MODEL"); n != 3 {
		t.Errorf("%d jobs, want 3: the same id is the same job", n)
	}
	other := w
	other.Queries = other.Queries[:1]
	if _, err := r.client.Infer(r.ctx, other); !errors.Is(err, client.ErrJobTaken) ||
		fault.CodeOf(err) != fault.BadInput {
		t.Errorf("another request under the same id: %v", err)
	}
	// A model that is wrong has an answer that says so, as it has on the job's path.
	a, err := r.client.Infer(r.ctx, wire.Request{Text: "MARKOV x", Queries: []query.Query{{}}})
	if err != nil || a.Status != wire.StatusError || a.Error.Code != fault.BadInput {
		t.Errorf("%+v %v", a, err)
	}
}

// The trace context of a request is its job's.
func TestRequestsPassTheirTraceOn(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	r.run(quick, allStages()...)
	trace := map[string][]string{
		wire.HeaderTraceParent: {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"},
		"Other":                {"x"},
	}
	plain := r.ctx
	r.ctx = client.WithTrace(plain, trace)
	_, err := r.patiently(wire.Request{Job: "traced", Text: coinText, Queries: []query.Query{{}}})
	r.must(err)
	_, err = r.client.Submit(
		r.ctx, wire.Request{Job: "traced-too", Text: coinText, Queries: []query.Query{{}}},
	)
	r.must(err)
	s, err := r.js.Stream(plain, "BTN_MODEL")
	r.must(err)
	for _, job := range []string{"traced", "traced-too"} {
		m, err := s.GetLastMsgForSubject(plain, wire.ModelSubject(wire.Lane(""), job))
		r.must(err)
		if got := m.Header[wire.HeaderTraceParent]; len(got) != 1 ||
			got[0] != trace[wire.HeaderTraceParent][0] || m.Header["Other"] != nil {
			t.Errorf("%s: headers %v", job, m.Header)
		}
	}
}

// Requests that nobody can read are refused, and store nothing.
func TestRequestsThatAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	r.run(quick, allStages()...)
	_, err := r.patiently(wire.Request{Job: "good", Text: coinText, Queries: []query.Query{{}}})
	r.must(err)
	for says, data := range map[string]string{
		"malformed message":                 "nothing",
		"required field is missing":         "\x82\xa1t\xa5model\xa1v\x01",
		"this program reads version 1":      "\x82\xa1t\xa5model\xa1v\x02",
		`a "cancel" where a "model" belong`: "\x82\xa1t\xa6cancel\xa1v\x01",
	} {
		reply, err := r.nc.RequestWithContext(r.ctx, wire.InferSubject, []byte(data))
		r.must(err)
		var u wire.Unanswered
		r.must(wire.Decode(reply.Data, &u))
		if u.Status != wire.StatusRefused || !strings.Contains(u.Error.Message, says) ||
			reply.Header.Get(micro.ErrorCodeHeader) != wire.ReplyBadRequest ||
			!strings.Contains(reply.Header.Get(micro.ErrorHeader), says) {
			t.Errorf("%q: %+v %v", data, u, reply.Header)
		}
	}
	if n := r.messages("BTN_MODEL"); n != 1 {
		t.Errorf("%d models stored", n)
	}
}

// blocked is workers whose contract stage waits until release.
func (r *rig) blocked(c config) (release func()) {
	gate := make(chan struct{})
	release = sync.OnceFunc(func() { close(gate) })
	r.t.Cleanup(release)
	r.run(c.WithHook(func(s string, _ message.Subject) {
		if s == query.StageContract {
			<-gate
		}
	}), allStages()...)
	return release
}

// A request longer than a second continues as a job, whose id is in the reply.
func TestRequestThatTakesLonger(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	release := r.blocked(quick)
	_, err := r.patiently(wire.Request{Text: coinText, Queries: []query.Query{{}}})
	var pending *client.PendingError
	if !errors.As(err, &pending) || !wire.ValidJob(pending.Job) || !form.IsDigest(pending.Digest) ||
		fault.CodeOf(err) != fault.Deadline ||
		!strings.Contains(err.Error(), "no answer within 1s; the job goes on") {
		t.Fatalf("%v", err)
	}
	release()
	if a := r.wait(pending.Job); a.Status != wire.StatusOK || a.Digest != pending.Digest {
		t.Errorf("%+v", a)
	}
	a, err := r.client.Infer(
		r.ctx, wire.Request{Job: pending.Job, Text: coinText, Queries: []query.Query{{}}},
	)
	if err != nil || a.Status != wire.StatusOK {
		t.Errorf("asked again: %v %v", a, err)
	}
}

// A deadline of the message is waited for, and answered as such; a cancel ends a request as it ends
// a job.
func TestDeadlineAndCancelOfRequests(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	r.blocked(quick)
	began := time.Now()
	a, err := r.patiently(
		wire.Request{Job: "hurry", Text: coinText, Queries: []query.Query{{}}, DeadlineMS: 1500},
	)
	if took := time.Since(began); err != nil || a.Status != wire.StatusDeadline ||
		took < 1400*time.Millisecond {
		t.Errorf("%v %v after %v", a, err, took)
	}
	type reply struct {
		a   *wire.Answer
		err error
	}
	came := make(chan reply)
	go func() {
		a, err := r.client.Infer(
			r.ctx,
			wire.Request{
				Job:        "unwanted",
				Text:       coinText,
				Queries:    []query.Query{{}},
				DeadlineMS: 20000,
			},
		)
		came <- reply{a, err}
	}()
	r.eventually("the job is stored", func() bool { return r.messages("BTN_MODEL") == 2 })
	r.must(r.client.Cancel(r.ctx, "unwanted", "nobody wants it"))
	if x := <-came; x.err != nil || x.a.Status != wire.StatusCancelled ||
		x.a.Error.Message != "nobody wants it" {
		t.Errorf("%+v %v", x.a, x.err)
	}
	for ms, want := range map[int64]time.Duration{0: time.Second, 300: 1300 * time.Millisecond, 3600e3: time.Minute, 1 << 60: time.Minute} {
		if got := message.Patience(ms); got != want {
			t.Errorf("a deadline of %d ms: a wait of %v, want %v", ms, got, want)
		}
	}
}

// Many requests at a time are all answered, and leave nothing behind (see TestMain); those above
// the bound are refused at once.
func TestManyRequests(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	stop, _ := r.run(quick, allStages()...)
	w, _ := request(t, "", grid(t, 2, 2, 1), query.Settings{}, observe(1))
	want, err := r.patiently(w)
	r.must(err)
	var wait sync.WaitGroup
	for range 100 {
		wait.Go(func() {
			w := w
			w.DeadlineMS = 50000
			if a, err := r.client.Infer(r.ctx, w); err != nil || a.Status != wire.StatusOK ||
				*a.Results[0].LogZ != *want.Results[0].LogZ {
				t.Errorf("%v %v", a, err)
			}
		})
	}
	wait.Wait()
	reply, err := r.nc.RequestWithContext(r.ctx, "$SRV.STATS.btn", nil)
	r.must(err)
	var stats micro.Stats
	r.must(json.Unmarshal(reply.Data, &stats))
	var data map[string]int64
	at := slices.IndexFunc(stats.Endpoints, func(e *micro.EndpointStats) bool { return e.Subject == "btn.v1.infer" })
	if at >= 0 {
		r.must(json.Unmarshal(stats.Endpoints[at].Data, &data))
	}
	if at < 0 || stats.Endpoints[at].NumRequests != 101 || data["answered"] != 101 || data["waiting"] != 0 {
		t.Errorf("stats: %s", reply.Data)
	}
	reply, err = r.nc.RequestWithContext(r.ctx, "$SRV.INFO.btn", nil)
	r.must(err)
	var info micro.Info
	r.must(json.Unmarshal(reply.Data, &info))
	for _, e := range info.Endpoints {
		if of := e.Metadata["request_schema"]; strings.HasPrefix(e.Name, "infer") && !strings.HasSuffix(of, "/messages/model.schema.json") {
			t.Errorf("endpoint %s has the schema %q", e.Name, of)
		}
	}
	stop()
	if _, err := r.client.Infer(r.ctx, w); err == nil ||
		fault.CodeOf(err) != fault.Infrastructure ||
		!strings.Contains(err.Error(), "no reparam-worker offers btn.v1.infer") {
		t.Errorf("without a worker: %v", err)
	}
	few := quick
	few.Requests = 2
	r.blocked(few)
	full := 0
	var mu sync.Mutex
	for i := range 6 {
		wait.Go(func() {
			_, err := r.patiently(
				wire.Request{
					Job:     fmt.Sprintf("crowd-%d", i),
					Text:    coinText,
					Queries: []query.Query{{}},
				},
			)
			var pending *client.PendingError
			mu.Lock()
			defer mu.Unlock()
			switch {
			case errors.Is(err, client.ErrFull) && strings.Contains(
				err.Error(), "2 requests wait already",
			):
				full++
			case !errors.As(err, &pending):
				t.Errorf("%v", err)
			}
		})
	}
	wait.Wait()
	if full != 4 {
		t.Errorf("%d of 6 refused where 2 may wait", full)
	}
}

// A worker that stops answers the requests it has taken; later ones go to another.
func TestServiceDrains(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	gate := make(chan struct{})
	r.run(
		quick.WithHook(
			func(string, message.Subject) { <-gate },
		), query.StageLearn, query.StageContract,
		query.StageAggregate,
	)
	stop, _ := r.run(quick, query.StageReparam)
	came := make(chan error, 1)
	go func() {
		_, err := r.patiently(
			wire.Request{
				Job:        "taken",
				Text:       coinText,
				Queries:    []query.Query{{}},
				DeadlineMS: 20000,
			},
		)
		came <- err
	}()
	r.eventually("the job is stored", func() bool { return r.messages("BTN_MODEL") == 1 })
	stopped := make(chan struct{})
	go func() { stop(); close(stopped) }()
	select {
	case <-stopped:
		t.Fatal("stopped with a request that waits")
	case err := <-came:
		t.Fatalf("%v", err)
	case <-time.After(100 * time.Millisecond):
	}
	r.run(quick, query.StageReparam)
	close(gate)
	if err := <-came; err != nil {
		t.Error(err)
	}
	<-stopped
	if a, err := r.patiently(wire.Request{Text: coinText, Queries: []query.Query{{}}}); err != nil ||
		a.Status != wire.StatusOK {
		t.Errorf("%v %v", a, err)
	}
}

// Requests and answers above the server's max payload travel by digest, as everywhere.
func TestLargeRequests(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true, MaxPayload: 16 << 10}, quick)
	r.run(quick, allStages()...)
	w, p := request(t, "large", grid(t, 2, 700, 3), query.Settings{}, observe(1))
	w.Queries[0].Marginals, p.Queries[0].Marginals, w.DeadlineMS = true, true, 20000
	want, err := infer.Run(r.ctx, p)
	r.must(err)
	a, err := r.patiently(w)
	r.must(err)
	if got, want := plain(t, a.Results), plain(t, want); got != want {
		t.Error("another answer")
	}
}

// Against a real nats-server: requests by value and by digest, before and after every worker and
// the server were started again.
func TestRequestsOnARealServer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real nats-server")
	}
	t.Parallel()
	server := testserver.NATS(t, testserver.NATSOptions{Config: "../../../deploy/nats-server.conf"})
	nc, _, err := bus.Connect(server.URL, "test", logger())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r := &rig{t: t, ctx: ctx, nc: nc}
	r.must(setUp(ctx, nc, quick))
	r.client, err = client.New(nc, client.Options{})
	r.must(err)
	b, err := bus.New(nc, bus.Options{})
	r.must(err)
	m := grid(t, 3, 3, 7)
	digest := r.register(m)
	w, p := request(t, "", m, query.Settings{}, observe(1), observe(0, 1))
	want, err := infer.Run(ctx, p)
	r.must(err)
	for round := range 3 {
		running, stop := contextWithCancel(t)
		done := make(chan error, 1)
		worker, _, err := bus.Connect(server.URL, "worker", logger())
		r.must(err)
		go func() { done <- runWorkers(running, withConn(quick, worker), allStages()...) }()
		for _, ask := range []wire.Request{w, byDigest(w, digest), byDigest(w, digest)} {
			ask.DeadlineMS = guard.Milliseconds()
			a, err := r.patiently(ask)
			r.must(err)
			for q := range want {
				want[q].Job = a.Job
			}
			if got, want := plain(t, a.Results), plain(t, want); got != want {
				t.Errorf("round %d: %s %v\ngot\n%s\nwant\n%s", round, a.Status, a.Error, got, want)
			}
		}
		stop()
		r.must(<-done)
		worker.Close()
		if round == 1 {
			server.Kill()
			r.must(server.Restart())
			r.eventually(
				"connected again",
				func() bool { return nc.IsConnected() && streams.Healthy(ctx, b.Conn) == nil },
			)
		}
	}
}
