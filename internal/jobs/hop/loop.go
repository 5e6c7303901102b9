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
	Stage    string // name of the stage in errors, logs, timings, progress and dead letters
	Bus      *bus.Bus
	Log      *slog.Logger
	Metrics  Metrics
	WorkCtx  context.Context // when it ends, work in progress is given up: some time after StartCtx
	StartCtx context.Context // when it ends, the worker stops and begins nothing new

	// ErrorResults returns the results of a job that fails with err in a stage, one for each query.
	ErrorResults func(job string, queries int, err error, stage string) []query.Result

	// MergeFirst returns results, with those of the job's first answer in the place of results that failed.
	MergeFirst func(results, first []query.Result) []query.Result

	// WritesAnswers says that this stage writes the answers of jobs. The others ask it to.
	WritesAnswers bool

	// Tracer makes the spans; nil if nobody records any.
	Tracer trace.Tracer
}

// Loop is the common part of the handlers of one stage in one process.
type Loop struct {
	Jobs
	Options
	Mend func(context.Context) error // makes missing streams and consumers again

	// FromClients says that messages come from clients, which wait for an answer even under an invalid id.
	FromClients bool

	// Rebuilds counts the jobs that were started again for something that was lost.
	Rebuilds Rebuilds

	// Meter measures what messages cost this process, for intakes with MeasuresCost.
	Meter Meter
}

// Options bound the work on one message.
type Options struct {
	MaxDeliveries int           // deliveries of a message until its job fails
	Ceiling       time.Duration // the longest time for one message
	Overdue       time.Duration // the time that a handler has to return after its context ended
	// Heartbeat is the interval at which the server is told that a message is in work, and asked for the job's answer.
	Heartbeat time.Duration
	Hung      func(*HungError) // is called when a handler was given up; may be nil
	// Processors divides the processors among the tenants of the messages in work; nil: only the scheduler does.
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

	// Worked reports a message of an intake with MeasuresCost.
	Worked(stage string, w Work)
}

// Intake describes how the messages of one kind are processed.
type Intake struct {
	Handler       Handler
	HeadersOnly   bool // messages are delivered without their payloads
	Unlimited     bool // there is no limit of deliveries, time or failures
	SkipsProgress bool // no progress is published when processing begins
	// CountAttempts returns how often work on a message was begun, this time included. It is called if a message has many
	// deliveries, some of which may have gone to workers that only passed it on. If it is nil, deliveries count.
	CountAttempts func(ctx context.Context, d *Message) int
	MeasuresCost  bool // the messages are the stage's proper work, which the Meter and histograms count
}

// Process takes one message, with any content, from its delivery to its acknowledgement. If the handler does not return
// in time, it is given up: then Process calls free, and returns false when the handler returns after all.
func (l *Loop) Process(msg *bus.Delivered, intake *Intake, free func()) bool {
	began := time.Now()
	d := &Message{Raw: msg, Attempt: msg.Attempt}
	l.Metrics.Arrived(l.Stage, d.Attempt)

	asked, err := Done, error(nil)

	// Messages with a wrong subject, and forged ones.
	if d.Subject, err = message.ParseSubject(msg.Subject); err != nil {
		// There is no job to answer to.
		l.rejectSubject(d, err)
		return true
	}

	if !l.Bus.Log.Verify(l.WorkCtx, msg) {
		l.Bus.Log.Reject(l.WorkCtx, msg)
		return true
	}

	switch d.Subject.Kind {
	case message.KindCancel, message.KindDeadline, message.KindRedrive, message.KindEnd:
		d.KeepsJob = true
	}

	// Begin heartbeats, the trace, the measurement, and the guard that gives the handler up.
	ctx, cancel := context.WithCancelCause(l.WorkCtx)
	stop := l.startHeartbeat(ctx, d, cancel, intake)
	if intake.CountAttempts != nil && d.Attempt >= l.MaxDeliveries {
		d.Attempt = intake.CountAttempts(l.WorkCtx, d)
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

	// Call the handler, unless the message was delivered too often. While there is trouble with the servers the number of
	// deliveries does not count, because messages come again although somebody works on them.
	if d.Attempt > l.MaxDeliveries && !intake.Unlimited && !l.Bus.Conn.HadTrouble(troubleCounts) {
		err = fault.New(
			fault.Internal, "pipeline: delivered %d times, and no worker came to its end",
			d.Attempt-1,
		)
	} else {
		asked, err = l.callHandler(ctx, d, intake)
		hasFewLeft := d.Attempt >= l.MaxDeliveries-1 && !intake.Unlimited // further deliveries
		for tries := 1; tries < troubleTries && hasFewLeft && l.failedByTrouble(ctx, err); tries++ {
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

	// Decide the outcome.
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

// logOutcome logs the outcome of a message: at level debug if nothing is wrong, and otherwise as a warning with the
// error.
func (l *Loop) logOutcome(d *Message, outcome Outcome, err error, took time.Duration) {
	level := slog.LevelWarn
	isNormal := outcome == Done || outcome == Held || outcome.name == laterName
	if err == nil || isNormal {
		level = slog.LevelDebug
		err = nil
	}
	if !l.Log.Enabled(l.WorkCtx, level) {
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
	log.Log(l.WorkCtx, level, "message", "outcome", outcome.name, "took", took)
}

// callHandler resolves the payload of a message and calls the intake's handler. A panic becomes an internal error,
// because the message or the program is at fault, and the worker goes on.
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
		if err = bus.RejectServerHeaders(d.Raw.Header); err != nil {
			d.IsMalformed, d.Data = true, d.Raw.Data
			return Done, err
		}
		if err = bus.CheckSum(d.Raw.Subject, d.Raw.Header, d.Raw.Data); err != nil {
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
	troubleRetry  = 500 * time.Millisecond // pause between two attempts at a message during trouble
	troubleTries  = 4                      // attempts at one delivery; then another message gets the slot
	troubleLimit  = 8                      // a message that always fails by trouble may have troubleLimit * MaxDeliveries deliveries
	troubleOver   = 10 * time.Second       // trouble is over so long after its last sign: longer than the choice of a leader
	troubleCounts = time.Minute            // trouble less than that ago explains how often a message was delivered
)

// failedByTrouble reports whether an attempt failed by trouble with the servers, and waits for troubleRetry if so. Then
// a message with few deliveries left is tried again here, with heartbeats, because its deliveries are meant for workers
// that die at the message.
func (l *Loop) failedByTrouble(ctx context.Context, err error) bool {
	if err == nil || CodeOf(err) != fault.Infrastructure {
		return false
	}
	hasOtherReason := errors.Is(err, ErrLater) || errors.Is(err, bus.ErrNoStream) || errors.Is(err, bus.ErrFull)
	if hasOtherReason || !l.Bus.Conn.TroubleExplains(err, troubleOver) {
		return false
	}
	select {
	case <-ctx.Done():
	case <-l.StartCtx.Done():
	case <-time.After(troubleRetry):
	}
	return ctx.Err() == nil && l.StartCtx.Err() == nil
}

// startHeartbeat begins the heartbeats of a message, which run in a goroutine of their own until stop is called. Each
// heartbeat tells the server that the message is in work, so that it is not delivered to another worker. It also
// cancels the work if the job has its answer by then, or if the ceiling is reached; heartbeats go on until the handler
// returns or is given up.
//
// A heartbeat does not wait for the look for an answer. One that is late by more than Heartbeat counts as trouble with
// the servers, because the message may have been delivered again meanwhile.
func (l *Loop) startHeartbeat(
	ctx context.Context, d *Message, cancel context.CancelCauseFunc, intake *Intake,
) (stop func()) {
	began := time.Now()
	due := began.Add(l.Heartbeat)
	isOver, isLooking := false, false
	isProgressTold := intake.SkipsProgress || intake.Unlimited || d.KeepsJob // read here, because the handler may write d.KeepsJob

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

		d.Raw.ExtendDeadline()
		if !isProgressTold { // at the first heartbeat, so that quick work has no progress
			l.Progress(d.Subject.Job, l.Stage, 0, 1)
			isProgressTold = true
		}
		if time.Since(due) > l.Heartbeat {
			l.Bus.Conn.NoteTrouble()
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
