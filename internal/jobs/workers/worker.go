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
	loop       *hop.Loop
	host       *Host
	intakes    []*intake
	background []func(context.Context) error // run in addition to the intakes, until their context ends
	stop       func()                        // is called at the end of Run; nil: nothing is to be done
}

// intake is a feed of messages, with their handler and the bounds of their processing.
type intake struct {
	streams.Feed
	hop.Intake
	pull pull.Intake // consume sets those of its fields that are the same for all intakes of a worker; see slots for Slots

	obstacle atomic.Pointer[error] // why the intake has not begun; nil: it has begun, or no reason is known
}

// shortPrefetch is the prefetch of messages that take milliseconds at most. For longer ones it is smaller, because a
// message that waits in this process is kept from another process that may be idle.
const shortPrefetch = 16

// slots returns the number of messages of an intake that are processed at a time. An intake with one slot keeps it.
// Otherwise it is concurrency, the configured number, or if that is 0, the intake's number, but at least the number of
// processors.
func (in *intake) slots(concurrency int) int {
	switch {
	case in.pull.Slots == 1:
		return 1
	case concurrency > 0:
		return concurrency
	}
	return max(in.pull.Slots, fair.Count())
}

// Run consumes all intakes of the stage until the StartCtx of its loop ends.
func (w *Worker) Run() error {
	if w.stop != nil {
		defer w.stop()
	}

	// All consumers are looked up before any message is processed, because this may fail.
	consumers := make([][]string, len(w.intakes)) // by intake
	for i, intake := range w.intakes {
		var err error
		if consumers[i], err = w.waitForConsumers(intake); err != nil {
			return err
		}
	}

	if err := w.loop.Bus.Conn.Synchronize(w.loop.StartCtx); err != nil && w.loop.StartCtx.Err() == nil {
		w.loop.Log.Warn("the server's time is not known yet", "error", err)
	}

	g, ctx := errgroup.WithContext(w.loop.StartCtx)
	for i, intake := range w.intakes {
		g.Go(func() error { return w.keepConsuming(ctx, intake, consumers[i]) })
	}

	for _, run := range w.background {
		g.Go(func() error { return run(ctx) })
	}

	w.loop.Log.Info("running", "lanes", w.host.Served(), "nats-server", w.loop.Bus.Conn.NC.ConnectedServerVersion())
	return g.Wait()
}

// keepConsuming consumes an intake until ctx ends. If its consumers are gone it waits for new ones.
func (w *Worker) keepConsuming(ctx context.Context, intake *intake, consumers []string) error {
	for {
		err := w.consume(ctx, intake, consumers)
		if !errors.Is(err, bus.ErrGone) || ctx.Err() != nil {
			return err
		}

		w.loop.Log.Warn("consumers are gone", "error", err)
		if consumers, err = w.waitForConsumers(intake); err != nil {
			return err
		}
	}
}

// consume processes the messages of an intake until ctx ends. If a concurrency is configured, that number of messages
// is processed at a time whatever they cost: no message is heavy.
func (w *Worker) consume(ctx context.Context, intake *intake, consumers []string) error {
	p := intake.pull
	p.Stream, p.Name, p.Consumers = intake.Stream, intake.Name, consumers
	if p.Slots = intake.slots(w.host.Concurrency); w.host.Concurrency != 0 {
		p.IsHeavy = nil
	}
	p.HoldsMessages = intake.Unlimited          // then messages may wait here, and are not returned for another process
	p.MaxPriorityAttempt = w.loop.MaxDeliveries // with more deliveries a message comes after all others
	p.Heartbeat = w.loop.Heartbeat
	p.RequestCtx, p.Log = w.loop.WorkCtx, w.loop.Log
	p.Work = func(d *bus.Delivered, free func()) bool { return w.loop.Process(d, &intake.Intake, free) }
	return pull.Run(ctx, w.loop.Bus.Conn, p)
}

const (
	// startRetry is the pause between two attempts to start while the server does not answer.
	startRetry = 200 * time.Millisecond
	// startPatience is the time for which a worker that starts waits for a server that does not answer.
	startPatience = 30 * time.Second
	// setupRetry is the interval at which a worker checks whether streams have been set up, and logs that they are not.
	setupRetry = 2 * time.Second
)

// waitForConsumers returns the names of the consumers of an intake's feed. While they cannot be found it tries again:
//   - If the server does not answer, it may be restarting, and is asked again for startPatience.
//   - If streams or consumers are missing and others are there, waitForConsumers makes the missing ones.
//   - If there are none, or the worker's user may not make them, it waits without end for somebody to run btn setup,
//     and logs that. The worker is not ready meanwhile.
//
// It returns an error if the account of the user sees no streams.
func (w *Worker) waitForConsumers(intake *intake) ([]string, error) {
	defer intake.obstacle.Store(nil)
	for began := time.Now(); ; {
		names, err := w.findConsumers(w.loop.StartCtx, intake.Feed)
		pause := startRetry

		// Make what is missing, and look again.
		if bus.IsMissing(err) {
			mendErr := w.loop.Mend(w.loop.StartCtx)
			switch {
			case mendErr == nil:
				if names, err = w.findConsumers(w.loop.StartCtx, intake.Feed); bus.IsMissing(err) {
					return nil, fmt.Errorf("%w (lanes are named: has `btn setup` been run without --one-consumer?)", err)
				}
			case !errors.Is(err, bus.ErrNoStream): // the text of ErrNoStream states what to do
				err = fmt.Errorf("%w: %w", err, mendErr)
			}
			if errors.Is(mendErr, bus.ErrNoStream) || errors.Is(mendErr, streams.ErrRefused) { // somebody has to run btn setup
				began = time.Now() // so that startPatience never ends
				pause = setupRetry
			}
		}

		isHopeless := time.Since(began) > startPatience || errors.Is(err, jetstream.ErrJetStreamNotEnabledForAccount)
		if err == nil || w.loop.StartCtx.Err() != nil || isHopeless {
			return names, err
		}

		intake.obstacle.Store(&err)
		w.loop.Bus.Conn.Trouble.Warn(w.loop.Log, "cannot start yet", "error", err)
		bus.Pause(w.loop.StartCtx, pause)
	}
}

// findConsumers returns the names of the durable consumers of a feed that this worker serves. If the worker is
// configured to serve some lanes, these are the consumers of those lanes. Otherwise it is the consumer over all lanes,
// or, if there is none, the consumer of each lane.
func (w *Worker) findConsumers(ctx context.Context, f streams.Feed) ([]string, error) {
	names := []string{f.Name}
	switch {
	case f.MayHaveLanes && len(w.host.Lanes) > 0:
		names = f.ConsumerNames(w.host.Lanes)
	case f.MayHaveLanes:
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

// Ready returns why the stage cannot do its work, or nil if it can: an intake has an obstacle, keys are missing, the
// server stores nothing, or a stream does not exist.
func (w *Worker) Ready() error {
	ctx, cancel := context.WithTimeout(w.loop.WorkCtx, 2*time.Second)
	defer cancel()

	for _, intake := range w.intakes {
		if obstacle := intake.obstacle.Load(); obstacle != nil {
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

// announceWorker publishes, for people, that this worker is there: at once and every message.HereEvery until ctx ends.
// At the end it publishes that the worker is gone.
func (w *Worker) announceWorker(ctx context.Context) error {
	host, _ := os.Hostname() // a machine may have none
	m := &message.Here{
		Process: nuid.Next(), Stage: w.loop.Stage, Host: cmp.Or(host, "unknown"), PID: os.Getpid(), Version: telemetry.ThisBuild().Version,
	}
	return runEvery(ctx, message.HereEvery, func(isLast bool) {
		m.Gone = isLast
		m.Messages = w.loop.Meter.Finished()
		m.Time = w.loop.Bus.Conn.Now().UnixMilli()
		if err := w.nameKeys(m); err != nil {
			w.loop.Log.Warn("cannot name the keys of answers", "error", err)
		}
		if b, err := wire.Encode(m); err == nil {
			w.loop.Bus.Conn.NC.PublishMsg(&nats.Msg{Subject: message.HereSubject, Header: message.Headers(m, "", "", ""), Data: b})
		}
	})
}

// nameKeys writes the names of the present keys into m. They may differ from call to call, because files of keys are
// read again when they change.
func (w *Worker) nameKeys(m *message.Here) (err error) {
	trust := w.loop.Bus.Signer.Trust()
	m.MessageKeys = trust.Keys.Names()
	m.AnswersKeys, m.AnswersSigner, err = trust.Answers.Names()
	return err
}

// runEvery calls do at once, at every interval until ctx ends, and then a last time. It returns nil.
func runEvery(ctx context.Context, interval time.Duration, do func(isLast bool)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		isLast := ctx.Err() != nil
		if do(isLast); isLast {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}
