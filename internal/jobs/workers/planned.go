package workers

// A job keeps its first plan, because a search that the clock ends finds another one the next time. The
// first plan with a stored task stays, and a later run of the same work completes its tasks.

import (
	"context"
	"errors"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// plannedBefore is the age above which learn-worker looks for a job's earlier plan first, as for a
// message that is delivered again: the job may have been started again.
const plannedBefore = 2 * time.Second

// planned is the plan of a job.
type planned struct {
	job    []btn.Assignment
	digest string // of the encoded assignments: the name of their blob, unless they are inline
	blob   []byte // the encoded assignments; nil if an earlier run has stored them
	inline []byte // the same; nil unless they travel in the job's only task
}

// keep stores a plan for the tasks that name it.
func (w *Learn) keep(ctx context.Context, p *planned) error {
	if p.blob == nil {
		return nil
	}
	return w.WithRoom(ctx, func() error {
		_, err := w.Bus.Blobs.Put(ctx, p.blob)
		return err
	})
}

// earlier returns the plan of the job's earlier tasks or partials; nil if there are none, or the plan is lost.
func (w *Learn) earlier(ctx context.Context, d *hop.Message, job string) (*planned, error) {
	for _, of := range []struct {
		stream string
		kind   message.Kind
	}{{bus.StreamTask, message.KindTask}, {bus.StreamPartial, message.KindPartial}} {
		m, err := w.Bus.Log.Get(ctx, of.stream, message.ChunksFilter(of.kind, d.Subject.Lane, job))
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

// planOf returns the plan of a stored task or partial; nil if it is lost.
func (w *Learn) planOf(ctx context.Context, d *hop.Message, m *jetstream.RawStreamMsg) (*planned, error) {
	of, err := follows(m.Subject, m.Data)
	if err != nil {
		return nil, fault.New(
			fault.Internal, "pipeline: the subject %s of job %s is taken by an unreadable message: %w", m.Subject,
			d.Subject.Job, err,
		)
	}
	if of.request != d.Digest {
		return nil, hop.ErrForeign
	}
	job, err := w.host.plans.of(ctx, w.Bus.Blobs, of.digest, of.inline)
	if errors.Is(err, bus.ErrLost) {
		return nil, nil
	}
	return &planned{job: job, digest: of.digest, blob: of.inline}, err
}

// followed has the request and the plan of a network, a task or a partial, and the blobs that it names.
type followed struct {
	request, digest string
	inline          []byte
	blobs           []string
}

// follows decodes a network, a task or a partial.
func follows(subject string, data []byte) (f followed, err error) {
	switch message.KindOf(subject) {
	case message.KindNetwork:
		var m message.Network
		err = wire.Decode(data, &m)
		f = followed{m.Digest, "", nil, []string{m.Blob}}
	case message.KindFirst: // it names nothing
	case message.KindTask:
		var m message.Task
		err = wire.Decode(data, &m)
		f = followed{m.Digest, m.JobBlob, m.Plan, []string{m.NetworkBlob}}
	default:
		var m message.Partial
		err = wire.Decode(data, &m)
		f = followed{m.Digest, m.JobBlob, m.Plan, nil}
	}
	if f.digest != "" && len(f.inline) == 0 { // else the plan is no blob
		f.blobs = append(f.blobs, f.digest)
	}
	return f, err
}

// publish stores the tasks of a plan, the first one only if no task of the job waits. If tasks or
// partials of an earlier run follow another plan, it returns that plan.
//
// Of two runs at the same time, at least one finds the other's plan. One of them stores its first task
// last, and by then the other's first task still waits or has left a partial: a task is removed only
// after its partial is stored.
func (w *Learn) publish(
	ctx context.Context, d *hop.Message, tasks []*message.Task, p *planned, begin time.Time,
) (other *planned, err error) {
	msgs, err := taskMessages(d, tasks, begin)
	if err != nil {
		return nil, err
	}
	w.next.Spend(d.Subject.Lane, len(msgs))

	stored, taken, err := w.first(ctx, d, msgs[0], tasks[0])
	if err == nil && taken != nil {
		other, err = w.otherPlan(ctx, d, p, taken)
	}
	if err != nil || other != nil || taken == nil && len(tasks) == 1 {
		return other, err
	}

	if stored { // its partial may be there by now, and the task gone
		msgs = msgs[1:]
	}
	var earlier []*jetstream.RawStreamMsg
	err = w.WithRoom(ctx, func() (err error) {
		earlier, err = w.Bus.Log.PutAllOnce(ctx, bus.StreamTask, msgs)
		return err
	})
	for _, e := range earlier {
		if e != nil && err == nil && other == nil {
			other, err = w.otherPlan(ctx, d, p, e)
		}
	}
	return other, err
}

// first stores the first task of a job if no task of it waits, and says whether it has. taken is the waiting task or, if the
// job has several tasks, a stored partial.
func (w *Learn) first(
	ctx context.Context, d *hop.Message, msg *nats.Msg, task *message.Task,
) (stored bool, taken *jetstream.RawStreamMsg, err error) {
	filter := message.ChunksFilter(message.KindTask, d.Subject.Lane, task.Job)
	err = w.WithRoom(ctx, func() (err error) {
		taken, err = w.Bus.Log.PutOnceUnder(ctx, bus.StreamTask, msg, filter)
		return err
	})
	stored = err == nil && taken == nil
	if !stored || task.N == 1 {
		return stored, taken, err
	}
	taken, err = w.Bus.Log.Get(
		ctx, bus.StreamPartial, message.ChunksFilter(message.KindPartial, d.Subject.Lane, task.Job),
	)
	if errors.Is(err, bus.ErrNotFound) {
		return stored, nil, nil
	}
	return stored, taken, err
}

// otherPlan returns the plan of a stored message of the job; nil if it is p or lost.
func (w *Learn) otherPlan(
	ctx context.Context, d *hop.Message, p *planned, m *jetstream.RawStreamMsg,
) (*planned, error) {
	if of, err := follows(m.Subject, m.Data); err == nil && of.request == d.Digest && of.digest == p.digest {
		return nil, nil
	}
	return w.planOf(ctx, d, m)
}
