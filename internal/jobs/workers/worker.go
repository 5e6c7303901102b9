package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/basetensor/basetensor/internal/base/fair"
	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/pull"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
	"golang.org/x/sync/errgroup"
)

// Worker is one stage in one process.
type Worker struct {
	loop    *hop.Loop
	host    *Host
	intakes []*intake
	// functions that run beside the intakes, until their context ends
	beside []func(context.Context) error
	stop   func() // is called at the end; may be nil
}

// intake is a feed of messages, with the handler and the bounds of their processing.
type intake struct {
	streams.Feed
	hop.Intake
	// pull has Prefetch, Heavy, Later, AtLeast and Room. Its Slots are at least the processors; Concurrency takes their place, except where
	// they are 1.
	pull pull.Intake

	obstacle atomic.Pointer[error] // why it has not begun; nil: it has, or nothing is known
}

// short is the prefetch of messages that take milliseconds at most. For longer ones it is smaller:
// a message that waits in this process is kept from another process that may be idle.
const short = 16

// slots returns the number of messages of an intake that are processed at a time, where concurrency
// is the configured number, 0 for none.
func (in *intake) slots(concurrency int) int {
	switch {
	case in.pull.Slots == 1:
		return 1
	case concurrency > 0:
		return concurrency
	}
	return max(in.pull.Slots, fair.Count())
}

// Run consumes all the intakes of the stage until Soft ends.
func (w *Worker) Run() error {
	if w.stop != nil {
		defer w.stop()
	}

	// All consumers are looked up before any message is processed, because this may fail.
	all := make([][]string, len(w.intakes))
	for i, in := range w.intakes {
		var err error
		if all[i], err = w.found(in); err != nil {
			return err
		}
	}

	if err := w.loop.Bus.Conn.Synchronize(w.loop.Soft); err != nil && w.loop.Soft.Err() == nil {
		w.loop.Log.Warn("the server's time is not known yet", "error", err)
	}

	g, ctx := errgroup.WithContext(w.loop.Soft)
	for i, in := range w.intakes {
		g.Go(func() error { return w.consumeAgain(ctx, in, all[i]) })
	}

	for _, run := range w.beside {
		g.Go(func() error { return run(ctx) })
	}

	w.loop.Log.Info("running", "lanes", w.host.Served(), "nats-server", w.loop.Bus.Conn.NC.ConnectedServerVersion())
	return g.Wait()
}

// consumeAgain is consume for as long as there are consumers, which are looked up again when they
// are gone.
func (w *Worker) consumeAgain(ctx context.Context, in *intake, consumers []string) error {
	for {
		err := w.consume(ctx, in, consumers)
		if !errors.Is(err, bus.ErrGone) || ctx.Err() != nil {
			return err
		}

		w.loop.Log.Warn("consumers are gone", "error", err)
		if consumers, err = w.found(in); err != nil {
			return err
		}
	}
}

// consume processes the messages of an intake until ctx ends. With a configured concurrency no
// message is heavy: that many are processed at a time, at any cost of each.
func (w *Worker) consume(ctx context.Context, in *intake, consumers []string) error {
	p := in.pull
	p.Stream, p.Name, p.Consumers = in.Stream, in.Name, consumers
	if p.Slots = in.slots(w.host.Concurrency); w.host.Concurrency != 0 {
		p.Heavy = nil
	}
	p.Patient, p.Tired, p.Heartbeat = in.Patient, w.loop.MaxDeliveries, w.loop.Heartbeat
	p.Hard, p.Log = w.loop.Hard, w.loop.Log
	p.Work = func(d *bus.Delivered, free func()) bool { return w.loop.Process(d, &in.Intake, free) }
	return pull.Run(ctx, w.loop.Bus.Conn, p)
}

// startRetry is the pause between two attempts to start while the server does not answer.
const startRetry = 200 * time.Millisecond

// startPatience is for how long a worker that starts waits for a server that does not answer.
const startPatience = 30 * time.Second

// setupRetry is the interval at which a worker checks whether streams have been set up, and logs
// that they are not.
const setupRetry = 2 * time.Second

// found returns the names of the consumers of an intake's feed. While the server does not answer, which may
// be restarting, it tries again. Missing streams and consumers are made if others are there. The worker waits, not ready, for somebody to
// run btn setup where there are none or its user may not make them, and logs that. A user whose account sees no streams is an error.
func (w *Worker) found(in *intake) ([]string, error) {
	defer in.obstacle.Store(nil)
	for began := time.Now(); ; {
		names, err := w.consumers(w.loop.Soft, in.Feed)

		pause := startRetry

		if bus.Missing(err) {
			mended := w.loop.Mend(w.loop.Soft)
			switch {
			case mended == nil:
				if names, err = w.consumers(w.loop.Soft, in.Feed); bus.Missing(err) {
					return nil, fmt.Errorf("%w (lanes are named: has `btn setup` been run without --one-consumer?)", err)
				}
			case !errors.Is(err, bus.ErrNoStream): // which says by itself what to do
				err = fmt.Errorf("%w: %w", err, mended)
			}
			if errors.Is(mended, bus.ErrNoStream) || errors.Is(mended, streams.ErrRefused) {
				began = time.Now()
				pause = setupRetry
			}
		}

		if err == nil || w.loop.Soft.Err() != nil || time.Since(began) > startPatience ||
			errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount) {
			return names, err
		}

		in.obstacle.Store(&err)
		w.loop.Bus.Conn.Trouble.Warn(w.loop.Log, "cannot start yet", "error", err)
		bus.Pause(w.loop.Soft, pause)
	}
}

// consumers returns the names of a feed's durable consumers that this worker serves: the consumers
// of its lanes if it has any, else the consumer over all lanes if there is one, else the consumers
// of all lanes.
func (w *Worker) consumers(ctx context.Context, f streams.Feed) ([]string, error) {
	names := []string{f.Name}
	switch {
	case f.Laned && len(w.host.Lanes) > 0:
		names = f.ConsumerNames(w.host.Lanes)
	case f.Laned:
		_, err := w.loop.Bus.Conn.Consumer(ctx, f.Stream, f.Name)
		if err == nil {
			return names, nil
		}
		if errors.Is(err, jetstream.ErrConsumerNotFound) {
			names = f.ConsumerNames(streams.AllLanes())
		}
	}

	for _, name := range names {
		if _, err := w.loop.Bus.Conn.Consumer(ctx, f.Stream, name); err != nil {
			return nil, fmt.Errorf("pipeline: %w", err)
		}
	}
	return names, nil
}

// Ready reports why the stage cannot do its work, or nil.
func (w *Worker) Ready() error {
	ctx, cancel := context.WithTimeout(w.loop.Hard, 2*time.Second)
	defer cancel()

	for _, in := range w.intakes {
		if obstacle := in.obstacle.Load(); obstacle != nil {
			return *obstacle
		}
	}
	if err := w.loop.Bus.Signer.CheckKeys(); err != nil {
		return err
	}
	if err := w.loop.Bus.Conn.CheckStorage(); err != nil {
		return err
	}
	return streams.Healthy(ctx, w.loop.Bus.Conn)
}

// here says that this worker is there, for people, at once and every message.HereEvery until ctx ends, and at the end that it is gone.
func (w *Worker) here(ctx context.Context) error {
	host, _ := os.Hostname() // a machine may have none
	m := &message.Here{
		Process: nuid.Next(), Stage: w.loop.Stage, Host: cmp.Or(host, "unknown"), PID: os.Getpid(), Version: telemetry.ThisBuild().Version,
	}
	return every(ctx, message.HereEvery, func(over bool) {
		m.Gone = over
		m.Messages = w.loop.Meter.Done()
		m.Time = w.loop.Bus.Conn.Now().UnixMilli()
		if err := w.nameKeys(m); err != nil {
			w.loop.Log.Warn("cannot name the keys of answers", "error", err)
		}
		if b, err := wire.Encode(m); err == nil {
			w.loop.Bus.Conn.NC.PublishMsg(&nats.Msg{Subject: message.HereSubject, Header: message.Headers(m, "", "", ""), Data: b})
		}
	})
}

// nameKeys writes the names of the keys of this moment into m: files of keys are read again when they change.
func (w *Worker) nameKeys(m *message.Here) (err error) {
	trust := w.loop.Bus.Signer.Trust()
	m.MessageKeys = trust.Keys.Names()
	m.AnswersKeys, m.AnswersSigner, err = trust.Answers.Names()
	return err
}

// every calls do at once, at every interval until ctx ends, and then a last time.
func every(ctx context.Context, interval time.Duration, do func(over bool)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		over := ctx.Err() != nil
		if do(over); over {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}
