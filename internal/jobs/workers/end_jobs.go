package workers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
)

// expired ends a job whose timer went off, unless it has its answer or is not the request that the
// timer was set for.
func (w *Aggregate) handleDeadline(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
	var m wire.Deadline
	if err := d.Decode(&m); err != nil {
		return hop.Done, err
	}
	d.Digest = m.Digest
	d.Tenant = m.Tenant
	if m.Job != d.Subject.Job {
		return hop.Done, d.Mismatch("job", m.Job, d.Subject.Job)
	}

	// Both times are the server's. A copy of a timer's message ends no job early.
	if d.Raw.Stored.UnixMilli() < m.Time {
		w.host.Metrics.Forged(message.KindDeadline)
		w.Log.Warn("a deadline came before its time", "job", m.Job)
		return hop.Done, nil
	}

	return hop.Done, w.expire(ctx, d.Subject.Lane, &m)
}

// expire ends a job whose deadline has passed with the best estimate so far, or with an error, unless it has its answer.
func (w *Aggregate) expire(ctx context.Context, lane int, m *wire.Deadline) error {
	if has, err := w.Bus.Log.Has(ctx, bus.StreamAnswer, wire.AnswerSubject(m.Job)); err != nil || has {
		return err
	}

	// The partials of a job that grows carry the request's digest, so they may be its answer before
	// the model, which may be large, is read.
	answered, at, err := w.answerSoFar(ctx, lane, m.Job, m.Digest)
	if errors.Is(err, hop.ErrForeign) { // a timer of another request ends nothing
		return nil
	}
	if err != nil && !errors.Is(err, bus.ErrLost) || answered {
		return err
	}

	of, err := w.Submitted(ctx, message.AnyLane(m.Job))
	if errors.Is(err, bus.ErrNotFound) || err == nil && of.Digest != m.Digest && !of.Lost {
		w.Log.Info(
			"no deadline of this job: it is another request, or was never stored", "job", m.Job,
		)
		return nil
	}
	if err != nil {
		return err
	}

	reason := "the deadline passed at " + time.UnixMilli(m.Time).UTC().Format(time.RFC3339Nano)
	if at.total > 0 {
		reason += fmt.Sprintf(", with %d of %d tasks contracted", at.contracted, at.total)
	}
	d := &hop.Message{
		Subject: message.Subject{Lane: lane, Job: m.Job}, Digest: m.Digest, Tenant: m.Tenant, Asked: of.Asked,
	}
	return w.Fail(d, fault.New(fault.Deadline, "%s", reason))
}

// cancelled ends a job that somebody cancelled, unless it has its answer.
func (w *Aggregate) handleCancel(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
	var m wire.Cancel
	if err := d.Decode(&m); err != nil {
		return hop.Done, err
	}
	if m.Job != d.Subject.Job {
		return hop.Done, d.Mismatch("job", m.Job, d.Subject.Job)
	}

	of, err := w.Submitted(ctx, message.AnyLane(m.Job))
	if errors.Is(err, bus.ErrNotFound) {
		w.Log.Info("nothing to cancel", "job", m.Job)
		return hop.Done, nil
	}
	if err != nil {
		return hop.Done, err
	}

	d.Digest = of.Digest
	d.Tenant = of.Tenant
	d.Asked = of.Asked
	if m.Digest != "" && m.Digest != of.Digest && !of.Lost {
		w.Log.Info("nothing to cancel: the job is another request", "job", m.Job)
		return hop.Done, nil
	}

	return hop.Done, w.Fail(d, fault.New(fault.Cancelled, "%s", cmp.Or(m.Reason, "cancelled")))
}

// ends ends a job with the error that another stage has found.
func (w *Aggregate) handleEnd(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
	var m message.End
	if err := d.Decode(&m); err != nil {
		return hop.Done, err
	}
	d.Tenant = m.Tenant
	if m.Job != d.Subject.Job {
		return hop.Done, d.Mismatch("job", m.Job, d.Subject.Job)
	}

	var a wire.Answer
	if err := wire.Decode(m.Answer, &a); err != nil {
		d.Broken = true
		return hop.Done, err
	}
	d.Digest = a.Digest
	switch {
	case a.Job != m.Job:
		return hop.Done, d.Mismatch("the answer of job", a.Job, m.Job)
	case a.Status == wire.StatusOK:
		return hop.Done, d.Mismatch("an answer", a.Status, "an error")
	case m.Under != "" && message.NearestJob(m.Under) != m.Job:
		return hop.Done, d.Mismatch("an answer under", m.Under, m.Job)
	}
	return hop.Done, w.End(ctx, d.Subject.Lane, &a, m.Under, storedAt(m.Stored))
}
