// Package hop processes messages from delivery to acknowledgement, for any stage: heartbeats, the
// outcome of a message when its handler returns or fails, the terminal answers of jobs, dead
// letters, and outputs that are stored once. It knows no stage: a stage is a Handler.
//
// The promises, if any process dies at any time: every stored job gets exactly one answer; the
// answer has the same bits however many workers there were; nothing that a message says brings a
// worker down.
//
// They follow from three rules. A stage publishes its output and waits for the stream's
// acknowledgement before it acknowledges its input, so work may be repeated and is never lost. An
// output has a subject of its own on which the first message is kept, so repeated work changes
// nothing. Every message carries the digest of the request, and messages of two requests are never
// mixed.
package hop

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/base/fair"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"go.opentelemetry.io/otel/trace"
)

// Jobs are the jobs of one stage in one process: their requests, outputs and answers in the streams.
type Jobs struct {
	Stage   string // in errors, logs, timings, progress and dead letters
	Bus     *bus.Bus
	Log     *slog.Logger
	Metrics Metrics
	Hard    context.Context // ends when the drain is over: work in progress is given up
	Soft    context.Context // ends when the worker is to stop: nothing new is begun

	// ErrorResults returns the results of a job that fails with err in a stage, one per query.
	ErrorResults func(job string, queries int, err error, stage string) []query.Result

	// MergeFirst returns the results of a job, those of its first answer in the place of those that failed.
	MergeFirst func(results, storeFirst []query.Result) []query.Result

	// WritesAnswers: this stage writes the answers of jobs; the others ask it to.
	WritesAnswers bool

	// Tracer makes the spans; nil: nobody records any.
	Tracer trace.Tracer
}

// Loop is the common part of the handlers of one stage in one process.
type Loop struct {
	Jobs
	Options
	Mend func(context.Context) error // makes missing streams and consumers again

	// FromClients: messages come from clients, which wait for an answer even under an invalid id.
	FromClients bool

	// Rebuilds counts the jobs that were started again for something that was lost.
	Rebuilds Rebuilds

	// Meter measures the cost to this process of the messages of Metered intakes.
	Meter Meter
}

// Options bound the work on one message.
type Options struct {
	MaxDeliveries int           // deliveries of a message until its job fails
	Ceiling       time.Duration // the longest time for one message
	Overdue       time.Duration // the time that a handler has to return after its context ended
	// interval at which the server is notified that a message is in work, and asked for the job's
	// answer
	Heartbeat time.Duration
	Hung      func(*HungError) // is called when a handler was given up; may be nil
	// shared by the messages in work, tenant by tenant; nil: by the scheduler
	Processors *fair.Processors

	// Hook is called before a handler is; tests make it panic, block or count.
	Hook func(stage string, s message.Subject)
}

// Metrics counts messages and their outcomes.
type Metrics interface {
	Arrived(stage string, attempt int)
	Settled(stage, outcome string, took time.Duration)
	Hang(stage string)
	Conflict(stage string)
	Answered(Ended)

	// Worked reports a message of a Metered intake: its wait, unless it was delivered before, its time
	// in work, and the work done.
	Worked(stage string, w Work)
}

// Intake describes how the messages of one kind are processed.
type Intake struct {
	Handler       Handler
	HeadersOnly   bool // messages come without their payloads
	Unlimited     bool // no limit of deliveries, time or failures
	SkipsProgress bool // no progress is published when processing begins
	// CountAttempts returns how often work on a message was begun, this time included; it is asked where the
	// deliveries are many, and some may have been to other workers that passed it on. Nil: none do.
	CountAttempts func(ctx context.Context, d *Message) int
	MeasuresCost  bool // the messages are the stage's proper work, which the Meter and histograms count
}

// Process takes one message from delivery to acknowledgement, with any content. A handler that does
// not return is given up: then free is called, and Process returns false if the handler returns
// after all.
func (l *Loop) Process(msg *bus.Delivered, intake *Intake, free func()) bool {
	began := time.Now()
	d := &Message{Raw: msg, Attempt: msg.Attempt}
	l.Metrics.Arrived(l.Stage, d.Attempt)

	asked, err := Done, error(nil)
	if d.Subject, err = message.ParseSubject(msg.Subject); err != nil {
		// There is no job to answer to.
		l.rejectSubject(d, err)
		return true
	}

	if !l.Bus.Log.Verify(l.Hard, msg) {
		l.Bus.Log.Reject(l.Hard, msg)
		return true
	}

	switch d.Subject.Kind {
	case message.KindCancel, message.KindDeadline, message.KindRedrive, message.KindEnd:
		d.KeepsJob = true
	}

	ctx, cancel := context.WithCancelCause(l.Hard)
	stop := l.startHeartbeat(ctx, d, cancel, intake)
	if intake.CountAttempts != nil && d.Attempt >= l.MaxDeliveries {
		d.Attempt = intake.CountAttempts(l.Hard, d)
	}
	ctx = l.withTrace(ctx, d, intake)
	subject := d.Subject
	measured := l.startMeasuring(d, intake)
	guard := l.watchHandler(ctx, d, began, func(cause error) {
		stop()
		measured.abandon()
		l.quarantine(d, subject, time.Since(began), cause)
		free()
	})

	// While there is trouble with the servers messages come again though somebody works on them.
	if d.Attempt > l.MaxDeliveries && !intake.Unlimited && !l.Bus.Conn.Unsettled(troubleCounts) {
		err = fault.New(
			fault.Internal, "pipeline: delivered %d times, and no worker came to its end",
			d.Attempt-1,
		)
	} else {
		asked, err = l.callHandler(ctx, d, intake)
		for tries := 1; tries < troubleTries && d.Attempt >= l.MaxDeliveries-1 && !intake.Unlimited && l.failedByTrouble(ctx, err); tries++ {
			asked, err = l.callHandler(ctx, d, intake)
		}
	}

	if !guard.noteReturn() {
		l.Log.Warn(
			"a handler that was given up has returned", "subject", msg.Subject, "took",
			time.Since(began),
		)
		return false
	}

	stop()
	measured.end(began, err == nil && (asked == Done || asked == Held))
	cause := context.Cause(ctx)
	cancel(nil)

	outcome := l.decideOutcome(d, intake, asked, err, cause)
	took := time.Since(began)
	d.endSpan(outcome, err)
	l.Metrics.Settled(l.Stage, outcome.name, took)
	l.logOutcome(d, outcome, err, took)
	return true
}

// logOutcome logs the outcome of a message: at level debug if nothing is wrong, else as a warning
// with the error.
func (l *Loop) logOutcome(d *Message, outcome Outcome, err error, took time.Duration) {
	level := slog.LevelWarn
	if err == nil || outcome == Done || outcome == Held || outcome.name == laterName {
		level = slog.LevelDebug
		err = nil
	}
	if !l.Log.Enabled(l.Hard, level) {
		return
	}

	if outcome == Retry && CodeOf(err) == fault.Infrastructure {
		l.Bus.Conn.Trouble.Warn(
			l.Log, "messages are tried again", "subject", d.Raw.Subject, "attempt", d.Attempt, "error", err, "took", took,
		)
		return
	}

	log := l.Log.With(
		"subject", d.Raw.Subject, "job", d.Subject.Job, "lane", d.Subject.Lane, "attempt",
		d.Attempt,
	)
	if err != nil {
		log = log.With("error", err)
	}
	log.Log(l.Hard, level, "message", "outcome", outcome.name, "took", took)
}

// callHandler resolves the payload and calls the handler. A panic becomes an internal error: message or
// program is at fault, and the worker goes on either way.
func (l *Loop) callHandler(ctx context.Context, d *Message, intake *Intake) (asked Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			l.Log.Error(
				"panic", "subject", d.Raw.Subject, "panic", p, "stack", string(debug.Stack()),
			)
			err = fault.New(fault.Internal, "pipeline: %s: panic: %v", l.Stage, p)
		}
	}()

	if !intake.HeadersOnly {
		if err = bus.Sound(d.Raw.Header); err != nil {
			d.IsMalformed, d.Data = true, d.Raw.Data
			return Done, err
		}
		if err = bus.Intact(d.Raw.Subject, d.Raw.Header, d.Raw.Data); err != nil {
			d.IsMalformed, d.Data = true, d.Raw.Data
			return Done, err
		}
		if d.Data, err = l.Bus.Blobs.Payload(ctx, d.Subject.Owner, d.Raw.Header, d.Raw.Data); err != nil {
			d.IsMalformed = fault.CodeOf(err) == fault.BadInput
			return Done, err
		}
	}

	if l.Hook != nil {
		l.Hook(l.Stage, d.Subject)
	}
	ctx, end := l.Processors.Enter(ctx, message.WorksFor(d.Raw.Subject, d.Raw.Header))
	defer end()
	return intake.Handler(ctx, d)
}

// Times of trouble with the servers.
const (
	troubleRetry  = 500 * time.Millisecond // the pause between two attempts at a message meanwhile
	troubleTries  = 4                      // attempts at a delivery; then others have its slot
	troubleLimit  = 8                      // times MaxDeliveries: deliveries of a message that fails by trouble each time
	troubleOver   = 10 * time.Second       // after its last sign: longer than a leader is chosen
	troubleCounts = time.Minute            // it explains for so long how often messages were delivered
)

// failedByTrouble reports, after a pause, whether an attempt failed by trouble with the servers. A message with few deliveries left is
// tried here some times, with heartbeats: its deliveries are for workers that do not come to its end.
func (l *Loop) failedByTrouble(ctx context.Context, err error) bool {
	if err == nil || CodeOf(err) != fault.Infrastructure || errors.Is(err, ErrLater) || errors.Is(err, bus.ErrNoStream) ||
		errors.Is(err, bus.ErrFull) || !l.Bus.Conn.Explains(err, troubleOver) {
		return false
	}
	select {
	case <-ctx.Done():
	case <-l.Soft.Done():
	case <-time.After(troubleRetry):
	}
	return ctx.Err() == nil && l.Soft.Err() == nil
}

// startHeartbeat tells the server at every Heartbeat, from a goroutine of its own, that the message is
// being processed, and looks whether the job has its answer by then. It cancels the work at the
// ceiling, and beats on: no other worker takes the message before this handler returns or is given up.
// A beat does not wait for a look that takes long; one that is late by more than Heartbeat counts as
// trouble, because the message may come again meanwhile. The function it returns ends it.
func (l *Loop) startHeartbeat(
	ctx context.Context, d *Message, cancel context.CancelCauseFunc, intake *Intake,
) (stop func()) {
	began := time.Now()
	due := began.Add(l.Heartbeat)
	isOver, isLooking := false, false
	isProgressTold := intake.SkipsProgress || intake.Unlimited || d.KeepsJob // the handler may write d.Silent meanwhile

	var mu sync.Mutex // held during a beat
	var timer *time.Timer
	lookForAnswer := func() {
		if l.isAnswered(ctx, d.Subject.Job) {
			cancel(ErrAnswered)
		}
		mu.Lock()
		defer mu.Unlock()
		isLooking = false
	}
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(l.Heartbeat, func() {
		mu.Lock()
		defer mu.Unlock()
		if isOver {
			return
		}
		if time.Since(began) > l.Ceiling && !intake.Unlimited {
			cancel(errCeiling)
		}

		d.Raw.Working()
		if !isProgressTold {
			l.Progress(d.Subject.Job, l.Stage, 0, 1)
			isProgressTold = true
		}
		if time.Since(due) > l.Heartbeat {
			l.Bus.Conn.Unsettle()
		}
		if !intake.Unlimited && !isLooking {
			isLooking = true
			go lookForAnswer()
		}
		due = time.Now().Add(l.Heartbeat)
		timer.Reset(l.Heartbeat)
	})

	return func() {
		mu.Lock()
		defer mu.Unlock()
		isOver = true
		timer.Stop()
	}
}
