package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
)

// reparam turns a model into a network: model.<lane>.<job> → network.<lane>.<job>.
func (w *worker) reparam(ctx context.Context, d *delivery) error {
	if bus.Moved(d.msg.Header) {
		return w.moved(ctx, d)
	}
	return w.reparameterise(ctx, d, d.stored)
}

// moved takes a model that was moved to the end of its stream, because its job takes long or is to be done again. Where the job is under
// way only its timer is set again: that may have been left behind.
func (w *worker) moved(ctx context.Context, d *delivery) error {
	stored := bus.StoredAt(d.msg.Header, d.stored)
	begun, err := w.begun(ctx, d.subject.Lane, d.subject.Job)
	if err != nil {
		return err
	}
	if !begun {
		return w.reparameterise(ctx, d, stored)
	}
	var m wire.Model
	if err := d.decode(&m); err != nil {
		return err
	}
	digest, err := m.Digest()
	if err != nil {
		return fault.Wrap(fault.BadInput, err)
	}
	d.digest, d.tenant, d.queries = digest, m.Tenant, len(m.Queries)
	return w.deadline(ctx, d, stored, m.DeadlineMS)
}

// replayed is the age from which on a model is taken for one that comes again: a consumer that was made anew begins with the oldest, and most
// of those have their answer, which is looked up before anything is computed.
const replayed = 10 * time.Second

// redriven starts a stored job again. The kept model is the source. The message stays until the job has its answer, and comes
// back now and then: the sweeper, which looks after each job once, does not know of those that were started again later.
func (w *worker) redriven(ctx context.Context, d *delivery) error {
	var r message.Redrive
	if err := d.decode(&r); err != nil {
		return err
	}
	if r.Job != d.subject.Job {
		return d.mismatch("job", r.Job, d.subject.Job)
	}
	if w.SweepAfter < 0 {
		return w.restart(ctx, d, &r)
	}
	d.retry = w.SweepAfter
	needed, err := d.attempt == 1, error(nil)
	if !needed {
		if needed, err = w.stalled(ctx, d.subject.Lane, r.Job); err == nil && !needed {
			if has, err := w.bus.Has(ctx, bus.StreamAnswer, wire.AnswerSubject(r.Job)); err == nil && has {
				return nil
			}
		}
	}
	if err == nil && needed {
		err = w.restart(ctx, d, &r)
	}
	if err == nil || fault.CodeOf(err) == fault.Infrastructure {
		return errLater // it is no failure of the job that it cannot be looked after just now
	}
	return err
}

// restart makes the network of a stored job and passes it on.
func (w *worker) restart(ctx context.Context, d *delivery, r *message.Redrive) error {
	m, err := w.bus.Get(ctx, bus.StreamModel, wire.ModelSubject(d.subject.Lane, d.subject.Job))
	if errors.Is(err, bus.ErrNotFound) {
		w.log.Warn("nothing to start again: the model is gone", "job", r.Job)
		return nil
	}
	if err != nil {
		return err
	}
	again := *d
	again.data, again.silent = m.Data, false
	err = w.reparameterise(ctx, &again, bus.StoredAt(m.Header, m.Time))
	d.data, d.digest, d.tenant, d.queries, d.broken, d.silent = again.data, again.digest, again.tenant, again.queries, again.broken, false
	return err
}

// reparameterise works on the model in d.data, which was stored at that time.
func (w *worker) reparameterise(ctx context.Context, d *delivery, stored time.Time) error {
	var m wire.Model
	if err := d.decode(&m); err != nil {
		return err
	}
	if m.Job != d.subject.Job {
		return d.mismatch("job", m.Job, d.subject.Job)
	}
	digest, err := m.Digest()
	if err != nil {
		return fault.Wrap(fault.BadInput, err)
	}
	d.digest, d.tenant, d.queries = digest, m.Tenant, len(m.Queries)
	if d.attempt > 1 || d.subject.Kind == message.KindRedrive || bus.Moved(d.msg.Header) || now().Sub(stored) > replayed {
		if err := w.unanswered(ctx, m.Job, digest); err != nil {
			return err
		}
	}
	if err := w.deadline(ctx, d, stored, m.DeadlineMS); err != nil {
		return err
	}
	began := now()
	blob, queries, err := w.prepare(ctx, &m, d.data, d.attempt > 1 || d.subject.Kind == message.KindRedrive)
	if err != nil {
		return err
	}
	out := &message.Network{
		Job: m.Job, Tenant: m.Tenant, Digest: digest, Blob: blob, Queries: queries, Settings: m.Settings,
		Stored: stored.UnixMilli(), DeadlineMS: m.DeadlineMS, Timings: map[string]float64{string(w.stage): milliseconds(began)},
	}
	w.next.Spend(d.subject.Lane, 1)
	if err := w.forward(ctx, bus.StreamNetwork, message.NetworkSubject(d.subject.Lane, m.Job), out, d, sameNetwork); err != nil {
		return err
	}
	w.progress(m.Job, w.stage, 1, 1)
	return nil
}

// milliseconds since a time, for the answer's timings.
func milliseconds(began time.Time) float64 {
	return float64(now().Sub(began)) / float64(time.Millisecond)
}
