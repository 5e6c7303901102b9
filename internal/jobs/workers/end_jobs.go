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

// handleDeadline ends a job whose timer went off, unless the job has its answer, or the timer belongs to another
// request.
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

	// Both times are of the server's clock. So nobody ends a job early by a copy of its timer's message.
	if d.Raw.Stored.UnixMilli() < m.Time {
		w.host.Metrics.Forged(message.KindDeadline)
		w.Log.Warn("a deadline came before its time", "job", m.Job)
		return hop.Done, nil
	}

	return hop.Done, w.expire(ctx, d.Subject.Lane, &m)
}

// expire ends a job whose deadline has passed, unless it has its answer: with the best estimate so far or, if there is
// none, with an error.
func (w *Aggregate) expire(ctx context.Context, lane int, m *wire.Deadline) error {
	if isAnswered, err := w.Bus.Log.Has(ctx, bus.StreamAnswer, wire.AnswerSubject(m.Job)); err != nil || isAnswered {
		return err
	}

	// Partials carry the digest of their request. So they may become the answer before the model, which may be large, is read.
	answered, progress, err := w.answerSoFar(ctx, lane, m.Job, m.Digest)
	switch {
	case errors.Is(err, hop.ErrForeign): // the timer of another request
		return nil
	case errors.Is(err, bus.ErrLost) && !answered: // the partials have no plan any more; the job can still end with an error
	case err != nil, answered:
		return err
	}
	return w.expireWithError(ctx, lane, m, progress)
}

// expireWithError ends a job whose deadline has passed with an error that states the progress, unless the deadline is
// that of another request under the same id.
func (w *Aggregate) expireWithError(ctx context.Context, lane int, m *wire.Deadline, progress taskProgress) error {
	request, err := w.Submission(ctx, message.AnyLaneFilter(m.Job))
	isOtherRequest := err == nil && request.Digest != m.Digest && !request.IsLost // the digest of a lost request may not be its own
	if errors.Is(err, bus.ErrNotFound) || isOtherRequest {
		w.Log.Info(
			"no deadline of this job: it is another request, or was never stored", "job", m.Job,
		)
		return nil
	}
	if err != nil {
		return err
	}

	reason := "the deadline passed at " + time.UnixMilli(m.Time).UTC().Format(time.RFC3339Nano)
	if progress.total > 0 {
		reason += fmt.Sprintf(", with %d of %d tasks contracted", progress.contracted, progress.total)
	}
	d := &hop.Message{
		Subject: message.Subject{Lane: lane, Job: m.Job}, Digest: m.Digest, Tenant: m.Tenant, JobStored: request.StoredAt,
	}
	return w.EndWithError(d, fault.New(fault.Deadline, "%s", reason))
}

// handleCancel ends a job that somebody cancelled, unless it has its answer.
func (w *Aggregate) handleCancel(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
	var m wire.Cancel
	if err := d.Decode(&m); err != nil {
		return hop.Done, err
	}
	if m.Job != d.Subject.Job {
		return hop.Done, d.Mismatch("job", m.Job, d.Subject.Job)
	}

	request, err := w.Submission(ctx, message.AnyLaneFilter(m.Job))
	if errors.Is(err, bus.ErrNotFound) {
		w.Log.Info("nothing to cancel", "job", m.Job)
		return hop.Done, nil
	}
	if err != nil {
		return hop.Done, err
	}

	d.Digest = request.Digest
	d.Tenant = request.Tenant
	d.JobStored = request.StoredAt
	isOtherRequest := m.Digest != "" && m.Digest != request.Digest && !request.IsLost // the digest of a lost request may not be its own
	if isOtherRequest {
		w.Log.Info("nothing to cancel: the job is another request", "job", m.Job)
		return hop.Done, nil
	}

	return hop.Done, w.EndWithError(d, fault.New(fault.Cancelled, "%s", cmp.Or(m.Reason, "cancelled")))
}

// handleEnd ends a job with the error that another stage has found. The message has the answer in encoded form. If the
// job's id is invalid, the answer is for the nearest valid id, and is stored under the invalid one.
func (w *Aggregate) handleEnd(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
	var m message.End
	if err := d.Decode(&m); err != nil {
		return hop.Done, err
	}
	d.Tenant = m.Tenant
	if m.Job != d.Subject.Job {
		return hop.Done, d.Mismatch("job", m.Job, d.Subject.Job)
	}

	var answer wire.Answer
	if err := wire.Decode(m.Answer, &answer); err != nil {
		d.IsMalformed = true
		return hop.Done, err
	}
	d.Digest = answer.Digest

	// The answer has to be an error, and of this job.
	switch {
	case answer.Job != m.Job:
		return hop.Done, d.Mismatch("the answer of job", answer.Job, m.Job)
	case answer.Status == wire.StatusOK:
		return hop.Done, d.Mismatch("an answer", answer.Status, "an error")
	case m.Under != "" && message.NearestJob(m.Under) != m.Job:
		return hop.Done, d.Mismatch("an answer under", m.Under, m.Job)
	}
	return hop.Done, w.EndJob(ctx, d.Subject.Lane, &answer, m.Under, storedAt(m.Stored))
}
