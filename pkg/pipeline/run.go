package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/cache"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/internal/bus"
	"github.com/basetensor/basetensor/pkg/learn"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// now is the clock of this package. Nothing that is computed depends on it.
func now() time.Time { return time.Now() }

// worker is one stage in one process.
type worker struct {
	Config
	stage    Stage
	bus      *bus.Bus
	log      *slog.Logger
	hard     context.Context // ends when the drain is over: work in progress is given up
	soft     context.Context // ends when Run shall: nothing new is begun
	cache    *cache.Cache
	memo     learn.Memo
	sure     *sure
	networks *decoded[*btn.Network]
	jobs     *decoded[*btn.Job]
	tallies  *tallies
	shared   shared
}

// Run runs one or several stages until ctx ends, then finishes the messages in work and returns nil. It returns an error
// if it cannot start, or if the connection to NATS is closed for good. Setup must have been called once before, by anybody.
func Run(ctx context.Context, c Config, stages ...Stage) error {
	c = c.withDefaults()
	if err := c.check(); err != nil {
		return err
	}
	if len(stages) == 0 {
		return errors.New("pipeline: no stage to run")
	}
	nc := c.NC
	if nc == nil {
		var err error
		if nc, err = Connect(c.URL, "basetensor-"+string(stages[0]), c.Logger); err != nil {
			return err
		}
		defer nc.Close()
	}
	b, err := bus.New(nc)
	if err != nil {
		return err
	}
	store, err := openCache(c, b)
	if err != nil {
		return err
	}
	defer store.Close()
	c.Metrics.watchCache(store)
	memo, sure := memoIn(c, store), &sure{}

	hard, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	grace := context.AfterFunc(ctx, func() { time.AfterFunc(c.Drain, giveUp) })
	defer grace()

	networks, jobs := newDecoded(decodeNetwork), newDecoded(decodeJob)
	g, soft := errgroup.WithContext(ctx)
	var ready []func() error
	for _, stage := range stages {
		w := &worker{
			Config: c, stage: stage, bus: b, log: c.Logger.With("stage", string(stage)), hard: hard, soft: soft,
			cache: store, memo: memo, sure: sure, networks: networks, jobs: jobs,
		}
		w.tallies = newTallies(w)
		intakes := w.intakes()
		if intakes == nil {
			giveUp()
			return fmt.Errorf("pipeline: no stage %q", stage)
		}
		g.Go(func() error { return w.run(intakes) })
		ready = append(ready, w.ready)
	}
	c.Metrics.watch(ready)
	err = g.Wait()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// Connect connects to NATS the way workers want it: it reconnects for ever, and says so in the log.
func Connect(url, name string, log *slog.Logger) (*nats.Conn, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	nc, err := nats.Connect(url, nats.Name(name), nats.MaxReconnects(-1), nats.ReconnectWait(250*time.Millisecond),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { log.Warn("disconnected from NATS", "error", err) }),
		nats.ReconnectHandler(func(nc *nats.Conn) { log.Info("reconnected to NATS", "url", nc.ConnectedUrlRedacted()) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Warn("NATS", "error", err) }),
	)
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "pipeline: connect to NATS at %s: %w", url, err)
	}
	return nc, nil
}

// run consumes all the intakes of a stage.
func (w *worker) run(intakes []intake) error {
	defer w.tallies.stop()
	all := make([][]jetstream.Consumer, len(intakes))
	for i, in := range intakes { // all of them before any message is begun: this may fail
		var err error
		if all[i], err = w.consumers(w.soft, in.feed); err != nil {
			return err
		}
	}
	g, ctx := errgroup.WithContext(w.soft)
	for i, in := range intakes {
		for _, c := range all[i] {
			g.Go(func() error { return w.consume(ctx, c, in) })
		}
	}
	if w.stage == StageReparam {
		g.Go(func() error { return w.serve(ctx) })
	}
	w.log.Info("running", "lanes", w.Lanes)
	return g.Wait()
}

// ready reports why the stage cannot do its work, or nil.
func (w *worker) ready() error {
	ctx, cancel := context.WithTimeout(w.hard, 2*time.Second)
	defer cancel()
	return Healthy(ctx, w.bus.NC)
}

// consumers returns the durable consumers of a feed that this worker serves.
func (w *worker) consumers(ctx context.Context, f feed) ([]jetstream.Consumer, error) {
	s, err := w.bus.Stream(ctx, f.stream)
	if err != nil {
		return nil, err
	}
	names := []string{f.name}
	if f.laned && len(w.Lanes) > 0 {
		names = names[:0]
		for _, lane := range w.Lanes {
			names = append(names, f.consumerName(lane))
		}
	}
	out := make([]jetstream.Consumer, len(names))
	for i, name := range names {
		if out[i], err = s.Consumer(ctx, name); err != nil {
			return nil, fault.New(fault.Infrastructure, "pipeline: consumer %s of stream %s: %w (has `btn setup` been run, with --per-lane if lanes are named?)", name, f.stream, err)
		}
	}
	return out, nil
}

// consume works on the messages of one consumer until ctx ends, then waits for those in work.
func (w *worker) consume(ctx context.Context, c jetstream.Consumer, in intake) error {
	parallel := in.parallel
	if !in.patient {
		parallel = w.concurrency(in.parallel)
	}
	iterators := 1
	if in.prefetch == 1 {
		iterators = parallel
	}
	g, ctx := errgroup.WithContext(ctx)
	for range iterators {
		g.Go(func() error { return w.iterate(ctx, c, in, parallel/iterators) })
	}
	return g.Wait()
}

// iterate shares the messages of one iterator among readers. When all have ended it hands back what was not begun.
func (w *worker) iterate(ctx context.Context, c jetstream.Consumer, in intake, readers int) error {
	it, err := c.Messages(jetstream.PullMaxMessages(in.prefetch))
	if err != nil {
		return fault.New(fault.Infrastructure, "pipeline: consume %s: %w", in.name, err)
	}
	defer handBack(it)
	g, ctx := errgroup.WithContext(ctx)
	for range readers {
		g.Go(func() error { return w.read(ctx, it, in) })
	}
	return g.Wait()
}

// read works on one message after another.
func (w *worker) read(ctx context.Context, it jetstream.MessagesContext, in intake) error {
	for ctx.Err() == nil { // Next would choose at random between a message and the end
		msg, err := it.Next(jetstream.NextContext(ctx))
		switch {
		case err == nil:
			w.process(msg, in)
		case ctx.Err() != nil:
			return nil
		case errors.Is(err, jetstream.ErrMsgIteratorClosed), errors.Is(err, jetstream.ErrConsumerDeleted), errors.Is(err, nats.ErrConnectionClosed):
			return fault.New(fault.Infrastructure, "pipeline: consume %s: %w", in.name, err)
		default:
			w.log.Warn("cannot fetch", "consumer", in.name, "error", err)
			select {
			case <-ctx.Done():
			case <-time.After(200 * time.Millisecond):
			}
		}
	}
	return nil
}

// handBack returns the messages that were fetched and not begun, so that nobody waits for AckWait.
func handBack(it jetstream.MessagesContext) {
	it.Drain()
	for {
		msg, err := it.Next(jetstream.NextMaxWait(time.Second))
		if err != nil {
			it.Stop()
			return
		}
		msg.Nak()
	}
}
