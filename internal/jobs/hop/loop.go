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

// Process takes one message, with any content, from its delivery to its acknowledgement, and returns true. If the
// handler does not return in time, it is given up: another goroutine ends the message and calls free, so that the
// message's slot has other work. Process returns false then, when the handler returns after all.
func (l *Loop) Process(msg *bus.Delivered, intake *Intake, free func()) bool {
	began := time.Now()
	d := &Message{Raw: msg, Attempt: msg.Attempt}
	l.Metrics.Arrived(l.Stage, d.Attempt)
	if !l.readSubject(d) || !l.verify(d) {
		return true // the message was rejected
	}

	// Begin the heartbeats, the trace, the measurement, and the guard that gives the handler up.
	ctx, cancel := context.WithCancelCause(l.WorkCtx)
	stopHeartbeat := l.startHeartbeat(ctx, d, cancel, intake)
	if intake.CountAttempts != nil && d.Attempt >= l.MaxDeliveries { // some deliveries may have gone to workers that only passed it on
		d.Attempt = intake.CountAttempts(l.WorkCtx, d)
	}
	ctx = l.withTrace(ctx, d, intake)
	subject := d.Subject // a copy, because a handler that was given up may still write into d
	measured := l.startMeasuring(d, intake)
	guard := l.watchHandler(ctx, func(cause error) {
		stopHeartbeat()
		measured.abandon()
		l.quarantine(d, subject, time.Since(began), cause)
		free()
	})

	handlerOutcome, err := l.tryHandler(ctx, d, intake)
	if !guard.noteReturn() {
		l.Log.Warn(
			"a handler that was given up has returned", "subject", msg.Subject, "took",
			time.Since(began),
		)
		return false
	}

	// Decide the outcome. The cause of the context's end is read before cancel sets one.
	stopHeartbeat()
	measured.end(began, err == nil && (handlerOutcome == Done || handlerOutcome == Held))
	cause := context.Cause(ctx)
	cancel(nil)

	outcome := l.decideOutcome(d, intake, handlerOutcome, err, cause)
	took := time.Since(began)
	d.endSpan(outcome, err)
	l.Metrics.Settled(l.Stage, outcome.name, took)
	l.logOutcome(d, outcome, err, took)
	return true
}

// readSubject parses the subject of a message into d, and reports whether it is valid. A message on another subject is
// rejected, because there is no job to answer to.
func (l *Loop) readSubject(d *Message) bool {
	var err error
	if d.Subject, err = message.ParseSubject(d.Raw.Subject); err != nil {
		l.rejectSubject(d, err)
		return false
	}
	switch d.Subject.Kind {
	case message.KindCancel, message.KindDeadline, message.KindRedrive, message.KindEnd:
		d.KeepsJob = true
	}
	return true
}

// verify reports whether a message is authentic, and rejects a forged one.
func (l *Loop) verify(d *Message) bool {
	if l.Bus.Log.Verify(l.WorkCtx, d.Raw) {
		return true
	}
	l.Bus.Log.Reject(l.WorkCtx, d.Raw)
	return false
}

// tryHandler calls the handler, unless the message was delivered too often. If trouble with the servers makes the
// handler fail on one of the last deliveries, it is called again, up to troubleTries times.
func (l *Loop) tryHandler(ctx context.Context, d *Message, intake *Intake) (Outcome, error) {
	// While there is trouble with the servers the number of deliveries does not count, because messages come again
	// although somebody works on them.
	isDeliveredTooOften := d.Attempt > l.MaxDeliveries && !intake.Unlimited
	if isDeliveredTooOften && !l.Bus.Conn.HadTrouble(troubleCounts) {
		return Done, fault.New( // the error decides, not Done
			fault.Internal, "pipeline: delivered %d times, and no worker came to its end",
			d.Attempt-1,
		)
	}

	outcome, err := l.callHandler(ctx, d, intake)
	isAmongLast := d.Attempt >= l.MaxDeliveries-1 && !intake.Unlimited // at most one more delivery
	for tries := 1; tries < troubleTries && isAmongLast && l.waitIfTrouble(ctx, err); tries++ {
		outcome, err = l.callHandler(ctx, d, intake)
	}
	return outcome, err
}

// logOutcome logs the outcome of a message: at level debug if nothing is wrong, and otherwise as a warning with the
// error.
func (l *Loop) logOutcome(d *Message, outcome Outcome, err error, took time.Duration) {
	level := slog.LevelWarn
	if err == nil || outcome.isNormal() {
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
// because the message or the program is at fault, and the worker goes on. With an error the outcome means nothing.
func (l *Loop) callHandler(ctx context.Context, d *Message, intake *Intake) (outcome Outcome, err error) {
	defer func() {
		if p := recover(); p != nil {
			l.Log.Error(
				"panic", "subject", d.Raw.Subject, "panic", p, "stack", string(debug.Stack()),
			)
			err = fault.New(fault.Internal, "pipeline: %s: panic: %v", l.Stage, p)
		}
	}()

	if !intake.HeadersOnly { // else the message came without its payload
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

	if l.Hook != nil { // in tests
		l.Hook(l.Stage, d.Subject)
	}
	// The computation looks at ctx, and gives way while its tenant has more than its share of the processors.
	ctx, leave := l.Processors.Enter(ctx, message.WorksFor(d.Raw.Subject, d.Raw.Header))
	defer leave()
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

// waitIfTrouble reports whether a message may be tried again at once after the error err: an attempt failed by trouble
// with the servers, and the work goes on. It waits for troubleRetry before it returns true. Such a message is tried
// again in this process, with heartbeats, and not delivered again, because the number of deliveries is there to find
// messages at which workers die.
func (l *Loop) waitIfTrouble(ctx context.Context, err error) bool {
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

// heartbeat repeats a sign of life for a message while its handler works. Each beat runs in the goroutine of a timer,
// which it sets again for the next beat.
type heartbeat struct {
	loop   *Loop
	d      *Message
	intake *Intake
	ctx    context.Context
	cancel context.CancelCauseFunc // ends the work, with a reason
	began  time.Time

	mu             sync.Mutex // held during a beat; guards what follows
	timer          *time.Timer
	due            time.Time // when the next beat should come
	isOver         bool      // no further beats
	isLooking      bool      // a goroutine asks the server whether the job has its answer
	isProgressTold bool      // the progress was published, or is not wanted
}

// startHeartbeat begins the heartbeats of a message, which go on until stop is called: when the handler returns or is
// given up.
func (l *Loop) startHeartbeat(
	ctx context.Context, d *Message, cancel context.CancelCauseFunc, intake *Intake,
) (stop func()) {
	now := time.Now()
	h := &heartbeat{
		loop: l, d: d, intake: intake, ctx: ctx, cancel: cancel, began: now, due: now.Add(l.Heartbeat),
	}
	// The sweeper's looks (Unlimited) and orders about a job (KeepsJob) have no progress. The handler may write d.KeepsJob later.
	h.isProgressTold = intake.SkipsProgress || intake.Unlimited || d.KeepsJob
	h.mu.Lock() // the first beat uses h.timer
	defer h.mu.Unlock()
	h.timer = time.AfterFunc(l.Heartbeat, h.beat)
	return h.stop
}

// beat is one heartbeat. It tells the server that the message is in work, so that the message is not delivered to
// another worker. It cancels the work if that has taken longer than the ceiling. It also starts a goroutine, for which no
// beat waits, that cancels the work if the job has its answer by now.
func (h *heartbeat) beat() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.isOver {
		return
	}
	l := h.loop
	if time.Since(h.began) > l.Ceiling && !h.intake.Unlimited {
		h.cancel(errCeiling)
	}

	h.d.Raw.ExtendDeadline()
	if !h.isProgressTold { // at the first heartbeat, so that quick work has no progress
		l.Progress(h.d.Subject.Job, l.Stage, 0, 1)
		h.isProgressTold = true
	}
	if time.Since(h.due) > l.Heartbeat { // so late that the message may have been delivered again meanwhile
		l.Bus.Conn.NoteTrouble()
	}
	if !h.intake.Unlimited && !h.isLooking {
		h.isLooking = true
		go h.lookForAnswer()
	}
	h.due = time.Now().Add(l.Heartbeat)
	h.timer.Reset(l.Heartbeat)
}

// lookForAnswer asks the server whether the job has its answer, and cancels the work if so.
func (h *heartbeat) lookForAnswer() {
	if h.loop.isAnswered(h.ctx, h.d.Subject.Job) {
		h.cancel(ErrAnswered)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.isLooking = false
}

// stop ends the heartbeats. A beat that has begun comes to its end before.
func (h *heartbeat) stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.isOver = true
	h.timer.Stop()
}
