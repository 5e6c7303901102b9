package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/cache"
	"github.com/basetensor/basetensor/internal/plan"
	"github.com/basetensor/basetensor/internal/pull"
	"github.com/basetensor/basetensor/internal/redact"
	"github.com/basetensor/basetensor/internal/streams"
	"github.com/basetensor/basetensor/pkg/fault"
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
	memo     plan.Memo
	known    *plan.Known
	pairs    *Projectors
	sure     *sure
	inline   *inline
	checked  checked
	ended    ended
	rebuilds rebuilds
	mender   streams.Mender
	floors   floors
	networks *decoded[*btn.Network]
	jobs     *decoded[*btn.Job]
	tallies  *tallies
	shared   shared
	keeper   *streams.Keeper // in an aggregator that sweeps
	next     *bus.Room       // before the next stage, of those that may outrun it
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
	probed := make(chan struct{})
	go func() {
		defer close(probed)
		_ = store.Probe(ctx) // logs at once what would else be logged when the first job comes
	}()
	defer func() { <-probed }()
	watched := make(chan struct{})
	watching, unwatch := context.WithCancel(ctx)
	go func() {
		defer close(watched)
		watchStorage(watching, b, c.Logger, c.Metrics)
	}()
	defer func() { unwatch(); <-watched }()
	memo, sure := memoIn(c, store), &sure{}
	pairs := &Projectors{}
	if c.Redis != "" {
		pairs.Cache = store
	}

	defer spareHeap(len(stages))()
	hard, giveUp := context.WithCancel(context.WithoutCancel(ctx))
	defer giveUp()
	grace := context.AfterFunc(ctx, func() { time.AfterFunc(c.Drain, giveUp) })
	defer grace()

	networks, jobs, known := newDecoded(decodeNetwork), newDecoded(decodeJob), &plan.Known{}
	g, soft := errgroup.WithContext(ctx)
	var ready []func() error
	for _, stage := range stages {
		w := &worker{
			Config: c, stage: stage, bus: b, log: c.Logger.With("stage", string(stage)), hard: hard, soft: soft,
			mender: streams.Mender{Bus: b, Log: c.Logger.With("stage", string(stage))}, cache: store, memo: memo, known: known, pairs: pairs, sure: sure, networks: networks, jobs: jobs, inline: &inline{Entries: keepInline, Bytes: inlineVariables},
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
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) { log.Warn("disconnected from NATS", "error", redact.Error(err, url)) }),
		nats.ReconnectHandler(func(nc *nats.Conn) { log.Info("reconnected to NATS", "url", redact.URL(nc.ConnectedUrl())) }),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { log.Warn("NATS", "error", redact.Error(err, url)) }),
	)
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "pipeline: connect to NATS at %s: %w", redact.URL(url), redact.Error(err, url))
	}
	return nc, nil
}

// run consumes all the intakes of a stage.
func (w *worker) run(intakes []intake) error {
	defer w.tallies.stop()
	all := make([][]string, len(intakes))
	for i, in := range intakes { // all of them before any message is begun: this may fail
		var err error
		if all[i], err = w.found(in.Feed); err != nil {
			return err
		}
	}
	g, ctx := errgroup.WithContext(w.soft)
	for i, in := range intakes {
		g.Go(func() error {
			for {
				err := w.consume(ctx, in, all[i])
				if !errors.Is(err, bus.ErrGone) || ctx.Err() != nil {
					return err
				}
				w.log.Warn("consumers are gone", "error", err)
				w.ended.clear() // their answers may be, too
				if all[i], err = w.found(in.Feed); err != nil {
					return err
				}
			}
		})
	}
	if w.stage == StageReparam {
		g.Go(func() error { return w.serve(ctx) })
	}
	if w.keeper != nil {
		g.Go(func() error { return w.keeper.Watch(ctx) })
	}
	w.log.Info("running", "lanes", w.Lanes)
	return g.Wait()
}

// consume works on the messages of an intake until ctx ends. With a number of messages at a time that was asked for none is heavy.
func (w *worker) consume(ctx context.Context, in intake, consumers []string) error {
	heavy := in.heavy
	if w.Concurrency != 0 {
		heavy = nil
	}
	return pull.Run(ctx, w.bus, pull.Intake{
		Stream:    in.Stream,
		Name:      in.Name,
		Consumers: consumers,
		Prefetch:  in.prefetch,
		Slots:     w.slots(in),
		Patient:   in.patient,
		Heavy:     heavy,
		Room:      in.room,
		Work:      func(d *bus.Delivered, free func()) bool { return w.process(d, in, free) },
		Heartbeat: w.Heartbeat,
		Hard:      w.hard,
		Log:       w.log,
	})
}

// startRetry is the pause after a try to start while the server does not answer.
const startRetry = 200 * time.Millisecond

// ready reports why the stage cannot do its work, or nil.
func (w *worker) ready() error {
	ctx, cancel := context.WithTimeout(w.hard, 2*time.Second)
	defer cancel()
	if err := w.bus.Storage(); err != nil {
		return err
	}
	return streams.Healthy(ctx, w.bus.NC)
}

// startPatience is how long a worker that starts waits for a server that does not answer.
const startPatience = 30 * time.Second

// setupRetry is how often a worker looks, and says, whether streams have been set up.
const setupRetry = 2 * time.Second

// found is consumers, tried again while the server does not answer: it may be restarting. What is missing is made, as the rest is; where
// there is nothing at all the worker waits for somebody to run btn setup, and says so.
func (w *worker) found(f streams.Feed) ([]string, error) {
	for began := now(); ; {
		names, err := w.consumers(w.soft, f)
		pause := startRetry
		if bus.Missing(err) {
			var mended error
			if mended = w.mender.Mend(w.soft); mended == nil {
				if names, err = w.consumers(w.soft, f); bus.Missing(err) {
					return nil, err // lanes are named, and there is one consumer for all
				}
			} else if errors.Is(mended, bus.ErrNoStream) {
				began, pause = now(), setupRetry // until somebody runs btn setup
			}
		}
		if err == nil || w.soft.Err() != nil || now().Sub(began) > startPatience {
			return names, err
		}
		w.log.Warn("cannot start yet", "error", err)
		select {
		case <-w.soft.Done():
		case <-time.After(pause):
		}
	}
}

// consumers returns the names of a feed's durable consumers that this worker serves: those of its lanes if it has any, else the
// one over all lanes or that of every lane, whichever there are.
func (w *worker) consumers(ctx context.Context, f streams.Feed) ([]string, error) {
	s, err := w.bus.Stream(ctx, f.Stream)
	if err != nil {
		return nil, err
	}
	names := []string{f.Name}
	switch {
	case f.Laned && len(w.Lanes) > 0:
		names = f.ConsumerNames(w.Lanes)
	case f.Laned:
		if _, err := s.Consumer(ctx, f.Name); errors.Is(err, jetstream.ErrConsumerNotFound) {
			names = f.ConsumerNames(streams.AllLanes())
		}
	}
	for _, name := range names {
		if _, err := s.Consumer(ctx, name); err != nil {
			return nil, fault.New(fault.Infrastructure, "pipeline: consumer %s of stream %s: %w (has `btn setup` been run, and without --one-consumer if lanes are named?)", name, f.Stream, err)
		}
	}
	return names, nil
}
