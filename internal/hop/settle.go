package hop

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// settle decides what becomes of a message: acknowledge, deliver again, or end the job.
func (l *Loop) settle(d *Message, in *Intake, asked Outcome, err, cause error) Outcome {
	if errors.Is(cause, ErrAnswered) { // found by the heartbeat, which does not know whose answer it is
		asked, err = Done, ErrAnswered
		if d.Digest != "" && errors.Is(l.Unanswered(l.Hard, d.Subject.Job, d.Digest), ErrForeign) {
			err = ErrForeign
		}
	}
	switch {
	case err == nil && asked == Held:
		return Held
	case err == nil && asked.name == later:
		d.Raw.Again(asked.after)
		return asked
	case err == nil, errors.Is(err, ErrAnswered):
		return l.acknowledge(d, Done)
	case errors.Is(err, ErrLater), l.Hard.Err() != nil: // not now; or the drain is over
		d.Raw.Again(0)
		return Later(0)
	case errors.Is(cause, errCeiling):
		err = fault.New(fault.OverBudget, "pipeline: %s: the ceiling of %v for one message is reached", l.Stage, l.Ceiling)
	case errors.Is(err, ErrForeign):
		return l.bury(d, err, false)
	case l.rebuildable(d, err):
		return l.rebuild(d, err)
	}
	if errors.Is(err, bus.ErrNoStream) {
		if mended := l.Mend(l.Hard); mended != nil {
			l.Log.Warn("cannot make what is missing", "error", mended)
		}
	}
	code := CodeOf(err)
	switch code {
	case fault.Infrastructure, fault.Internal:
		if d.Attempt < l.MaxDeliveries || in.Patient {
			d.Raw.Again(Backoff(code, d.Attempt))
			return Retry
		}
		return l.bury(d, err, true)
	}
	if d.Broken {
		return l.bury(d, err, true)
	}
	if failed := l.Fail(d, err); failed != nil {
		l.Log.Error("cannot write an answer", "job", d.Subject.Job, "error", failed)
		d.Raw.Again(Backoff(fault.Infrastructure, d.Attempt))
		return Retry
	}
	return l.acknowledge(d, Failed)
}

// CodeOf is fault.CodeOf, but a bare context error is a timeout of ours and not the job's deadline.
func CodeOf(err error) fault.Code {
	var coded *fault.Error
	if !errors.As(err, &coded) && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		return fault.Infrastructure
	}
	return fault.CodeOf(err)
}

// Backoff is the pause before the next delivery. What passes gets longer pauses, what is likely to fail again short ones.
func Backoff(code fault.Code, attempt int) time.Duration {
	if code == fault.Internal {
		return 100 * time.Millisecond
	}
	return min(100*time.Millisecond<<min(2*(attempt-1), 10), 10*time.Second)
}

// acknowledge does not wait for the server's word: an output was stored before, so an acknowledgement that is lost costs a
// repetition and nothing else.
func (l *Loop) acknowledge(d *Message, outcome Outcome) Outcome {
	d.Raw.Done()
	return outcome
}

// Refuse settles a message that its handler held, after a failure.
func (l *Loop) Refuse(d *Message, err error) { l.settle(d, &Intake{}, Done, err, nil) }

// drop sets aside a message on a subject that names no job. No stream can tell an id that is none, so a model under one is stored,
// acknowledged, and answered: whoever waits for it under that id learns what is wrong.
func (l *Loop) drop(d *Message, err error) {
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
func (l *Loop) answerNameless(d *Message, id string) error {
	ctx, cancel := context.WithTimeout(context.Background(), WriteTimeout)
	defer cancel()
	err := fault.New(fault.BadInput, "pipeline: job %.80q is not [A-Za-z0-9_-]{1,64}", id)
	d.Subject = message.Subject{Kind: message.KindModel, Job: message.NearestJob(id)}
	d.Data = d.Raw.Data
	if err := l.deadLetter(ctx, d, err); err != nil {
		return err
	}
	if strings.ContainsAny(id, "*>") {
		return nil
	}
	info := l.Info(err)
	a := &wire.Answer{Job: d.Subject.Job, Digest: wire.Digest(d.Data), Status: wire.StatusError, Error: &info}
	b, err := wire.Encode(a)
	if err != nil {
		return err
	}
	_, err = l.Bus.Once(
		ctx, bus.StreamAnswer,
		&nats.Msg{Subject: wire.AnswerSubject(id), Header: message.Headers(a, a.Job, a.Digest, ""), Data: b},
	)
	return err
}
