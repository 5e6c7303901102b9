package workers

// The plan of a job is made once: a search that the clock ends finds another one the next time. The
// first that reached a task stays, and a later run of the same work completes the tasks of that.

import (
	"context"
	"errors"
	"time"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/hop"
	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// plannedBefore is the age from which on a job is looked up before it is planned, as a message that is
// delivered again: it may have been begun again.
const plannedBefore = 2 * time.Second

// planned is the plan of a job.
type planned struct {
	job    []btn.Assignment
	digest string // of the encoded assignments, under which they are stored where they are not inline
	blob   []byte // the encoded assignments; nil where an earlier run has stored them
	inline []byte // the same, where they travel in the job's only task
}

// keep stores a plan for the tasks that name it.
func (w *Learn) keep(ctx context.Context, p *planned) error {
	if p.blob == nil {
		return nil
	}
	return w.WithRoom(ctx, func() error {
		_, err := w.Bus.PutBlob(ctx, p.blob)
		return err
	})
}

// earlier returns the plan that earlier tasks or partials of a job follow; nil: there are none, or
// their plan is lost.
func (w *Learn) earlier(ctx context.Context, d *hop.Message, job string) (*planned, error) {
	for _, of := range []struct {
		stream string
		kind   message.Kind
	}{{bus.StreamTask, message.KindTask}, {bus.StreamPartial, message.KindPartial}} {
		m, err := w.Bus.Get(ctx, of.stream, message.ChunksFilter(of.kind, d.Subject.Lane, job))
		if errors.Is(err, bus.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		return w.planOf(ctx, d, m)
	}
	return nil, nil
}

// planOf returns the plan that a stored task or partial follows; nil: it is lost.
func (w *Learn) planOf(ctx context.Context, d *hop.Message, m *jetstream.RawStreamMsg) (*planned, error) {
	of, err := follows(m)
	if err != nil {
		return nil, fault.New(
			fault.Internal, "pipeline: the subject %s of job %s is taken by what cannot be read: %w", m.Subject,
			d.Subject.Job, err,
		)
	}
	if of.request != d.Digest {
		return nil, hop.ErrForeign
	}
	job, err := w.plans.of(ctx, w.Bus, of.digest, of.inline)
	if errors.Is(err, bus.ErrLost) {
		return nil, nil
	}
	return &planned{job: job, digest: of.digest, blob: of.inline}, err
}

// followed is what a task or a partial says of its plan and its request.
type followed struct {
	request, digest string
	inline          []byte
}

// follows decodes a task or a partial.
func follows(m *jetstream.RawStreamMsg) (followed, error) {
	if message.KindOf(m.Subject) == message.KindTask {
		var t message.Task
		err := wire.Decode(m.Data, &t)
		return followed{t.Digest, t.JobBlob, t.Plan}, err
	}
	var p message.Partial
	err := wire.Decode(m.Data, &p)
	return followed{p.Digest, p.JobBlob, p.Plan}, err
}

// publish stores the tasks of a plan. The first is stored only where no task of the job waits. It
// returns the plan that tasks or partials of an earlier run follow, if that is another.
//
// Two runs at the same time cannot both pass their own plans on: the first task of one of them is
// stored last, and by then that of the other waits or, as a task goes only after its partial is
// stored, has left a partial.
func (w *Learn) publish(
	ctx context.Context, d *hop.Message, tasks []*message.Task, p *planned, begin time.Time,
) (other *planned, err error) {
	msgs, err := taskMessages(d, tasks, begin)
	if err != nil {
		return nil, err
	}
	w.next.Spend(d.Subject.Lane, len(msgs))

	taken, err := w.first(ctx, d, msgs[0], tasks[0])
	if err == nil && taken != nil {
		other, err = w.otherPlan(ctx, d, p, taken)
	}
	if err != nil || other != nil || taken == nil && len(tasks) == 1 {
		return other, err
	}

	if taken == nil {
		msgs = msgs[1:]
	}
	var earlier []*jetstream.RawStreamMsg
	err = w.WithRoom(ctx, func() (err error) {
		earlier, err = w.Bus.OnceAll(ctx, bus.StreamTask, msgs)
		return err
	})
	for _, e := range earlier {
		if e != nil && err == nil && other == nil {
			other, err = w.otherPlan(ctx, d, p, e)
		}
	}
	return other, err
}

// first stores the first task of a job unless a task or a partial of it is stored already, which it
// returns.
func (w *Learn) first(
	ctx context.Context, d *hop.Message, msg *nats.Msg, task *message.Task,
) (taken *jetstream.RawStreamMsg, err error) {
	filter := message.ChunksFilter(message.KindTask, d.Subject.Lane, task.Job)
	err = w.WithRoom(ctx, func() (err error) {
		taken, err = w.Bus.OnceUnder(ctx, bus.StreamTask, msg, filter)
		return err
	})
	if err != nil || taken != nil || task.N == 1 {
		return taken, err
	}
	taken, err = w.Bus.Get(
		ctx, bus.StreamPartial, message.ChunksFilter(message.KindPartial, d.Subject.Lane, task.Job),
	)
	if errors.Is(err, bus.ErrNotFound) {
		return nil, nil
	}
	return taken, err
}

// otherPlan returns the plan that a stored message of the job follows, unless it is p or lost.
func (w *Learn) otherPlan(
	ctx context.Context, d *hop.Message, p *planned, m *jetstream.RawStreamMsg,
) (*planned, error) {
	if of, err := follows(m); err == nil && of.request == d.Digest && of.digest == p.digest {
		return nil, nil
	}
	return w.planOf(ctx, d, m)
}
