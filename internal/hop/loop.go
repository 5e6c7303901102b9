// Package hop takes messages from delivery to acknowledgement, for any stage: heartbeats, what becomes of a message when its handler
// is done with it or fails, the terminal answers of jobs, dead letters, and outputs that are stored once. It knows no stage: a stage is a
// Handler.
//
// The promises, whatever process dies when: every stored job gets exactly one answer; the answer has the same bits
// however many workers there were; nothing that a message says brings a worker down.
//
// They rest on three rules. A stage publishes its output and waits for the stream's acknowledgement before it
// acknowledges its input, so work is repeated and never lost. An output has a subject of its own on which the first
// message wins, so repeated work changes nothing. Every message carries the digest of the request, and messages of
// two requests are never mixed.
package hop

import (
	"context"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Loop is what the handlers of one stage in one process have in common.
type Loop struct {
	Options
	Stage   string // in errors, logs, timings, progress and dead letters
	Bus     *bus.Bus
	Log     *slog.Logger
	Metrics Metrics
	Hard    context.Context             // ends when the drain is over: work in progress is given up
	Soft    context.Context             // ends when the worker shall: nothing new is begun
	Mend    func(context.Context) error // makes streams and consumers again that are missing
	// Results are those of a job that fails with err in a stage, one per query.
	Results func(job string, queries int, err error, stage string) []btn.Result
	// FromClients: messages come from clients, who wait for an answer even under an id that is none.
	FromClients bool
	// Ended, if set, is told of jobs whose answer this loop stored.
	Ended func(job string)
	// Rebuilds counts the jobs that were begun anew for what was lost.
	Rebuilds Rebuilds
}

// Options bound the work on one message.
type Options struct {
	MaxDeliveries int           // how often a message is tried before its job fails
	Ceiling       time.Duration // the longest that one message may be worked on
	Overdue       time.Duration // how long a handler may go on after its context ended
	Heartbeat     time.Duration // how often a worker says that it still works, and looks whether its job is over
	Hung          func(*HungError)
	// Hook is called before a handler is; tests make it panic, block or count.
	Hook func(stage string, s message.Subject)
}

// Metrics counts what becomes of messages.
type Metrics interface {
	Arrived(stage string, attempt int)
	Settled(stage, outcome string, took time.Duration)
	Hang(stage string)
	Conflict(stage string)
}

// Intake says how the messages of one kind are taken.
type Intake struct {
	Handler Handler
	Headers bool // messages come without their payloads
	Patient bool // no limit of deliveries, nor of failures
	Watches bool // no limit of deliveries: messages come back until their job has its answer
	Untold  bool // people are not told that such a message is in work
}

// Process takes one message from delivery to acknowledgement. Nothing that the message holds brings it down. A handler that does not
// return is given up: then free is called, and process itself reports false when it has returned after all.
func (l *Loop) Process(msg *bus.Delivered, in *Intake, free func()) bool {
	began := time.Now()
	d := &Message{Raw: msg, Attempt: msg.Attempt, Stored: msg.Stored}
	l.Metrics.Arrived(l.Stage, d.Attempt)
	asked, err := Done, error(nil)
	if d.Subject, err = message.ParseSubject(msg.Subject); err != nil {
		l.drop(d, err) // no job to answer to
		return true
	}
	switch d.Subject.Kind {
	case message.KindCancel, message.KindDeadline, message.KindRedrive:
		d.Silent = true
	}
	ctx, cancel := context.WithCancelCause(l.Hard)
	stop, subject := l.heartbeat(ctx, d, cancel, in), d.Subject
	guard := l.watch(ctx, d, began, func(cause error) {
		stop()
		l.quarantine(d, subject, time.Since(began), cause)
		free()
	})
	if d.Attempt > l.MaxDeliveries && !in.Patient && !in.Watches {
		err = fault.New(fault.Internal, "pipeline: delivered %d times, and no worker came to its end", d.Attempt-1)
	} else {
		asked, err = l.attempt(ctx, d, in)
	}
	if !guard.returned() {
		l.Log.Warn("a handler that was given up has returned", "subject", msg.Subject, "took", time.Since(began))
		return false
	}
	stop()
	cause := context.Cause(ctx)
	cancel(nil)

	outcome := l.settle(d, in, asked, err, cause)
	took := time.Since(began)
	l.Metrics.Settled(l.Stage, outcome.name, took)
	level := slog.LevelWarn
	if err == nil || outcome == Done || outcome == Held || outcome.name == later {
		level, err = slog.LevelDebug, nil
	}
	if !l.Log.Enabled(l.Hard, level) {
		return true
	}
	log := l.Log.With("subject", msg.Subject, "job", d.Subject.Job, "lane", d.Subject.Lane, "attempt", d.Attempt)
	if err != nil {
		log = log.With("error", err)
	}
	log.Log(l.Hard, level, "message", "outcome", outcome.name, "took", took)
	return true
}

// attempt resolves the payload and calls the stage. A panic becomes an internal error: the message is at fault or the
// program is, and the worker goes on either way.
func (l *Loop) attempt(ctx context.Context, d *Message, in *Intake) (asked Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			l.Log.Error("panic", "subject", d.Raw.Subject, "panic", p, "stack", string(debug.Stack()))
			err = fault.New(fault.Internal, "pipeline: %s: panic: %v", l.Stage, p)
		}
	}()
	if !in.Headers {
		if d.Data, err = l.Bus.Payload(ctx, d.Raw.Header, d.Raw.Data); err != nil {
			d.Broken = fault.CodeOf(err) == fault.BadInput
			return Done, err
		}
	}
	if l.Hook != nil {
		l.Hook(l.Stage, d.Subject)
	}
	return in.Handler.Handle(ctx, d)
}

// heartbeat tells the server every Heartbeat that the message is being worked on, from a goroutine of its own, and looks
// whether the job has its answer by then. It stops at the ceiling. The function it returns waits for its end.
func (l *Loop) heartbeat(ctx context.Context, d *Message, cancel context.CancelCauseFunc, in *Intake) (stop func()) {
	began, over, told := time.Now(), false, in.Untold || in.Patient
	var mu sync.Mutex // held while it beats
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(l.Heartbeat, func() {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case over:
			return
		case time.Since(began) > l.Ceiling && !in.Patient:
			cancel(errCeiling)
			return
		}
		d.Raw.Working()
		if !told && !d.Silent {
			l.Progress(d.Subject.Job, l.Stage, 0, 1)
			told = true
		}
		if !in.Patient && l.answered(ctx, d.Subject.Job) {
			cancel(ErrAnswered)
			return
		}
		timer.Reset(l.Heartbeat)
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		timer.Stop()
	}
}
