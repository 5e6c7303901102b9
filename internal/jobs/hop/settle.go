package hop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
)

// decideOutcome acknowledges a message, has it delivered again, or ends its job with an error, and returns which of
// these it did. The handler has returned handlerOutcome or, if it failed, err. cause is why the handler's context ended;
// it is nil if the context has not ended.
func (l *Loop) decideOutcome(d *Message, intake *Intake, handlerOutcome Outcome, err, cause error) Outcome {
	if errors.Is(cause, ErrAnswered) { // a heartbeat found an answer, whatever the handler did since
		handlerOutcome, err = Done, l.answeredError(d)
	}

	// The message needs nothing more, waits, or is rebuilt.
	switch {
	case err == nil && handlerOutcome == Held:
		return Held
	case err == nil && handlerOutcome.name == laterName: // with any pause
		d.Raw.Redeliver(handlerOutcome.pause)
		return handlerOutcome
	case err == nil, errors.Is(err, ErrAnswered):
		d.Raw.Acknowledge()
		return Done
	case errors.Is(err, ErrLater), l.WorkCtx.Err() != nil: // not now, or the process ends
		d.Raw.Redeliver(0)
		return Later(0)
	case errors.Is(cause, errCeiling): // ends the job below, with this error in place of the context's
		err = fault.New(
			fault.OverBudget, "pipeline: %s: the ceiling of %v for one message is reached", l.Stage,
			l.Ceiling,
		)
	case errors.Is(err, ErrForeign):
		return l.giveUp(d, err, l.isOfStoredRequest(d)) // if d belongs to the stored request, its job ends with an error
	case l.isRebuildable(d, err):
		return l.rebuild(d, err)
	}

	if errors.Is(err, bus.ErrNoStream) {
		l.Bus.Conn.NoteTrouble() // failures while the stream is missing are trouble with the servers
		if mendErr := l.Mend(l.WorkCtx); mendErr != nil {
			l.Bus.Conn.Trouble.Warn(l.Log, "cannot make what is missing", "error", mendErr)
		}
	}

	switch CodeOf(err) {
	case fault.Infrastructure, fault.Internal:
		return l.retry(d, intake, err)
	}
	return l.endFailed(d, err)
}

// answeredError returns ErrForeign if the stored answer of a message's job is that of another request, and ErrAnswered
// if it is not, or if that cannot be found out.
func (l *Loop) answeredError(d *Message) error {
	if d.Digest != "" && errors.Is(l.CheckUnanswered(l.WorkCtx, d.Subject.Job, d.Digest), ErrForeign) {
		return ErrForeign
	}
	return ErrAnswered
}

// retry has a message delivered again after a failure of the infrastructure or the program, which may pass. A message
// that has had MaxDeliveries is given up, unless the intake is unlimited or trouble with the servers explains the
// failure.
func (l *Loop) retry(d *Message, intake *Intake, err error) Outcome {
	code := CodeOf(err)
	isExplained := code == fault.Infrastructure && d.Attempt < troubleLimit*l.MaxDeliveries && l.Bus.Conn.TroubleExplains(err, troubleOver)
	if d.Attempt < l.MaxDeliveries || intake.Unlimited || isExplained {
		d.Raw.Redeliver(Backoff(code, d.Attempt))
		return Retry
	}
	return l.giveUp(d, err, true)
}

// endFailed ends the job of a message with an error. A malformed message becomes a dead letter as well.
func (l *Loop) endFailed(d *Message, err error) Outcome {
	if d.IsMalformed {
		return l.giveUp(d, err, true)
	}
	if writeErr := l.EndWithError(d, err); writeErr != nil {
		l.Log.Error("cannot write an answer", "job", d.Subject.Job, "error", writeErr)
		d.Raw.Redeliver(Backoff(fault.Infrastructure, d.Attempt))
		return Retry
	}
	d.Raw.Acknowledge()
	return Failed
}

// isOfStoredRequest reports whether a message has the digest of its job's stored request. It reports false if that
// cannot be found out.
func (l *Loop) isOfStoredRequest(d *Message) bool {
	ctx, cancel := context.WithTimeout(l.WorkCtx, WriteTimeout)
	defer cancel()
	s, err := l.Submission(ctx, wire.ModelSubject(d.Subject.Lane, d.Subject.Job))
	return err == nil && s.Digest == d.Digest
}

// CodeOf returns the code of an error as fault.CodeOf does, except that a context error without a code is a timeout of
// this program, and not the job's deadline.
func CodeOf(err error) fault.Code {
	var coded *fault.Error
	if !errors.As(err, &coded) &&
		(errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		return fault.Infrastructure
	}
	return fault.CodeOf(err)
}

// Backoff returns the pause before the next delivery of a message that has failed with a code. For an internal failure,
// which is likely to be repeated, it is 0.1 s. For others it grows by a factor of 4 with each attempt, from 0.1 s to 10
// s.
func Backoff(code fault.Code, attempt int) time.Duration {
	const shortest, longest = 100 * time.Millisecond, 10 * time.Second
	if code == fault.Internal {
		return shortest
	}
	doublings := min(2*(attempt-1), 10) // two for each attempt; ten are above longest
	return min(shortest<<doublings, longest)
}

// Refuse decides the outcome of a message whose handler returned Held, and whose work failed with err after that.
func (l *Loop) Refuse(d *Message, err error) { l.decideOutcome(d, &Intake{}, Done, err, nil) }

// rejectSubject gives up a message whose subject has no valid job id. Streams cannot check ids, so a request under an
// invalid id is stored and acknowledged. A client that waits under that id gets the error as its answer. If the answer
// cannot be written, the message is delivered again.
func (l *Loop) rejectSubject(d *Message, err error) {
	l.Log.Error("a message on a wrong subject", "subject", d.Raw.Subject, "error", err)
	if id, isModel := modelID(d.Raw.Subject); isModel && l.FromClients {
		if err := l.answerNameless(d, id); err != nil {
			l.Log.Error("cannot write an answer", "subject", d.Raw.Subject, "error", err)
			d.Raw.Redeliver(Backoff(fault.Infrastructure, d.Attempt))
			return
		}
	}
	d.Raw.Terminate(fmt.Sprintf("%.200s", err))
}

// modelID returns the job id, valid or not, in the subject of a request. isModel is false for other subjects.
func modelID(subject string) (id string, isModel bool) {
	rest, isModel := strings.CutPrefix(subject, wire.Prefix+string(message.KindModel)+".")
	if !isModel {
		return "", false
	}
	_, id, isModel = strings.Cut(rest, ".")
	return id, isModel
}

// answerNameless stores a dead letter of a request under an invalid id, and answers the request on the subject on which
// its sender waits. The dead letter and the answer name the job by the nearest valid id. If the id has a wildcard or is
// very long, no subject can have the answer, and the request has none.
func (l *Loop) answerNameless(d *Message, id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), WriteTimeout)
	defer cancel()
	err := fault.New(fault.BadInput, "pipeline: job %.80q is not [A-Za-z0-9_-]{1,64}", id)

	d.Subject = message.Subject{Kind: message.KindModel, Job: message.NearestJob(id)}
	d.Data = d.Raw.Data
	if err := l.deadLetter(ctx, d, err); err != nil {
		return err
	}

	hasAnswerSubject := !strings.ContainsAny(id, "*>") && len(id) <= bus.LongestSubject/2 // half of it, for the rest of the subject
	if !hasAnswerSubject {
		return nil
	}

	info := l.ErrorInfo(err)
	const anyLane = 0 // such a job is in no lane of its own
	return l.EndJob(ctx, anyLane, &wire.Answer{
		Job:    d.Subject.Job,
		Digest: wire.Digest(d.Data),
		Status: wire.StatusError,
		Error:  &info,
	}, id, d.Raw.Stored)
}
