package service_test

// Streams much smaller than the jobs that pass through them.

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// narrow is little room, in which answers are kept for a second.
var narrow = func() config {
	c := quick
	c.SweepAfter, c.MaxBytes, c.KeepAtLeast = 100*time.Millisecond, 6<<20, time.Second
	return c
}()

// overReal is a rig on a real nats-server in place of the embedded one.
func overReal(t *testing.T, c config) *rig {
	t.Helper()
	server := testserver.NATS(t, testserver.NATSOptions{Config: "../../../deploy/nats-server.conf"})
	ctx, cancel := context.WithTimeout(t.Context(), guard)
	t.Cleanup(cancel)
	nc, _, err := bus.Connect(server.URL, "test", logger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	r := &rig{t: t, ctx: ctx, nc: nc, url: server.URL}
	r.must(setUp(ctx, nc, c))
	r.js, err = jetstream.New(nc)
	r.must(err)
	r.client, err = client.New(nc, client.Options{})
	r.must(err)
	return r
}

// bytes returns the used bytes of a stream, and their limit.
func (r *rig) bytes(stream string) (used uint64, most int64) {
	r.t.Helper()
	s, err := r.js.Stream(r.ctx, stream)
	r.must(err)
	info := s.CachedInfo()
	return info.State.Bytes, info.Config.MaxBytes
}

// pass sends jobs through the pipeline until so many bytes of models have passed, each with a model of
// its own, waits for every answer and compares it. Refused jobs are submitted again.
func (r *rig) pass(name string, bytes int64, midway func(done float64)) {
	r.t.Helper()
	var sent, jobs, answered atomic.Int64
	var all sync.WaitGroup
	done := r.client
	for sender := range 4 {
		all.Add(1)
		go func() {
			defer all.Done()
			for i := 0; sent.Load() < bytes; i++ {
				w, p := request(
					r.t, fmt.Sprintf("%s-%d-%d", name, sender, i),
					grid(r.t, 4, 4, uint64(i*4+sender)), query.Settings{},
				)
				b, err := wire.Encode(&w)
				if err != nil {
					r.t.Error(err)
					return
				}
				sent.Add(int64(len(b)))
				jobs.Add(1)
				a, err := r.ask(done, w)
				if err != nil {
					r.t.Errorf("%s: %v", w.Job, err)
					return
				}
				want, err := infer.Run(r.ctx, p)
				if err != nil || a.Status != wire.StatusOK ||
					plain(r.t, a.Results) != plain(r.t, want) {
					r.t.Errorf("%s: %v %s %v", w.Job, err, a.Status, a.Error)
				}
				answered.Add(1)
			}
		}()
	}
	if midway != nil {
		for sent.Load() < bytes && r.ctx.Err() == nil {
			midway(float64(sent.Load()) / float64(bytes))
			time.Sleep(time.Millisecond)
		}
	}
	all.Wait()
	if answered.Load() != jobs.Load() {
		r.t.Errorf("%d of %d jobs answered", answered.Load(), jobs.Load())
	}
}

// ask submits a job until it is accepted, and waits for its answer.
func (r *rig) ask(c *client.Client, w wire.Request) (*wire.Answer, error) {
	for {
		_, err := c.Submit(r.ctx, w)
		if err == nil {
			return c.Wait(r.ctx, w.Job)
		}
		if !errors.Is(err, client.ErrFull) || r.ctx.Err() != nil {
			return nil, err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// countAnswers counts the jobs with more than one answer.
func (r *rig) countAnswers() (twice func() int) {
	r.t.Helper()
	var mu sync.Mutex
	answers := map[string]int{}
	sub, err := r.nc.Subscribe("btn.v1.done.>", func(m *nats.Msg) {
		mu.Lock()
		defer mu.Unlock()
		answers[m.Subject]++
	})
	r.must(err)
	r.must(r.nc.Flush())
	return func() int {
		r.must(r.nc.Flush())
		r.must(sub.Drain())
		mu.Lock()
		defer mu.Unlock()
		n := 0
		for _, times := range answers {
			n += min(1, times-1)
		}
		return n
	}
}

// sequence is where a stream has the message of a job.
func (r *rig) sequence(stream, subject string) uint64 {
	r.t.Helper()
	s, err := r.js.Stream(r.ctx, stream)
	r.must(err)
	m, err := s.GetLastMsgForSubject(r.ctx, subject)
	r.must(err)
	return m.Sequence
}

// beginLong submits a job of four chunks, the first of which is held until finish is called, by workers
// with the returned configuration.
func (r *rig) beginLong(
	c config,
) (w wire.Request, want []query.Result, held config, finish func()) {
	r.t.Helper()
	w, p := request(
		r.t, "long", grid(r.t, 4, 4, 1), query.Settings{}, observe(0), observe(1), observe(0, 1),
		observe(1, 1),
	)
	want, err := infer.Run(r.ctx, p)
	r.must(err)
	c.ChunkFlops, c.MaxDeliveries = 1, 1000
	stop, _ := r.run(c, query.StageReparam, query.StageLearn)
	r.submit(w)
	r.eventually(
		"the long job's tasks",
		func() bool { return r.messages("BTN_TASK") == 4 && r.messages("BTN_NETWORK") == 0 },
	)
	stop()
	c.ChunkFlops = 0
	done := make(chan struct{})
	finish = sync.OnceFunc(func() { close(done) })
	r.t.Cleanup(finish)
	return w, want, c.WithHook(func(stage string, s message.Subject) {
		if stage == query.StageContract && s.Job == "long" && s.K == 0 {
			<-done
		}
	}), finish
}

// The room passes, or with BTN_ROOM=1 five times the room, in files and on a real server, while
// aggregators are killed and a job that takes long is under way. Every job is answered once and
// right, the one that takes long too, and the streams stay in their bounds.
func TestWhatIsAnsweredMakesRoom(t *testing.T) {
	t.Parallel()
	times := int64(1)
	if os.Getenv("BTN_ROOM") != "" {
		times = 5
	} else if testing.Short() {
		t.Skip("a thousand jobs through little room, for seconds")
	}
	for name, start := range map[string]func(t *testing.T) *rig{
		"memory": func(t *testing.T) *rig { return newRig(t, embedded.Options{}, narrow) },
		"files":  func(t *testing.T) *rig { return newRig(t, embedded.Options{Dir: t.TempDir()}, narrow) },
		"real":   func(t *testing.T) *rig { return overReal(t, narrow) },
	} {
		t.Run(name, func(t *testing.T) {
			if name != "memory" && !nightly.On() && times == 1 {
				t.Skip("make nightly")
			}
			t.Parallel()
			r := start(t)
			twice := r.countAnswers()
			long, want, c, finish := r.beginLong(narrow)
			subject := wire.ModelSubject(wire.Lane(""), long.Job)
			first := r.sequence("BTN_MODEL", subject)
			r.run(c, query.StageReparam, query.StageLearn, query.StageContract)
			_, kill := r.run(narrow, query.StageAggregate)
			killed := 0.0
			_, most := r.bytes("BTN_MODEL")
			r.pass("many", times*most, func(done float64) {
				for _, stream := range []string{"BTN_MODEL", "BTN_PARTIAL", "BTN_ANSWER", "BTN_BLOB"} {
					if used, most := r.bytes(stream); int64(used) > most {
						t.Errorf("%s holds %d of %d bytes", stream, used, most)
					}
				}
				if done > killed+0.2 {
					killed = done
					kill()
					_, kill = r.run(narrow, query.StageAggregate)
				}
			})
			if last := r.sequence("BTN_MODEL", subject); last == first {
				t.Errorf("the long job's model is where it was, at %d", first)
			}
			finish()
			if a := r.wait(long.Job); a.Status != wire.StatusOK ||
				plain(t, a.Results) != plain(t, want) {
				t.Errorf("the long job: %s %v", a.Status, a.Error)
			}
			if n := twice(); n > 0 {
				t.Errorf("%d jobs were answered twice", n)
			}
		})
	}
}

// Answers are kept for as long as was promised while streams are emptied for younger ones, and a
// job that is submitted again meanwhile is not done again.
func TestAnswersStayForTheirTime(t *testing.T) {
	t.Parallel()
	c := narrow
	c.KeepAtLeast = 2 * time.Second
	r := newRig(t, embedded.Options{NoRedis: true}, c)
	twice := r.countAnswers()
	r.run(c, allStages()...)
	answers, err := r.js.Stream(r.ctx, "BTN_ANSWER")
	r.must(err)
	shrunk := answers.CachedInfo().Config
	shrunk.MaxBytes = 100_000
	_, err = r.js.UpdateStream(r.ctx, shrunk)
	r.must(err)
	type kept struct {
		w      wire.Request
		stored time.Time
	}
	var all []kept
	for i := 0; ; i++ {
		info, err := answers.Info(r.ctx)
		r.must(err)
		if info.State.Bytes > uint64(shrunk.MaxBytes) {
			t.Fatalf("%d bytes of answers", info.State.Bytes)
		}
		if info.State.FirstSeq > 100 {
			break // a hundred have gone
		}
		w, _ := request(t, fmt.Sprintf("kept-%d", i), grid(t, 2, 2, 1), query.Settings{})
		a, err := r.ask(r.client, w)
		r.must(err)
		if a.Status != wire.StatusOK {
			t.Fatalf("%s: %s %v", w.Job, a.Status, a.Error)
		}
		m, err := answers.GetLastMsgForSubject(r.ctx, wire.AnswerSubject(w.Job))
		r.must(err)
		all = append(all, kept{w, m.Time})
		for _, k := range []int{i, i / 2, max(0, i-7)} {
			old, asked := all[k], time.Now()
			_, err := answers.GetLastMsgForSubject(r.ctx, wire.AnswerSubject(old.w.Job))
			if age := asked.Sub(old.stored); err != nil && age < c.KeepAtLeast {
				t.Errorf("%s: gone at the age of %v: %v", old.w.Job, age, err)
			}
		}
		if _, err := r.client.Submit(r.ctx, w); err != nil && !errors.Is(err, client.ErrFull) {
			t.Errorf("%s, again: %v", w.Job, err)
		}
	}
	if n := twice(); n > 0 {
		t.Errorf("%d jobs were answered twice", n)
	}
}

// As many jobs as are accepted wait before workers come, with room for the networks of some of
// them: all are answered once, and then there is room for more.
func TestFullBacklogDrains(t *testing.T) {
	t.Parallel()
	c := narrow
	c.MaxBytes = 1 << 20
	r := newRig(t, embedded.Options{NoRedis: true}, c)
	twice := r.countAnswers()
	for stream, bytes := range map[string]int64{"BTN_BLOB": 80_000, "BTN_PARTIAL": 80_000, "BTN_ANSWER": 80_000} {
		s, err := r.js.Stream(r.ctx, stream)
		r.must(err)
		shrunk := s.CachedInfo().Config
		shrunk.MaxBytes = bytes
		_, err = r.js.UpdateStream(r.ctx, shrunk)
		r.must(err)
	}
	tenants := tenantsOf(3)
	var refusal error
	var all sync.WaitGroup
	accepted := 0
	for ; refusal == nil; accepted++ {
		i := accepted
		w, p := request(t, fmt.Sprintf("backlog-%d", i), grid(t, 3, 3, uint64(i)), query.Settings{})
		w.Tenant = tenants[i%len(tenants)]
		want, err := infer.Run(r.ctx, p)
		r.must(err)
		if _, refusal = r.client.Submit(r.ctx, w); refusal == nil {
			all.Go(func() {
				if a, err := r.client.Wait(r.ctx, w.Job); err != nil || a.Status != wire.StatusOK ||
					plain(t, a.Results) != plain(t, want) {
					t.Errorf("%s: %+v %v", w.Job, a, err)
				}
			})
		}
	}
	if !errors.Is(refusal, client.ErrFull) || accepted < 50 {
		t.Errorf("%d accepted, then %v", accepted, refusal)
	}
	r.run(c, allStages()...)
	all.Wait()
	if n := twice(); n > 0 {
		t.Errorf("%d jobs were answered twice", n)
	}
	w, _ := request(t, "more", grid(t, 3, 3, 1), query.Settings{})
	if a, err := r.ask(r.client, w); err != nil || a.Status != wire.StatusOK {
		t.Errorf("one more: %+v %v", a, err)
	}
}

// Payloads above the server's max_payload make room piece by piece, as others do.
func TestPiecesMakeRoom(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true, MaxPayload: 12 << 10}, narrow)
	r.run(narrow, allStages()...)
	blobs, err := r.js.Stream(r.ctx, "BTN_BLOB")
	r.must(err)
	most := blobs.CachedInfo().Config.MaxBytes
	passed := uint64(0)
	for i := 0; passed < 2*uint64(most); i++ {
		w, p := request(t, fmt.Sprintf("large-%d", i), grid(t, 10, 10, uint64(i)), query.Settings{})
		a, err := r.ask(r.client, w)
		r.must(err)
		want, err := infer.Run(r.ctx, p)
		r.must(err)
		if a.Status != wire.StatusOK || plain(t, a.Results) != plain(t, want) {
			t.Fatalf("%s: %s %v", w.Job, a.Status, a.Error)
		}
		info, err := blobs.Info(r.ctx)
		r.must(err)
		if info.State.Bytes > uint64(most) {
			t.Errorf("%d of %d bytes", info.State.Bytes, most)
		}
		size := info.State.Bytes / max(1, info.State.Msgs)
		passed = info.State.LastSeq * size
		if i == 5 && len(r.lists()) == 0 {
			t.Fatal("nothing travels in pieces")
		}
	}
}
