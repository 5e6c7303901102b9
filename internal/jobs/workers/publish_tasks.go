package workers

// A job keeps its first plan, because a search that the clock ends finds another one the next time. The
// first plan with a stored task stays, and a later run of the same work completes its tasks.

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/tracing"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// planned is the plan of a job.
type jobPlan struct {
	assignments []btn.Assignment
	digest      string // of the encoded assignments: the name of their blob, unless they are inline
	blob        []byte // the encoded assignments; nil if an earlier run has stored them
	inline      []byte // the same; nil unless they travel in the job's only task
}

// inlinePlan is the size in bytes up to which a plan travels in the message of a job of one task:
// storing and fetching a blob takes longer than all the rest of a small job.
const inlinePlanBytes = 16 << 10

// mostPlans is the maximum number of plans of one job in one run of pass: its own, an earlier run's,
// and one more if the blob of that was lost.
const mostPlans = 3

// pass cuts the contraction of a job into tasks and stores them. If an earlier run has passed on
// another plan, pass completes the tasks of that plan in place of p's.
func (w *Learn) cutAndPublish(ctx context.Context, d *hop.Message, m *message.Network, net *btn.Network, p *jobPlan) error {
	demands := stage.Demands(net, m.Queries)
	for range mostPlans {
		chunks, flops, ends := stage.ChunksAndCosts(net, p.assignments, w.host.ChunkFlops)
		begin, err := w.admit(ctx, d, m, p.assignments, chunks, flops)
		if err != nil {
			return err
		}
		// The plan travels in the only task of a small job, and is stored for the tasks of any other.
		if len(chunks) == 1 && len(p.blob) <= inlinePlanBytes {
			p.inline = p.blob
		} else if err := w.storePlan(ctx, p); err != nil {
			return err
		}
		if text := stage.Describe(p.assignments); text != "" {
			w.Tell(m.Job, w.Stage, 0, 1, text)
		}
		d.Describe(
			tracing.Method.String(string(m.Settings.WithDefaults().Method)), tracing.Chunks.Int(len(chunks)),
		)

		tasks := w.makeTasks(d.Subject.Lane, m, p, demands, chunks, flops, ends)
		other, err := w.publishTasks(ctx, d, tasks, p, begin)
		if err != nil || other == nil {
			return err
		}
		p = other
	}
	return fault.New(fault.Infrastructure, "pipeline: the tasks of job %s follow several plans", m.Job)
}

// keep stores a plan for the tasks that name it.
func (w *Learn) storePlan(ctx context.Context, p *jobPlan) error {
	if p.blob == nil {
		return nil
	}
	return w.WithRoom(ctx, func() error {
		_, err := w.Bus.Blobs.Put(ctx, p.blob)
		return err
	})
}

// tasks returns one task per chunk.
func (w *Learn) makeTasks(
	lane int, m *message.Network, p *jobPlan, demands []btn.Demand, chunks [][]btn.Unit, flops []float64, ends []int,
) []*message.Task {
	kind := "" // of the workers that compute several tasks
	if len(chunks) > 1 {
		kind = w.host.kinds.assign(lane, m.Job, slices.Max(flops), time.Duration(m.DeadlineMS)*time.Millisecond)
	}
	tasks := make([]*message.Task, len(chunks))
	for k, units := range chunks {
		first, named := demandsOf(demands, units)
		tasks[k] = &message.Task{
			Job:         m.Job,
			Tenant:      m.Tenant,
			Digest:      m.Digest,
			NetworkBlob: m.Blob,
			JobBlob:     p.digest,
			Plan:        p.inline,
			K:           k,
			N:           len(chunks),
			Units:       units,
			OwnCache:    m.OwnCache,
			NumericKind: kind,
			Ends:        ends,
			Cost:        flops[k] * marginalsFactor(p.assignments, units),
			Demands:     named,
			First:       first,
			Memory:      m.Settings.WithDefaults().Memory,
			Stored:      m.Stored,
			DeadlineMS:  m.DeadlineMS,
			Timings:     m.Timings,
		}
	}
	tasks[0].Names = m.Names
	return tasks
}

// only returns the demands that units name, from the first to the last of them, and the position of
// the first. Demands between them that no unit names are left empty: a task carries only the
// demands that it needs.
func demandsOf(all []btn.Demand, units []btn.Unit) (first int, named []btn.Demand) {
	if len(units) == 0 {
		return 0, nil
	}

	first, last := len(all), 0
	for _, u := range units {
		first = min(first, u.Query)
		last = max(last, u.Query)
	}

	named = make([]btn.Demand, last+1-first)
	for _, u := range units {
		named[u.Query-first] = all[u.Query]
	}
	return first, named
}

// withMarginals returns the factor by which the cost of a chunk's units exceeds the cost of their
// values alone: 4 if marginals are wanted of one of them.
func marginalsFactor(job []btn.Assignment, units []btn.Unit) float64 {
	for _, u := range units {
		if u.Query >= 0 && u.Query < len(job) && job[u.Query].Want.Marginals {
			return 4
		}
	}
	return 1
}

// publish stores the tasks of a plan, the first one only if no task of the job waits. If tasks or
// partials of an earlier run follow another plan, it returns that plan.
//
// Of two runs at the same time, at least one finds the other's plan. One of them stores its first task
// last, and by then the other's first task still waits or has left a partial: a task is removed only
// after its partial is stored.
func (w *Learn) publishTasks(
	ctx context.Context, d *hop.Message, tasks []*message.Task, p *jobPlan, begin time.Time,
) (other *jobPlan, err error) {
	msgs, err := taskMessages(d, tasks, begin)
	if err != nil {
		return nil, err
	}
	w.taskRoom.Spend(d.Subject.Lane, len(msgs))

	stored, taken, err := w.publishFirst(ctx, d, msgs[0], tasks[0])
	if err == nil && taken != nil {
		other, err = w.differentPlan(ctx, d, p, taken)
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
			other, err = w.differentPlan(ctx, d, p, e)
		}
	}
	return other, err
}

// taskMessages returns tasks as NATS messages, with begin, if not zero, as their earliest time.
func taskMessages(d *hop.Message, tasks []*message.Task, begin time.Time) ([]*nats.Msg, error) {
	msgs := make([]*nats.Msg, len(tasks))
	for k, t := range tasks {
		var err error
		if msgs[k], err = hop.NewMsg(message.TaskSubject(d.Subject.Lane, t.Job, t.N, k), t, d); err != nil {
			return nil, err
		}
		if !begin.IsZero() {
			msgs[k].Header[headerBegin] = []string{strconv.FormatInt(begin.UnixMilli(), 10)}
		}
		if t.NumericKind != "" {
			msgs[k].Header[message.HeaderKind] = []string{t.NumericKind}
		}
		msgs[k].Header[message.HeaderCost] = []string{message.FormatCost(t.Cost)}
	}
	return msgs, nil
}

// first stores the first task of a job if no task of it waits, and says whether it has. taken is the waiting task or, if the
// job has several tasks, a stored partial.
func (w *Learn) publishFirst(
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
func (w *Learn) differentPlan(
	ctx context.Context, d *hop.Message, p *jobPlan, m *jetstream.RawStreamMsg,
) (*jobPlan, error) {
	if of, err := decodeReferences(m.Subject, m.Data); err == nil && of.request == d.Digest && of.plan == p.digest {
		return nil, nil
	}
	return w.readPlan(ctx, d, m)
}

// planOf returns the plan of a stored task or partial; nil if it is lost.
func (w *Learn) readPlan(ctx context.Context, d *hop.Message, m *jetstream.RawStreamMsg) (*jobPlan, error) {
	of, err := decodeReferences(m.Subject, m.Data)
	if err != nil {
		return nil, fault.New(
			fault.Internal, "pipeline: the subject %s of job %s is taken by an unreadable message: %w", m.Subject,
			d.Subject.Job, err,
		)
	}
	if of.request != d.Digest {
		return nil, hop.ErrForeign
	}
	job, err := w.host.plans.get(ctx, w.Bus.Blobs, of.plan, of.inline)
	if errors.Is(err, bus.ErrLost) {
		return nil, nil
	}
	return &jobPlan{assignments: job, digest: of.plan, blob: of.inline}, err
}

// earlier returns the plan of the job's earlier tasks or partials; nil if there are none, or the plan is lost.
func (w *Learn) findEarlierPlan(ctx context.Context, d *hop.Message, job string) (*jobPlan, error) {
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
		return w.readPlan(ctx, d, m)
	}
	return nil, nil
}
