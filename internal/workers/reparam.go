package workers

import (
	"context"
	"errors"
	"time"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/cache"
	"github.com/basetensor/basetensor/internal/hop"
	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Reparam turns models into networks, and answers requests for an immediate answer.
type Reparam struct {
	*sums
	cache      *cache.Cache
	blobs      *storedBlobs
	inline     *inline
	next       *bus.Room     // before learn-worker
	requests   int           // for an immediate answer that wait at a time
	sweepAfter time.Duration // negative: never
}

// model turns a model into a network: model.<lane>.<job> → network.<lane>.<job>.
func (w *Reparam) model(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
	if bus.Moved(d.Raw.Header) {
		return hop.Done, w.moved(ctx, d)
	}
	return hop.Done, w.reparameterise(ctx, d, d.Stored)
}

// moved takes a model that was moved to the end of its stream, because its job takes long or is to be done again. Where the job is under
// way only its timer is set again: that may have been left behind.
func (w *Reparam) moved(ctx context.Context, d *hop.Message) error {
	stored := bus.StoredAt(d.Raw.Header, d.Stored)
	begun, err := w.begun(ctx, d.Subject.Lane, d.Subject.Job)
	if err != nil {
		return err
	}
	if !begun {
		return w.reparameterise(ctx, d, stored)
	}
	var m wire.Request
	if err := d.Decode(&m); err != nil {
		return err
	}
	digest, err := m.Digest()
	if err != nil {
		return fault.Wrap(fault.BadInput, err)
	}
	d.Digest, d.Tenant, d.Queries = digest, m.Tenant, len(m.Queries)
	return w.deadline(ctx, d, stored, m.DeadlineMS)
}

// replayed is the age from which on a model is taken for one that comes again: a consumer that was made anew begins
// with the oldest, and most of those have their answer, which is looked up before anything is computed.
const replayed = 10 * time.Second

// redriven starts a stored job again. The kept model is the source. The message stays until the job has its answer, and comes
// back now and then: the sweeper, which looks after each job once, does not know of those that were started again later.
func (w *Reparam) redriven(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
	var r message.Redrive
	if err := d.Decode(&r); err != nil {
		return hop.Done, err
	}
	if r.Job != d.Subject.Job {
		return hop.Done, d.Mismatch("job", r.Job, d.Subject.Job)
	}
	if w.sweepAfter < 0 {
		return hop.Done, w.restart(ctx, d, &r)
	}
	needed, err := d.Attempt == 1, error(nil)
	if !needed {
		if needed, err = w.stalled(ctx, d.Subject.Lane, r.Job); err == nil && !needed {
			if has, err := w.Bus.Has(ctx, bus.StreamAnswer, wire.AnswerSubject(r.Job)); err == nil && has {
				return hop.Done, nil
			}
		}
	}
	if err == nil && needed {
		err = w.restart(ctx, d, &r)
	}
	if err == nil || errors.Is(err, hop.ErrLater) || fault.CodeOf(err) == fault.Infrastructure {
		return hop.Later(w.sweepAfter), nil // it is no failure of the job that it cannot be looked after just now
	}
	return hop.Done, err
}

// restart makes the network of a stored job and passes it on.
func (w *Reparam) restart(ctx context.Context, d *hop.Message, r *message.Redrive) error {
	m, err := w.Bus.Get(ctx, bus.StreamModel, wire.ModelSubject(d.Subject.Lane, d.Subject.Job))
	if errors.Is(err, bus.ErrNotFound) {
		w.Log.Warn("nothing to start again: the model is gone", "job", r.Job)
		return nil
	}
	if err != nil {
		return err
	}
	again := *d
	again.Data, again.Silent = m.Data, false
	err = w.reparameterise(ctx, &again, bus.StoredAt(m.Header, m.Time))
	d.Data, d.Digest, d.Tenant, d.Queries, d.Broken, d.Silent = again.Data, again.Digest, again.Tenant, again.Queries, again.Broken, false
	return err
}

// reparameterise works on the model in d.Data, which was stored at that time.
func (w *Reparam) reparameterise(ctx context.Context, d *hop.Message, stored time.Time) error {
	var m wire.Request
	if err := d.Decode(&m); err != nil {
		return err
	}
	if m.Job != d.Subject.Job {
		return d.Mismatch("job", m.Job, d.Subject.Job)
	}
	digest, err := m.Digest()
	if err != nil {
		return fault.Wrap(fault.BadInput, err)
	}
	d.Digest, d.Tenant, d.Queries = digest, m.Tenant, len(m.Queries)
	if d.Attempt > 1 || d.Subject.Kind == message.KindRedrive || bus.Moved(d.Raw.Header) || time.Since(stored) > replayed {
		if err := w.Unanswered(ctx, m.Job, digest); err != nil {
			return err
		}
	}
	if err := w.deadline(ctx, d, stored, m.DeadlineMS); err != nil {
		return err
	}
	began := time.Now()
	blob, queries, err := w.prepare(ctx, &m, d.Data, d.Attempt > 1 || d.Subject.Kind == message.KindRedrive)
	if err != nil {
		return err
	}
	out := &message.Network{
		Job: m.Job, Tenant: m.Tenant, Digest: digest, Blob: blob, Queries: queries, Settings: m.Settings,
		Stored: stored.UnixMilli(), DeadlineMS: m.DeadlineMS, Timings: map[string]float64{w.Stage: milliseconds(began)},
	}
	w.next.Spend(d.Subject.Lane, 1)
	if err := w.Forward(ctx, bus.StreamNetwork, message.NetworkSubject(d.Subject.Lane, m.Job), out, d, sameNetwork); err != nil {
		return err
	}
	w.Progress(m.Job, w.Stage, 1, 1)
	return nil
}

// milliseconds since a time, for the answer's timings.
func milliseconds(began time.Time) float64 {
	return float64(time.Since(began)) / float64(time.Millisecond)
}

// sameNetwork, sameTask and samePartial compare what was computed: not how long it took, and not the name of the job's
// plan, which says whether a decomposition was learned or remembered.
func sameNetwork(a, b wire.Message) bool {
	x, y := *a.(*message.Network), *b.(*message.Network)
	x.Timings, y.Timings, x.Stored, y.Stored = nil, nil, 0, 0
	return hop.SameBytes(&x, &y)
}

// deadline sets the timer of a job that has a deadline. Setting it twice is setting it once: the server keeps the last
// message of a timer's subject. A deadline beyond what models are kept for would never be heard of, and is refused.
func (w *Reparam) deadline(ctx context.Context, d *hop.Message, stored time.Time, deadlineMS int64) error {
	if deadlineMS == 0 {
		return nil
	}
	if s, err := w.Bus.Stream(ctx, bus.StreamModel); err != nil {
		return err
	} else if keep := s.CachedInfo().Config.MaxAge; keep > 0 && deadlineMS > keep.Milliseconds() {
		return fault.New(fault.BadInput, "pipeline: a deadline of %d ms, jobs are kept for %v", deadlineMS, keep)
	}
	if err := hop.Overdue(stored, deadlineMS); err != nil {
		return err
	}
	return w.Bus.Timer(ctx, d.Subject.Lane, &wire.Deadline{
		Job: d.Subject.Job, Tenant: d.Tenant, Digest: d.Digest, Time: stored.UnixMilli() + deadlineMS,
	})
}
