package service_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/jobs/service"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	flag.Parse()
	flag.Set("test.parallel", "8")      // these tests wait more than they compute
	workers.SpareHeap(len(allStages())) // one for all tests, which would else clear theirs
	// Putting an object starts a goroutine of the client library that reads a channel which is
	// taken away at the end of the put. Where it comes to that too late it waits for ever (nats.go
	// 1.55, newAsyncReply and CleanupPublisher).
	goleak.VerifyTestMain(
		m,
		goleak.IgnoreAnyFunction(
			"github.com/nats-io/nats.go/jetstream.(*jetStream).resetPendingAcksOnReconnect",
		),
	)
}

// config are the settings of a test's streams, and of its workers.
type config struct {
	settings
	setup
}

type (
	settings = service.Config
	setup    = streams.Config
)

// WithHook returns c with a function that is called before a stage works on a message.
func (c config) WithHook(hook func(stage string, s message.Subject)) config {
	c.Hook = hook
	return c
}

// WithArithmetic returns c for a contract-worker on another processor.
func (c config) WithArithmetic(a *workers.Arithmetic) config {
	c.Arithmetic = a
	return c
}

// WithReplan returns c for a learn-worker that plans by other settings than the jobs'.
func (c config) WithReplan(replan func(query.Settings) query.Settings) config {
	c.Replan = replan
	return c
}

// allStages are the names of all four.
func allStages() []string { return stage.Names() }

// setUp sets up the streams of c.
func setUp(ctx context.Context, nc *nats.Conn, c config) error {
	return streams.Setup(ctx, nc, c.setup)
}

// runWorkers runs the workers of c.
func runWorkers(ctx context.Context, c config, stages ...string) error {
	return service.Run(ctx, c.settings, stages...)
}

// quick shortens the seconds of operation to tenths of a second.
var quick = func() (c config) {
	c.AckWait = time.Second // five of them without a heartbeat are a failure, also of a process that waits for a processor
	c.Heartbeat = 50 * time.Millisecond
	c.SweepAfter = -1
	c.Drain = 5 * time.Second
	return c
}()

// calm is quick for tests of jobs that nothing is wrong with: a busy machine lets a process wait for longer than quick's AckWait, and
// five times of that are a failure. Nor is a slow Redis taken for none.
var calm = func() config {
	c := quick
	c.AckWait = 2 * time.Second
	c.RedisTimeout = guard
	return c
}()

// remembering is calm with a Redis of its own, whose URL is its Redis.
func remembering(t *testing.T) config {
	c := calm
	c.Redis = "redis://" + miniredis.RunT(t).Addr()
	return c
}

// guard is how long a test may take before it is given up: it waits for conditions, and this is no
// measure of any.
const guard = 20 * time.Minute

// rig is an embedded server with a client on it. Workers are started by the tests.
type rig struct {
	t      *testing.T
	ctx    context.Context
	stack  *embedded.Stack // nil: a real server at url
	redis  bool            // the stack has one, which is the cache of workers without another
	url    string
	work   sync.WaitGroup // the workers
	nc     *nats.Conn
	js     jetstream.JetStream
	client *client.Client
}

func newRig(t *testing.T, o embedded.Options, c config) *rig {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), guard)
	o.Setup = pipeline.Streams{
		OneConsumer: c.OneConsumer, MaxBytes: c.MaxBytes, Backlog: c.Backlog, Keep: c.Keep, KeepAtLeast: c.KeepAtLeast, AckWait: c.AckWait,
	}
	s, err := embedded.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, ctx: ctx, stack: s, redis: !o.NoRedis}
	t.Cleanup(func() { cancel(); r.work.Wait(); s.Close() })
	r.nc, err = s.Connect("test")
	r.must(err)
	r.js, err = jetstream.New(r.nc)
	r.must(err)
	r.client, err = client.New(r.nc, client.Options{})
	r.must(err)
	return r
}

func (r *rig) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// logger writes to the test's log with BTN_TEST_LOG set.
func logger() *slog.Logger {
	w := io.Discard
	if os.Getenv("BTN_TEST_LOG") != "" {
		w = os.Stderr
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// run starts workers with a connection of their own. stop drains them; kill takes their connection
// away first.
func (r *rig) run(c config, stages ...string) (stop, kill func()) {
	r.t.Helper()
	var nc *nats.Conn
	var err error
	if r.stack != nil {
		nc, err = r.stack.Connect("worker")
	} else {
		nc, _, err = bus.Connect(r.url, "worker", logger())
	}
	r.must(err)
	c.NC = nc
	if c.Logger == nil {
		c.Logger = logger()
	}
	if r.redis && c.Redis == "" {
		c.RedisClient, c.RedisTimeout = connect.RedisWithin(r.stack.DialRedis), cmp.Or(c.RedisTimeout, connect.OwnRedisTimeout)
	}
	ctx, cancel := context.WithCancel(r.ctx)
	done := make(chan struct{})
	r.work.Go(func() {
		defer close(done)
		runWorkers(ctx, c, stages...)
		nc.Close()
	})
	stop = func() { cancel(); <-done }
	if r.stack == nil { // whose end nobody waits for
		r.t.Cleanup(stop)
	}
	return stop, func() { nc.Close(); cancel(); <-done }
}

func (r *rig) submit(m wire.Request) string {
	r.t.Helper()
	digest, err := r.client.Submit(r.ctx, m)
	r.must(err)
	return digest
}

// wait waits for a job's answer for as long as anything moves.
func (r *rig) wait(job string) *wire.Answer {
	r.t.Helper()
	ctx, cancel := context.WithCancelCause(r.ctx)
	var looks sync.WaitGroup
	looks.Go(func() {
		look := time.NewTicker(stillEvery)
		defer look.Stop()
		for idle := r.idler(); ; {
			select {
			case <-ctx.Done():
				return
			case <-look.C:
			}
			if idle() {
				cancel(errors.New("nothing moves"))
			}
		}
	})
	a, err := r.client.Wait(ctx, job)
	if err != nil {
		err = fmt.Errorf("%s: %w (%w)%s", job, err, context.Cause(ctx), r.stands())
	}
	cancel(nil)
	looks.Wait()
	r.must(err)
	return a
}

// stillEvery is how often it is looked whether anything moves, and stillLooks how often nothing may
// have: a machine that is busy looks more slowly, too, and its late heartbeats are trouble, for a minute of
// which nothing is given up.
const (
	stillEvery = time.Second
	stillLooks = 90
)

// idler returns a function that reports whether nothing has come into any stream or left it in the
// last stillLooks calls. Blobs do not count: workers with nothing to do store one now and then.
func (r *rig) idler() func() bool {
	last, still := "", 0
	return func() bool {
		now := ""
		for _, name := range []string{"BTN_MODEL", "BTN_NETWORK", "BTN_TASK", "BTN_PARTIAL", "BTN_ANSWER", "BTN_DLQ"} {
			if s, err := r.js.Stream(r.ctx, name); err == nil {
				now += fmt.Sprint(s.CachedInfo().State.LastSeq, s.CachedInfo().State.Msgs, " ")
			}
		}
		if still++; now != last {
			last, still = now, 0
		}
		return still >= stillLooks
	}
}

// publish stores a raw message.
func (r *rig) publish(subject string, data []byte) {
	r.t.Helper()
	_, err := r.js.Publish(r.ctx, subject, data)
	r.must(err)
}

func (r *rig) send(subject string, m wire.Message) {
	r.t.Helper()
	b, err := wire.Encode(m)
	r.must(err)
	r.publish(subject, b)
}

// messages returns the number of messages in a stream.
func (r *rig) messages(stream string) uint64 {
	r.t.Helper()
	s, err := r.js.Stream(r.ctx, stream)
	r.must(err)
	return s.CachedInfo().State.Msgs
}

// eventually waits for a condition for as long as anything moves.
func (r *rig) eventually(what string, f func() bool) {
	r.t.Helper()
	idle := r.idler()
	for looked := time.Now(); r.ctx.Err() == nil; time.Sleep(5 * time.Millisecond) {
		if f() {
			return
		}
		if time.Since(looked) > stillEvery {
			if looked = time.Now(); idle() {
				break
			}
		}
	}
	r.t.Fatalf("nothing moves, and not: %s%s", what, r.stands())
}

// stands lists the consumers that have something to deliver, or wait for an acknowledgement.
func (r *rig) stands() (text string) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	streams := r.js.ListStreams(ctx)
	for s := range streams.Info() {
		stream, err := r.js.Stream(ctx, s.Config.Name)
		if err != nil {
			continue
		}
		for c := range stream.ListConsumers(ctx).Info() {
			if c.NumPending > 0 || c.NumAckPending > 0 {
				text += fmt.Sprintf(
					"\n%s %s: %d pending, %d delivered, %d redelivered, %d requests wait", s.Config.Name, c.Name, c.NumPending,
					c.NumAckPending, c.NumRedelivered, c.NumWaiting,
				)
			}
		}
	}
	return text
}

// request returns a wire.Request and the same request for infer.
func request(
	t *testing.T, job string, m *factorgraph.Model, s query.Settings,
	evidence ...factorgraph.Evidence,
) (wire.Request, infer.Request) {
	t.Helper()
	body, err := wire.NewModel(m)
	if err != nil {
		t.Fatal(err)
	}
	w := wire.Request{Job: job, Model: body, Settings: s}
	p := infer.Request{Job: job, Model: m, Settings: s}
	if len(evidence) == 0 {
		evidence = []factorgraph.Evidence{{}}
	}
	for _, e := range evidence {
		w.Queries = append(w.Queries, query.Query{Evidence: e})
		p.Queries = append(p.Queries, query.Query{Evidence: e})
	}
	return w, p
}

// grid is a small Ising model.
func grid(t *testing.T, rows, cols int, seed uint64) *factorgraph.Model {
	t.Helper()
	m, err := generate.Grid(rows, cols, generate.Ising{Delta: 0.5, Seed: seed})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// plain returns the results without the parts that differ from run to run. The JSON of a float64 shows its bits.
func plain(t *testing.T, results []query.Result) string {
	t.Helper()
	out := make([]query.Result, len(results))
	for i, r := range results {
		r.TimingsMS, r.Cache = nil, ""
		out[i] = r
	}
	b, err := json.MarshalIndent(out, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func observe(value ...int) factorgraph.Evidence {
	var e factorgraph.Evidence
	for i, v := range value {
		e.Hard = append(e.Hard, factorgraph.Observation{Var: i, Value: v})
	}
	return e
}

// heavy is a model whose exact contraction takes some tenths of a second.
func heavy(t *testing.T) *factorgraph.Model {
	t.Helper()
	m, err := generate.Complete(25, generate.Ising{Delta: 0.3, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func contextWithCancel(t *testing.T) (context.Context, func()) {
	ctx, cancel := context.WithCancel(t.Context())
	t.Cleanup(cancel)
	return ctx, cancel
}

func withConn(c config, nc *nats.Conn) config {
	c.NC, c.Logger = nc, logger()
	return c
}

// laneConsumer is the consumer of the jobs of no tenant.
func laneConsumer(name string) string { return fmt.Sprintf("%s-%d", name, wire.Lane("")) }
