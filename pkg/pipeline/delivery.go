package pipeline

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/internal/streams"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// The causes for which work is stopped or a message set aside. None of them reaches a client.
var (
	errAnswered = errors.New("pipeline: the job has its answer")
	errCeiling  = errors.New("pipeline: a message was worked on for too long")
	errHeld     = errors.New("pipeline: acknowledged later")
	errLater    = errors.New("pipeline: not now")
	errForeign  = errors.New("pipeline: the job's id belongs to another request")
)

// delivery is one message in the hands of a stage.
type delivery struct {
	msg     *bus.Delivered
	subject message.Subject
	data    []byte // the payload, resolved
	attempt int    // 1 for the first delivery
	stored  time.Time
	digest  string // of the request, as soon as it is known
	tenant  string
	queries int  // of the request, 0 if it is not known
	broken  bool // the message could not be decoded, or is not what its subject says
	silent  bool // whatever is wrong with the message does not end the job
	retry   time.Duration
}

// decode reads the payload into m. What cannot be read is the sender's fault, and never comes right.
func (d *delivery) decode(m wire.Message) error {
	err := wire.Decode(d.data, m)
	d.broken = err != nil
	return err
}

// mismatch is for a message whose content contradicts its subject.
func (d *delivery) mismatch(what string, got, want any) error {
	d.broken = true
	return fault.New(fault.BadInput, "pipeline: %s: the message says %s %v, its subject %v", d.subject, what, got, want)
}

// process takes one message from delivery to acknowledgement. Nothing that the message holds brings it down. A handler that does not
// return is given up: then free is called, and process itself reports false when it has returned after all.
func (w *worker) process(msg *bus.Delivered, in intake, free func()) bool {
	began := now()
	d := &delivery{msg: msg, attempt: msg.Attempt, stored: msg.Stored}
	w.Metrics.arrived(w.stage, d.attempt)
	var err error
	if d.subject, err = message.ParseSubject(msg.Subject); err != nil {
		w.drop(d, err) // no job to answer to
		return true
	}
	switch d.subject.Kind {
	case message.KindCancel, message.KindDeadline, message.KindRedrive:
		d.silent = true
	}
	ctx, cancel := context.WithCancelCause(w.hard)
	stop, subject := w.heartbeat(ctx, d, cancel, in), d.subject
	guard := w.watch(ctx, d, began, func(cause error) {
		stop()
		w.quarantine(d, subject, now().Sub(began), cause)
		free()
	})
	if d.attempt > w.MaxDeliveries && !in.patient && !in.watches {
		err = fault.New(fault.Internal, "pipeline: delivered %d times, and no worker came to its end", d.attempt-1)
	} else {
		err = w.attempt(ctx, d, in)
	}
	if !guard.returned() {
		w.log.Warn("a handler that was given up has returned", "subject", msg.Subject, "took", now().Sub(began))
		return false
	}
	stop()
	cause := context.Cause(ctx)
	cancel(nil)

	outcome := w.settle(d, in, err, cause)
	took := now().Sub(began)
	w.Metrics.settled(w.stage, outcome, took)
	level := slog.LevelWarn
	if err == nil || outcome == outcomeDone || outcome == outcomeHeld || outcome == outcomeLater {
		level, err = slog.LevelDebug, nil
	}
	if !w.log.Enabled(w.hard, level) {
		return true
	}
	log := w.log.With("subject", msg.Subject, "job", d.subject.Job, "lane", d.subject.Lane, "attempt", d.attempt)
	if err != nil {
		log = log.With("error", err)
	}
	log.Log(w.hard, level, "message", "outcome", outcome, "took", took)
	return true
}

// attempt resolves the payload and calls the stage. A panic becomes an internal error: the message is at fault or the
// program is, and the worker goes on either way.
func (w *worker) attempt(ctx context.Context, d *delivery, in intake) (err error) {
	defer func() {
		if p := recover(); p != nil {
			w.log.Error("panic", "subject", d.msg.Subject, "panic", p, "stack", string(debug.Stack()))
			err = fault.New(fault.Internal, "pipeline: %s: panic: %v", w.stage, p)
		}
	}()
	if !in.Headers {
		if d.data, err = w.bus.Payload(ctx, d.msg.Header, d.msg.Data); err != nil {
			d.broken = fault.CodeOf(err) == fault.BadInput
			return err
		}
	}
	if w.hook != nil {
		w.hook(w.stage, d.subject)
	}
	return in.handle(ctx, d)
}

// heartbeat tells the server every Heartbeat that the message is being worked on, from a goroutine of its own, and looks
// whether the job has its answer by then. It stops at the ceiling. The function it returns waits for its end.
func (w *worker) heartbeat(ctx context.Context, d *delivery, cancel context.CancelCauseFunc, in intake) (stop func()) {
	// Progress of contractions is the aggregator's to tell; a message that waits in the sweeper's hands is none.
	began, over, told := now(), false, in.Name == streams.Tasks.Name || in.patient
	var mu sync.Mutex // held while it beats
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(w.Heartbeat, func() {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case over:
			return
		case now().Sub(began) > w.Ceiling && !in.patient:
			cancel(errCeiling)
			return
		}
		d.msg.Working()
		if !told && !d.silent {
			w.progress(d.subject.Job, w.stage, 0, 1)
			told = true
		}
		if !in.patient && w.answered(ctx, d.subject.Job) {
			cancel(errAnswered)
			return
		}
		timer.Reset(w.Heartbeat)
	})
	return func() {
		mu.Lock()
		defer mu.Unlock()
		over = true
		timer.Stop()
	}
}

// The outcomes of a delivery, as counted.
const (
	outcomeDone   = "done"   // acknowledged
	outcomeHeld   = "held"   // acknowledged later
	outcomeLater  = "later"  // to be delivered again, nothing is wrong
	outcomeRetry  = "retry"  // to be delivered again after a failure
	outcomeFailed = "failed" // the job ended with an error
	outcomeDead   = "dead"   // the job ended with an error, the message is a dead letter
)

// settle decides what becomes of a message: acknowledge, deliver again, or end the job.
func (w *worker) settle(d *delivery, in intake, err, cause error) string {
	if errors.Is(cause, errAnswered) { // found by the heartbeat, which does not know whose answer it is
		err = errAnswered
		if d.digest != "" && errors.Is(w.unanswered(w.hard, d.subject.Job, d.digest), errForeign) {
			err = errForeign
		}
	}
	switch {
	case errors.Is(err, errHeld):
		return outcomeHeld
	case err == nil, errors.Is(err, errAnswered):
		return w.acknowledge(d, outcomeDone)
	case errors.Is(err, errLater):
		d.msg.Again(d.retry)
		return outcomeLater
	case w.hard.Err() != nil: // the drain is over
		d.msg.Again(0)
		return outcomeLater
	case errors.Is(cause, errCeiling):
		err = fault.New(fault.OverBudget, "pipeline: %s: the ceiling of %v for one message is reached", w.stage, w.Ceiling)
	case errors.Is(err, errForeign):
		return w.bury(d, err, false)
	case w.rebuildable(d, err):
		return w.rebuild(d, err)
	}
	if errors.Is(err, bus.ErrNoStream) {
		if mended := w.mender.Mend(w.hard); mended != nil {
			w.log.Warn("cannot make what is missing", "error", mended)
		}
	}
	code := codeOf(err)
	switch code {
	case fault.Infrastructure, fault.Internal:
		if d.attempt < w.MaxDeliveries || in.patient {
			d.msg.Again(backoff(code, d.attempt))
			return outcomeRetry
		}
		return w.bury(d, err, true)
	}
	if d.broken {
		return w.bury(d, err, true)
	}
	if failed := w.fail(d, err); failed != nil {
		w.log.Error("cannot write an answer", "job", d.subject.Job, "error", failed)
		d.msg.Again(backoff(fault.Infrastructure, d.attempt))
		return outcomeRetry
	}
	return w.acknowledge(d, outcomeFailed)
}

// codeOf is fault.CodeOf, but a bare context error is a timeout of ours and not the job's deadline.
func codeOf(err error) fault.Code {
	var coded *fault.Error
	if !errors.As(err, &coded) && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		return fault.Infrastructure
	}
	return fault.CodeOf(err)
}

// backoff is the pause before the next delivery. What passes gets longer pauses, what is likely to fail again short ones.
func backoff(code fault.Code, attempt int) time.Duration {
	if code == fault.Internal {
		return 100 * time.Millisecond
	}
	return min(100*time.Millisecond<<min(2*(attempt-1), 10), 10*time.Second)
}

// acknowledge does not wait for the server's word: an output was stored before, so an acknowledgement that is lost costs a
// repetition and nothing else.
func (w *worker) acknowledge(d *delivery, outcome string) string {
	d.msg.Done()
	return outcome
}

// drop sets aside a message on a subject that names no job. No stream can tell an id that is none, so a model under one is stored,
// acknowledged, and answered: whoever waits for it under that id learns what is wrong.
func (w *worker) drop(d *delivery, err error) {
	w.log.Error("a message on a wrong subject", "subject", d.msg.Subject, "error", err)
	if id, isModel := modelID(d.msg.Subject); isModel && w.stage == StageReparam {
		if err := w.answerNameless(d, id); err != nil {
			w.log.Error("cannot write an answer", "subject", d.msg.Subject, "error", err)
			d.msg.Again(backoff(fault.Infrastructure, d.attempt))
			return
		}
	}
	d.msg.Never(fmt.Sprintf("%.200s", err))
}

// modelID is the id in the subject of a model, whatever it is.
func modelID(subject string) (id string, isModel bool) {
	rest, isModel := strings.CutPrefix(subject, wire.Prefix+string(message.KindModel)+".")
	if !isModel {
		return "", false
	}
	_, id, isModel = strings.Cut(rest, ".")
	return id, isModel
}

// answerNameless keeps a dead letter of a request under an id that is none, and answers it on the subject on which its sender waits. Both
// name the job by as much of its id as is one. An id with a wildcard has no subject of its own to be answered on.
func (w *worker) answerNameless(d *delivery, id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), writeTimeout)
	defer cancel()
	err := fault.New(fault.BadInput, "pipeline: job %.80q is not [A-Za-z0-9_-]{1,64}", id)
	d.subject = message.Subject{Kind: message.KindModel, Job: message.NearestJob(id)}
	d.data = d.msg.Data
	if err := w.deadLetter(ctx, d, err); err != nil {
		return err
	}
	if strings.ContainsAny(id, "*>") {
		return nil
	}
	info := w.info(err)
	a := &wire.Answer{Job: d.subject.Job, Digest: wire.Digest(d.data), Status: wire.StatusError, Error: &info}
	b, err := wire.Encode(a)
	if err != nil {
		return err
	}
	_, err = w.bus.Once(ctx, bus.StreamAnswer, &nats.Msg{Subject: wire.AnswerSubject(id), Header: wire.Headers(a, a.Job, a.Digest, ""), Data: b})
	return err
}
