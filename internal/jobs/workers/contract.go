package workers

import (
	"context"
	"fmt"
	"time"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/base/memo"
	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/pull"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/internal/queue/tracing"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Contract computes the values of tasks.
type Contract struct {
	*hop.Loop
	host *Host
	// the last plans that were checked against their network, by the blobs of both: the tasks of a job
	// name the same two, and checking them costs time proportional to their size
	checked memo.LRU[[2]string, bool]
}

// contract gives w the intake of contract-worker: tasks.
func (h *Host) setUpContract(w *Worker) {
	c := &Contract{Loop: w.loop, host: h, checked: memo.LRU[[2]string, bool]{Entries: decodedEntries}}
	h.addListener(w)
	h.kinds.isContractWorker = true
	w.background = append(w.background, h.kinds.announce)

	// Untold: the aggregator reports the progress of contractions.
	w.intakes = []*intake{
		{
			Feed:   streams.Tasks,
			Intake: hop.Intake{Handler: c.handleTask, Untold: true, Tries: c.countTries, Metered: true},
			pull:   pull.Intake{Prefetch: 1, Slots: 8, Heavy: isHeavy, Later: c.pauseBefore},
		},
	}
}

// task computes the values of one chunk: task.<lane>.<job>.<n>.<k> → partial.<lane>.<job>.<n>.<k>.
func (w *Contract) handleTask(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
	var m message.Task
	if err := d.Decode(&m); err != nil {
		return hop.Done, err
	}
	d.Digest = m.Digest
	d.Tenant = m.Tenant
	d.Asked = storedAt(m.Stored)
	switch {
	case m.Job != d.Subject.Job:
		return hop.Done, d.Mismatch("job", m.Job, d.Subject.Job)
	case m.N != d.Subject.N || m.K != d.Subject.K:
		return hop.Done, d.Mismatch("chunk", []int{m.K, m.N}, []int{d.Subject.K, d.Subject.N})
	}
	if pause := w.host.kinds.passPause(d.Raw, m.NumericKind); pause > 0 {
		return hop.Later(pause), nil
	}
	err := w.Open(ctx, d, m.DeadlineMS)
	if fault.CodeOf(err) == fault.Deadline { // its timer ends the job, with the best estimate so far where it has some, or the sweeper
		return hop.Done, nil
	}
	if err != nil {
		return hop.Done, err
	}

	// A task that is delivered again may have been contracted by somebody else.
	subject := message.PartialSubject(d.Subject.Lane, m.Job, m.N, m.K)
	if !w.Fresh(d) {
		if has, err := w.Bus.Log.Has(ctx, bus.StreamPartial, subject); err != nil || has {
			return hop.Done, err // the partial is stored, and the stream delivers it to the aggregator
		}
	}

	net, err := w.host.networks.get(ctx, w.Bus.Blobs, m.NetworkBlob, nil)
	if err != nil {
		return hop.Done, err
	}
	assignments, err := w.host.plans.get(ctx, w.Bus.Blobs, m.JobBlob, m.Plan)
	if err != nil {
		return hop.Done, err
	}
	kept := w.host.memoryOf(cacheOwner(m.Tenant, m.OwnCache))
	of, end := kept.shared.begin()
	defer end()
	if err := w.checkTask(&m, net, assignments, of); err != nil {
		d.Broken = true
		return hop.Done, err
	}

	d.Queries = stage.CountAsked(assignments)
	free, err := w.host.memory.Hold(ctx, w.tableBytes(&m, assignments))
	if err != nil {
		return hop.Done, err
	}
	defer free()
	began := time.Now()
	var until time.Time
	if m.DeadlineMS > 0 {
		until = began.Add(time.Duration(m.DeadlineMS)*time.Millisecond - w.Bus.Conn.Since(d.Asked))
	}
	values, err := stage.Contract(
		ctx, net, assignments, m.Demands, m.Units,
		stage.ContractOptions{
			First:   m.First,
			Until:   until,
			Memory:  w.memoryLimit(m.Memory),
			Threads: w.host.Threads,
			Shared:  of,
		},
	)
	if err != nil {
		return hop.Done, err
	}

	if w.host.Arithmetic != nil {
		w.host.Arithmetic.Round(values)
	}
	d.Flops = m.Cost
	d.Describe(tracing.Flops.Float64(m.Cost))

	out := &message.Partial{
		Job:         m.Job,
		Tenant:      m.Tenant,
		Digest:      m.Digest,
		JobBlob:     m.JobBlob,
		Plan:        m.Plan,
		K:           m.K,
		N:           m.N,
		Values:      values,
		NumericKind: w.host.kinds.own,
		Names:       m.Names,
		Ends:        m.Ends,
		Stored:      m.Stored,
		Timings:     withTiming(m.Timings, w.Stage, began),
	}
	return hop.Done, w.Forward(ctx, bus.StreamPartial, subject, out, d, samePartial)
}

// fits checks that the plans fit the network and that the task's units exist: anybody may have
// published either.
func (w *Contract) checkTask(m *message.Task, net *btn.Network, assignments []btn.Assignment, shared *problem.Shared) error {
	pair := [2]string{m.NetworkBlob, m.JobBlob}
	if _, known := w.checked.Get(pair); !known {
		if err := message.CheckAssignments(net, assignments); err != nil {
			return err
		}
		w.checked.Put(pair, true, 1)
	}

	for _, u := range m.Units {
		if u.Query >= len(assignments) {
			return fault.New(
				fault.BadInput, "pipeline: task names query %d of %d", u.Query, len(assignments),
			)
		}

		a := assignments[u.Query]
		if a.Plan == nil || u.Part >= a.Plan.Len() {
			return fault.New(
				fault.BadInput,
				"pipeline: task names component %d of query %d, which has no such component",
				u.Part, u.Query,
			)
		}
	}
	for i := range m.Demands {
		if err := m.Demands[i].Want.Check(contraction.Domains(net)); err != nil {
			return fault.New(fault.BadInput, "pipeline: demand %d of the task: %w", m.First+i, err)
		}
	}
	return checkRelevant(m, net, assignments, shared)
}

// fitRelevant checks the plans of the task's demands that are for relevant parts of the network.
func checkRelevant(m *message.Task, net *btn.Network, assignments []btn.Assignment, shared *problem.Shared) error {
	checked := map[*btn.Plan]bool{}
	for _, u := range m.Units {
		a := &assignments[u.Query]
		if place := u.Query - m.First; !a.Relevant || checked[a.Plan] || place < 0 || place >= len(m.Demands) {
			continue // Contract refuses a unit without its demand
		}
		checked[a.Plan] = true
		part, _ := stage.Planned(net, m.Demands[u.Query-m.First], a, shared)
		if err := message.CheckPlan(part, a.Plan); err != nil {
			return fault.Wrap(fault.BadInput, err)
		}
	}
	return nil
}

// needs is the number of bytes of a task's tables at a time, by its plans: of one unit, or, where
// several threads share one, of one each as far as the request allows.
func (w *Contract) tableBytes(m *message.Task, assignments []btn.Assignment) (bytes float64) {
	for _, u := range m.Units {
		a := &assignments[u.Query]
		if a.Plan == nil {
			continue
		}
		part, e := a.Plan.Part(u.Part)
		unit := 0.0
		if e != nil {
			unit = e.Cost.Bytes
		}
		if a.Cost != nil {
			unit = max(unit, a.Cost.Bytes)
		}
		if batcher, ok := part.(contraction.Batcher); ok && len(m.Units) > 1 {
			unit *= float64(batcher.Lanes())
		}
		bytes = max(bytes, unit)
	}
	return min(bytes*float64(max(1, w.host.Threads)), max(bytes, float64(w.memoryLimit(m.Memory))))
}

// bytes returns the memory for tables: the limit of the request, and at most this worker's.
func (w *Contract) memoryLimit(asked int64) int64 {
	if asked == 0 {
		asked = query.DefaultMemory
	}

	if w.host.Memory > 0 {
		return min(asked, w.host.Memory)
	}
	return asked
}

// samePartial compares two partials of one chunk as sameNetwork compares networks. Partials of
// different numeric kinds or plans count as the same: the aggregator refuses to mix them.
func samePartial(a, b wire.Message) bool {
	x, y := *a.(*message.Partial), *b.(*message.Partial)
	if x.NumericKind != y.NumericKind || x.JobBlob != y.JobBlob {
		return true
	}

	x.Timings, y.Timings = nil, nil
	x.Stored, y.Stored = 0, 0
	return hop.SameBytes(&x, &y)
}

// later is how long a task is not to be begun by this process.
func (w *Contract) pauseBefore(d *bus.Delivered) time.Duration {
	if pause := pauseUntilBegin(d); pause > 0 {
		return pause
	}
	return w.host.kinds.passPause(d, d.Header.Get(message.HeaderKind))
}

// heavy reports whether a task is not small, or does not state its cost.
func isHeavy(m *bus.Delivered) bool {
	cost, says := message.Cost(m.Header)
	return !says || cost > message.SmallFlops
}

// tries returns how often the work on a task was begun, this time included. Deliveries do not tell
// where workers put large tasks aside, or pass on tasks of another kind, so after some of them
// every try leaves a mark, which outlives the process: a task that kills its workers comes to an
// end. Marks are blobs: they need no other permission and go with time.
func (w *Contract) countTries(ctx context.Context, d *hop.Message) int {
	passed := d.Subject.N > 1 && (d.Raw.Header.Get(message.HeaderKind) != "" || w.host.kinds.mayBeMixed())
	if !passed && !isHeavy(d.Raw) {
		return d.Attempt
	}
	for try := 1; ; try++ {
		mark := fmt.Appendf(nil, "basetensor: try %d of %s, message %d", try, d.Raw.Subject, d.Raw.Sequence)
		has, err := w.Bus.Blobs.Has(ctx, wire.Digest(mark))
		if err == nil && !has {
			_, err = w.Bus.Blobs.Put(ctx, mark)
		}
		if err != nil || !has || try > w.MaxDeliveries {
			return try
		}
	}
}
