package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
)

// deadline sets the timer of a job that has a deadline. Setting it twice is setting it once: the server keeps the last
// message of a timer's subject. A deadline beyond what models are kept for would never be heard of, and is refused.
func (w *worker) deadline(ctx context.Context, d *delivery, stored time.Time, deadlineMS int64) error {
	if deadlineMS == 0 {
		return nil
	}
	if s, err := w.bus.Stream(ctx, bus.StreamModel); err != nil {
		return err
	} else if keep := s.CachedInfo().Config.MaxAge; keep > 0 && deadlineMS > keep.Milliseconds() {
		return fault.New(fault.BadInput, "pipeline: a deadline of %d ms, jobs are kept for %v", deadlineMS, keep)
	}
	if err := overdue(stored, deadlineMS); err != nil {
		return err
	}
	return w.bus.Timer(ctx, d.subject.Lane, &wire.Deadline{
		Job: d.subject.Job, Tenant: d.tenant, Digest: d.digest, Time: stored.UnixMilli() + deadlineMS,
	})
}

// expired ends a job whose timer went off, unless it has its answer or is not the request that the timer was set for.
func (w *worker) expired(ctx context.Context, d *delivery) error {
	var m wire.Deadline
	if err := d.decode(&m); err != nil {
		return err
	}
	d.digest, d.tenant = m.Digest, m.Tenant
	if m.Job != d.subject.Job {
		return d.mismatch("job", m.Job, d.subject.Job)
	}
	if has, err := w.bus.Has(ctx, bus.StreamAnswer, wire.AnswerSubject(m.Job)); err != nil || has {
		return err
	}
	// Estimates say themselves which request they are of: they are the answer before the model is looked at, which may be a large one.
	if answered, err := w.soFar(ctx, d.subject.Lane, m.Job, m.Digest); err != nil && !errors.Is(err, bus.ErrLost) || answered {
		return ignoreForeign(err)
	}
	digest, _, err := w.submitted(ctx, m.Job)
	if errors.Is(err, bus.ErrNotFound) || err == nil && digest != m.Digest {
		w.log.Info("no deadline of this job: it is another request, or was never stored", "job", m.Job)
		return nil
	}
	if err != nil {
		return err
	}
	return ignoreForeign(w.answer(ctx, &wire.Answer{
		Job: m.Job, Tenant: m.Tenant, Digest: m.Digest, Status: wire.StatusDeadline,
		Error: &btn.ErrorInfo{Code: fault.Deadline, Message: "the deadline passed at " + time.UnixMilli(m.Time).UTC().Format(time.RFC3339Nano), Stage: string(w.stage)},
	}))
}

// cancelled ends a job that somebody cancelled, unless it has its answer.
func (w *worker) cancelled(ctx context.Context, d *delivery) error {
	var m wire.Cancel
	if err := d.decode(&m); err != nil {
		return err
	}
	if m.Job != d.subject.Job {
		return d.mismatch("job", m.Job, d.subject.Job)
	}
	digest, tenant, err := w.submitted(ctx, m.Job)
	if errors.Is(err, bus.ErrNotFound) {
		w.log.Info("nothing to cancel", "job", m.Job)
		return nil
	}
	if err != nil {
		return err
	}
	d.digest, d.tenant = digest, tenant
	if m.Digest != "" && m.Digest != digest {
		w.log.Info("nothing to cancel: the job is another request", "job", m.Job)
		return nil
	}
	reason := m.Reason
	if reason == "" {
		reason = "cancelled"
	}
	return ignoreForeign(w.answer(ctx, &wire.Answer{
		Job: m.Job, Tenant: tenant, Digest: digest, Status: wire.StatusCancelled,
		Error: &btn.ErrorInfo{Code: fault.Cancelled, Message: reason, Stage: string(w.stage)},
	}))
}

// submitted returns the digest and the tenant of the request that is stored under a job's id, whatever its lane. The error
// wraps bus.ErrNotFound if there is none. A model that cannot be read has the digest of its bytes.
func (w *worker) submitted(ctx context.Context, job string) (digest, tenant string, err error) {
	stored, err := w.bus.Get(ctx, bus.StreamModel, anyLane(job))
	if err != nil {
		return "", "", err
	}
	var m wire.Model
	if wire.Decode(stored.Data, &m) != nil {
		return wire.Digest(stored.Data), "", nil
	}
	if digest, err = m.Digest(); err != nil {
		return "", "", fault.Wrap(fault.Internal, err)
	}
	return digest, m.Tenant, nil
}

// anyLane matches the model of a job whatever its lane.
func anyLane(job string) string { return wire.Prefix + string(message.KindModel) + ".*." + job }

// ignoreForeign drops errForeign: a timer or a cancel of a request whose job was taken by another ends nothing.
func ignoreForeign(err error) error {
	if errors.Is(err, errForeign) {
		return nil
	}
	return err
}
