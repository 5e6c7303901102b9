package workers

import (
	"context"
	"errors"
	"time"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/hop"
	"github.com/basetensor/basetensor/internal/pull"
	"github.com/basetensor/basetensor/internal/streams"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// Worker is one stage in one process.
type Worker struct {
	loop        *hop.Loop
	mender      streams.Mender
	lanes       []int // empty: all
	concurrency int
	intakes     []*intake
	beside      []func(context.Context) error // what runs beside the intakes, until its context ends
	gone        func()                        // is called when consumers are gone; nil: nothing is
	stop        func()                        // is called at the end; nil: nothing is
}

// Run consumes all the intakes of the stage until Soft ends.
func (w *Worker) Run() error {
	if w.stop != nil {
		defer w.stop()
	}
	all := make([][]string, len(w.intakes))
	for i, in := range w.intakes { // all of them before any message is begun: this may fail
		var err error
		if all[i], err = w.found(in.Feed); err != nil {
			return err
		}
	}
	g, ctx := errgroup.WithContext(w.loop.Soft)
	for i, in := range w.intakes {
		g.Go(func() error {
			for {
				err := w.consume(ctx, in, all[i])
				if !errors.Is(err, bus.ErrGone) || ctx.Err() != nil {
					return err
				}
				w.loop.Log.Warn("consumers are gone", "error", err)
				if w.gone != nil {
					w.gone()
				}
				if all[i], err = w.found(in.Feed); err != nil {
					return err
				}
			}
		})
	}
	for _, run := range w.beside {
		g.Go(func() error { return run(ctx) })
	}
	w.loop.Log.Info("running", "lanes", w.lanes)
	return g.Wait()
}

// consume works on the messages of an intake until ctx ends. With a number of messages at a time that was asked for none is heavy.
func (w *Worker) consume(ctx context.Context, in *intake, consumers []string) error {
	heavy := in.heavy
	if w.concurrency != 0 {
		heavy = nil
	}
	return pull.Run(ctx, w.loop.Bus, pull.Intake{
		Stream:    in.Stream,
		Name:      in.Name,
		Consumers: consumers,
		Prefetch:  in.prefetch,
		Slots:     in.slots(w.concurrency),
		Patient:   in.Patient,
		Heavy:     heavy,
		Room:      in.room,
		Work:      func(d *bus.Delivered, free func()) bool { return w.loop.Process(d, &in.Intake, free) },
		Heartbeat: w.loop.Heartbeat,
		Hard:      w.loop.Hard,
		Log:       w.loop.Log,
	})
}

// startRetry is the pause after a try to start while the server does not answer.
const startRetry = 200 * time.Millisecond

// Ready reports why the stage cannot do its work, or nil.
func (w *Worker) Ready() error {
	ctx, cancel := context.WithTimeout(w.loop.Hard, 2*time.Second)
	defer cancel()
	if err := w.loop.Bus.Storage(); err != nil {
		return err
	}
	return streams.Healthy(ctx, w.loop.Bus.NC)
}

// startPatience is how long a worker that starts waits for a server that does not answer.
const startPatience = 30 * time.Second

// setupRetry is how often a worker looks, and says, whether streams have been set up.
const setupRetry = 2 * time.Second

// found is consumers, tried again while the server does not answer: it may be restarting. What is missing is made, as the rest is; where
// there is nothing at all the worker waits for somebody to run btn setup, and says so.
func (w *Worker) found(f streams.Feed) ([]string, error) {
	for began := time.Now(); ; {
		names, err := w.consumers(w.loop.Soft, f)
		pause := startRetry
		if bus.Missing(err) {
			var mended error
			if mended = w.mender.Mend(w.loop.Soft); mended == nil {
				if names, err = w.consumers(w.loop.Soft, f); bus.Missing(err) {
					return nil, err // lanes are named, and there is one consumer for all
				}
			} else if errors.Is(mended, bus.ErrNoStream) {
				began, pause = time.Now(), setupRetry // until somebody runs btn setup
			}
		}
		if err == nil || w.loop.Soft.Err() != nil || time.Since(began) > startPatience {
			return names, err
		}
		w.loop.Log.Warn("cannot start yet", "error", err)
		select {
		case <-w.loop.Soft.Done():
		case <-time.After(pause):
		}
	}
}

// consumers returns the names of a feed's durable consumers that this worker serves: those of its lanes if it has any, else the
// one over all lanes or that of every lane, whichever there are.
func (w *Worker) consumers(ctx context.Context, f streams.Feed) ([]string, error) {
	s, err := w.loop.Bus.Stream(ctx, f.Stream)
	if err != nil {
		return nil, err
	}
	names := []string{f.Name}
	switch {
	case f.Laned && len(w.lanes) > 0:
		names = f.ConsumerNames(w.lanes)
	case f.Laned:
		if _, err := s.Consumer(ctx, f.Name); errors.Is(err, jetstream.ErrConsumerNotFound) {
			names = f.ConsumerNames(streams.AllLanes())
		}
	}
	for _, name := range names {
		if _, err := s.Consumer(ctx, name); err != nil {
			return nil, fault.New(
				fault.Infrastructure,
				"pipeline: consumer %s of stream %s: %w (has `btn setup` been run, and without --one-consumer if lanes are named?)",
				name, f.Stream, err,
			)
		}
	}
	return names, nil
}
