package workers

// learn-worker cuts the contraction of a plan into tasks and publishes them. A job keeps the first plan of which a task
// is stored: if the job is planned again, the tasks of that plan are completed. (A search for plans that the clock ends
// finds another plan the next time.)

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

// jobPlan is the plan of a job.
type jobPlan struct {
	assignments []btn.Assignment
	digest      string // of the encoded assignments: the name of their blob, unless they are inline
	blob        []byte // the encoded assignments; nil if an earlier run has stored them
	inline      []byte // the encoded assignments if they travel in the job's only task, otherwise nil
}

// planCut is a plan whose parts are cut into chunks.
type planCut struct {
	assignments []btn.Assignment
	chunks      [][]btn.Unit
	flops       []float64 // by chunk: the expected work, without that for marginals
	ends        []int     // numbers of first chunks whose values may suffice for an answer
}

// marginalsFactor is how many times as many operations a chunk takes if marginals are wanted of one of its units.
const marginalsFactor = 4

// cost returns the expected operations of chunk k.
func (c *planCut) cost(k int) float64 {
	for _, u := range c.chunks[k] {
		if u.Query >= 0 && u.Query < len(c.assignments) && c.assignments[u.Query].Want.Marginals {
			return c.flops[k] * marginalsFactor
		}
	}
	return c.flops[k]
}

// inlinePlanBytes is the size up to which a plan travels in the message of a job of one task. For a small job, storing
// and fetching a blob takes longer than the remaining work.
const inlinePlanBytes = 16 << 10

// maxPlans is the maximum number of plans of one job in one run of cutAndPublish: the plan of this run, the plan of an
// earlier run, and one more if the blob of the latter was lost.
const maxPlans = 3

// cutAndPublish cuts the contraction of a job by plan p into tasks and stores them. If an earlier run has published
// tasks of another plan, it completes the tasks of that plan instead.
func (w *Learn) cutAndPublish(ctx context.Context, d *hop.Message, m *message.Network, net *btn.Network, p *jobPlan) error {
	demands := stage.Demands(net, m.Queries)
	for range maxPlans { // a second round follows the plan of an earlier run, whose tasks the first round has found
		cut := &planCut{assignments: p.assignments}
		cut.chunks, cut.flops, cut.ends = stage.ChunksAndCosts(net, p.assignments, w.host.ChunkFlops)
		begin, err := w.admitPlan(ctx, d, m, cut)
		if err != nil {
			return err
		}

		// The plan travels in the only task of a small job. For the tasks of other jobs it is stored.
		if len(cut.chunks) == 1 && len(p.blob) <= inlinePlanBytes {
			p.inline = p.blob
		} else if err := w.storePlan(ctx, p); err != nil {
			return err
		}
		if text := stage.Describe(p.assignments); text != "" {
			w.ProgressText(m.Job, w.Stage, 0, 1, text)
		}
		d.SetAttributes(
			tracing.Method.String(string(m.Settings.WithDefaults().Method)), tracing.Chunks.Int(len(cut.chunks)),
		)

		// Publish the tasks. If those of another plan are there, go on with that plan.
		tasks := w.makeTasks(d.Subject.Lane, m, p, demands, cut)
		differing, err := w.publishTasks(ctx, d, tasks, p, begin)
		if err != nil || differing == nil {
			return err
		}
		p = differing
	}
	return fault.New(fault.Infrastructure, "pipeline: the tasks of job %s follow several plans", m.Job)
}

// storePlan stores a plan as a blob, unless an earlier run has.
func (w *Learn) storePlan(ctx context.Context, p *jobPlan) error {
	if p.blob == nil { // the plan was read from the stored one of an earlier run
		return nil
	}
	return w.WaitForRoom(ctx, func() error {
		_, err := w.Bus.Blobs.Put(ctx, p.blob)
		return err
	})
}

// makeTasks returns one task per chunk of the work. The first task carries the names of the model. If there are several
// tasks, workers of one numeric kind are to compute all of them, because only processors of one kind give the same bits.
func (w *Learn) makeTasks(lane int, m *message.Network, p *jobPlan, demands []btn.Demand, cut *planCut) []*message.Task {
	kind := ""
	if len(cut.chunks) > 1 {
		kind = w.host.kinds.assignKind(lane, m.Job, slices.Max(cut.flops), time.Duration(m.DeadlineMS)*time.Millisecond)
	}
	tasks := make([]*message.Task, len(cut.chunks))
	for k, units := range cut.chunks {
		firstDemand, taskDemands := demandsOf(units, demands)
		tasks[k] = &message.Task{
			Job:         m.Job,
			Tenant:      m.Tenant,
			Digest:      m.Digest,
			NetworkBlob: m.Blob,
			JobBlob:     p.digest,
			Plan:        p.inline,
			K:           k,
			N:           len(cut.chunks),
			Units:       units,
			OwnCache:    m.OwnCache,
			NumericKind: kind,
			Ends:        cut.ends,
			Cost:        cut.cost(k),
			Demands:     taskDemands,
			First:       firstDemand,
			Memory:      m.Settings.WithDefaults().Memory,
			Stored:      m.Stored,
			DeadlineMS:  m.DeadlineMS,
			Timings:     m.Timings,
		}
	}
	tasks[0].Names = m.Names
	return tasks
}

// demandsOf returns the demands that units name, so that a task carries only those. named[i] is demand first+i, or
// empty if no unit names it. For units of the queries 5 and 7, first is 5, and named is demand 5, an empty demand and
// demand 7.
func demandsOf(units []btn.Unit, demands []btn.Demand) (first int, named []btn.Demand) {
	if len(units) == 0 {
		return 0, nil
	}

	first, last := len(demands), 0
	for _, u := range units {
		first = min(first, u.Query)
		last = max(last, u.Query)
	}

	named = make([]btn.Demand, last+1-first)
	for _, u := range units {
		named[u.Query-first] = demands[u.Query]
	}
	return first, named
}

// publishTasks stores the tasks of plan p, which may not begin before begin unless it is zero. The first task is stored
// only if no task of the job waits. If tasks or partials of an earlier run follow another plan, publishTasks returns
// that plan, and nil otherwise.
//
// If two runs publish at the same time, the run that stores its first task last finds the other run's plan: the other
// run's first task still waits then, or has left a partial, because a task is removed only after its partial is stored.
func (w *Learn) publishTasks(
	ctx context.Context, d *hop.Message, tasks []*message.Task, p *jobPlan, begin time.Time,
) (differing *jobPlan, err error) {
	msgs, err := taskMessages(d, tasks, begin)
	if err != nil {
		return nil, err
	}
	w.taskRoom.TakePlaces(d.Subject.Lane, len(msgs)) // so many more messages will wait before contract-worker

	isFirstStored, earlier, err := w.publishFirst(ctx, d, msgs[0], tasks[0])
	if err == nil && earlier != nil {
		differing, err = w.differentPlan(ctx, d, p, earlier)
	}
	isComplete := earlier == nil && len(tasks) == 1
	if err != nil || differing != nil || isComplete {
		return differing, err
	}
	if isFirstStored { // it may be contracted and removed by now, so it is not stored again
		msgs = msgs[1:]
	}
	return w.publishAll(ctx, d, msgs, p)
}

// publishAll stores tasks of plan p on those of their subjects that have no task. If a task that is there follows
// another plan, it returns that plan, and nil otherwise.
func (w *Learn) publishAll(ctx context.Context, d *hop.Message, msgs []*nats.Msg, p *jobPlan) (differing *jobPlan, err error) {
	var earlier []*jetstream.RawStreamMsg // by message, nil for those that were stored
	err = w.WaitForRoom(ctx, func() (err error) {
		earlier, err = w.Bus.Log.PutAllOnce(ctx, bus.StreamTask, msgs)
		return err
	})
	for _, m := range earlier {
		if m != nil && err == nil && differing == nil {
			differing, err = w.differentPlan(ctx, d, p, m)
		}
	}
	return differing, err
}

// taskMessages returns tasks as NATS messages. If begin is not zero, they may not begin before it.
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

// publishFirst stores the first task of a job if no task of the job waits, and reports whether it did. earlier is a
// message of an earlier run: the waiting task or, if the job has several tasks, a partial. It is nil if there is none.
func (w *Learn) publishFirst(
	ctx context.Context, d *hop.Message, msg *nats.Msg, task *message.Task,
) (stored bool, earlier *jetstream.RawStreamMsg, err error) {
	filter := message.ChunksFilter(message.KindTask, d.Subject.Lane, task.Job)
	err = w.WaitForRoom(ctx, func() (err error) {
		earlier, err = w.Bus.Log.PutOnceIfNone(ctx, bus.StreamTask, msg, filter)
		return err
	})
	stored = err == nil && earlier == nil
	isOnlyTask := task.N == 1 // its partial, if there is one, is the job's answer whatever its plan
	if !stored || isOnlyTask {
		return stored, earlier, err
	}

	// Tasks of an earlier run may have been contracted and removed.
	earlier, err = w.Bus.Log.Get(
		ctx, bus.StreamPartial, message.ChunksFilter(message.KindPartial, d.Subject.Lane, task.Job),
	)
	if errors.Is(err, bus.ErrNotFound) {
		return stored, nil, nil
	}
	return stored, earlier, err
}

// differentPlan returns the plan that a stored task or partial of the job follows. It returns nil if that is p, or if
// its blob is lost.
func (w *Learn) differentPlan(
	ctx context.Context, d *hop.Message, p *jobPlan, m *jetstream.RawStreamMsg,
) (*jobPlan, error) {
	refs, err := decodeReferences(m.Subject, m.Data)
	isSamePlan := err == nil && refs.request == d.Digest && refs.plan == p.digest
	if isSamePlan {
		return nil, nil
	}
	return w.readPlan(ctx, d, m)
}

// readPlan returns the plan of a stored task or partial. It returns nil if the plan is lost, and hop.ErrForeign if the
// message belongs to another request.
func (w *Learn) readPlan(ctx context.Context, d *hop.Message, m *jetstream.RawStreamMsg) (*jobPlan, error) {
	refs, err := decodeReferences(m.Subject, m.Data)
	if err != nil {
		return nil, fault.New(
			fault.Internal, "pipeline: the subject %s of job %s is taken by an unreadable message: %w", m.Subject,
			d.Subject.Job, err,
		)
	}
	if refs.request != d.Digest {
		return nil, hop.ErrForeign
	}
	assignments, err := w.host.plans.get(ctx, w.Bus.Blobs, refs.plan, refs.inline)
	if errors.Is(err, bus.ErrLost) {
		return nil, nil
	}
	return &jobPlan{assignments: assignments, digest: refs.plan, blob: refs.inline}, err
}

// findEarlierPlan returns the plan of the job's stored tasks or partials. It returns nil if there are none, or the plan
// is lost.
func (w *Learn) findEarlierPlan(ctx context.Context, d *hop.Message, job string) (*jobPlan, error) {
	for _, place := range []struct {
		stream string
		kind   message.Kind
	}{{bus.StreamTask, message.KindTask}, {bus.StreamPartial, message.KindPartial}} {
		m, err := w.Bus.Log.Get(ctx, place.stream, message.ChunksFilter(place.kind, d.Subject.Lane, job))
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
