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

// decideOutcome decides the outcome of a message: it is acknowledged or delivered again, or its job ends
// with an error. The handler asked for an outcome or returned err; cause is why its context ended,
// if it did.
func (l *Loop) decideOutcome(d *Message, intake *Intake, asked Outcome, err, cause error) Outcome {
	if errors.Is(cause, ErrAnswered) {
		// The heartbeat found an answer, and does not know whose it is.
		asked = Done
		err = ErrAnswered
		if d.Digest != "" && errors.Is(l.CheckUnanswered(l.Hard, d.Subject.Job, d.Digest), ErrForeign) {
			err = ErrForeign
		}
	}

	switch {
	case err == nil && asked == Held:
		return Held
	case err == nil && asked.name == laterName:
		d.Raw.Again(asked.after)
		return asked
	case err == nil, errors.Is(err, ErrAnswered):
		d.Raw.Done()
		return Done
	case errors.Is(err, ErrLater), l.Hard.Err() != nil: // not now, or the drain is over
		d.Raw.Again(0)
		return Later(0)
	case errors.Is(cause, errCeiling):
		err = fault.New(
			fault.OverBudget, "pipeline: %s: the ceiling of %v for one message is reached", l.Stage,
			l.Ceiling,
		)
	case errors.Is(err, ErrForeign):
		return l.giveUp(d, err, l.isStoredRequests(d)) // if d is the stored request's own, the job ends: the other message is foreign
	case l.isRebuildable(d, err):
		return l.rebuild(d, err)
	}

	if errors.Is(err, bus.ErrNoStream) {
		l.Bus.Conn.Unsettle() // until it is there no failure counts
		if mendErr := l.Mend(l.Hard); mendErr != nil {
			l.Bus.Conn.Trouble.Warn(l.Log, "cannot make what is missing", "error", mendErr)
		}
	}

	// The others are failures: of the infrastructure or the program, which may pass, or of the job.
	code := CodeOf(err)
	switch code {
	case fault.Infrastructure, fault.Internal:
		mayWait := code == fault.Infrastructure && d.Attempt < troubleLimit*l.MaxDeliveries && l.Bus.Conn.Explains(err, troubleOver)
		if d.Attempt < l.MaxDeliveries || intake.Unlimited || mayWait {
			d.Raw.Again(Backoff(code, d.Attempt))
			return Retry
		}
		return l.giveUp(d, err, true)
	}
	if d.IsMalformed {
		return l.giveUp(d, err, true)
	}
	if failErr := l.EndWithError(d, err); failErr != nil {
		l.Log.Error("cannot write an answer", "job", d.Subject.Job, "error", failErr)
		d.Raw.Again(Backoff(fault.Infrastructure, d.Attempt))
		return Retry
	}
	d.Raw.Done()
	return Failed
}

// isStoredRequests reports whether a message belongs to its job's stored request.
func (l *Loop) isStoredRequests(d *Message) bool {
	ctx, cancel := context.WithTimeout(l.Hard, WriteTimeout)
	defer cancel()
	s, err := l.Submission(ctx, wire.ModelSubject(d.Subject.Lane, d.Subject.Job))
	return err == nil && s.Digest == d.Digest
}

// CodeOf is fault.CodeOf, except that a context error without a code is a timeout of this program
// and not the job's deadline.
func CodeOf(err error) fault.Code {
	var coded *fault.Error
	if !errors.As(err, &coded) &&
		(errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		return fault.Infrastructure
	}
	return fault.CodeOf(err)
}

// Backoff returns the pause before the next delivery. For failures that may pass it doubles twice
// per attempt, from 0.1 s to 10 s; for those likely to be repeated it is short.
func Backoff(code fault.Code, attempt int) time.Duration {
	if code == fault.Internal {
		return 100 * time.Millisecond
	}
	return min(100*time.Millisecond<<min(2*(attempt-1), 10), 10*time.Second)
}

// Refuse settles a message that its handler held, after a failure.
func (l *Loop) Refuse(d *Message, err error) { l.decideOutcome(d, &Intake{}, Done, err, nil) }

// rejectSubject gives up a message whose subject has no valid job id. A stream cannot check ids, so a model
// under an invalid one is stored, acknowledged, and answered: a client that waits under that id
// learns the error.
func (l *Loop) rejectSubject(d *Message, err error) {
	l.Log.Error("a message on a wrong subject", "subject", d.Raw.Subject, "error", err)
	if id, isModel := modelID(d.Raw.Subject); isModel && l.FromClients {
		if err := l.answerNameless(d, id); err != nil {
			l.Log.Error("cannot write an answer", "subject", d.Raw.Subject, "error", err)
			d.Raw.Again(Backoff(fault.Infrastructure, d.Attempt))
			return
		}
	}
	d.Raw.Never(fmt.Sprintf("%.200s", err))
}

// modelID returns the id in the subject of a model, valid or not.
func modelID(subject string) (id string, isModel bool) {
	rest, isModel := strings.CutPrefix(subject, wire.Prefix+string(message.KindModel)+".")
	if !isModel {
		return "", false
	}
	_, id, isModel = strings.Cut(rest, ".")
	return id, isModel
}

// answerNameless stores a dead letter of a request under an invalid id, and answers it on the
// subject on which its sender waits. Both have the part of the id that is valid. An id with a
// wildcard, or a very long one, has no subject to be answered on.
func (l *Loop) answerNameless(d *Message, id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), WriteTimeout)
	defer cancel()
	err := fault.New(fault.BadInput, "pipeline: job %.80q is not [A-Za-z0-9_-]{1,64}", id)

	d.Subject = message.Subject{Kind: message.KindModel, Job: message.NearestJob(id)}
	d.Data = d.Raw.Data
	if err := l.deadLetter(ctx, d, err); err != nil {
		return err
	}

	if strings.ContainsAny(id, "*>") || len(id) > bus.LongestSubject/2 {
		return nil
	}

	info := l.ErrorInfo(err)
	return l.EndJob(ctx, 0, &wire.Answer{
		Job:    d.Subject.Job,
		Digest: wire.Digest(d.Data),
		Status: wire.StatusError,
		Error:  &info,
	}, id, d.Raw.Stored)
}
