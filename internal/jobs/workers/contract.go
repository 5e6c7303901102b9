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
	// checkedPlans has the plans that were checked against their network last, by the blobs of network and plan. All tasks of a job
	// name the same two, and a check takes time proportional to their size.
	checkedPlans memo.LRU[[2]string, bool]
}

// setUpContract gives worker the intake of contract-worker, its only source of messages: tasks. It makes the process
// announce its numeric kind.
func (h *Host) setUpContract(worker *Worker) {
	contract := &Contract{Loop: worker.loop, host: h, checkedPlans: memo.LRU[[2]string, bool]{Entries: decodedEntries}}
	h.addListener(worker)
	h.kinds.isContractWorker = true
	worker.background = append(worker.background, h.kinds.announceKind)

	// SkipsProgress: the aggregator reports the progress of contractions.
	worker.intakes = []*intake{
		{
			Feed:   streams.Tasks,
			Intake: hop.Intake{Handler: contract.handleTask, SkipsProgress: true, CountAttempts: contract.countTries, MeasuresCost: true},
			pull:   pull.Intake{Prefetch: 1, Slots: 8, IsHeavy: isHeavy, StartDelay: contract.pauseBefore},
		},
	}
}

// handleTask computes the values of one chunk: task.<lane>.<job>.<n>.<k> → partial.<lane>.<job>.<n>.<k>.
func (w *Contract) handleTask(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
	var m message.Task
	if err := decodeTask(d, &m); err != nil {
		return hop.Done, err
	}
	if pause := w.host.kinds.passPause(d.Raw, m.NumericKind); pause > 0 {
		return hop.Later(pause), nil // the task is for workers of another numeric kind
	}
	subject := message.PartialSubject(d.Subject.Lane, m.Job, m.N, m.K)
	if isNeeded, err := w.isNeeded(ctx, d, &m, subject); err != nil || !isNeeded {
		return hop.Done, err
	}

	// Read the network and the plan, and check the task against them.
	net, err := w.host.networks.get(ctx, w.Bus.Blobs, m.NetworkBlob, nil)
	if err != nil {
		return hop.Done, err
	}
	assignments, err := w.host.plans.get(ctx, w.Bus.Blobs, m.JobBlob, m.Plan)
	if err != nil {
		return hop.Done, err
	}
	shared, endUse := w.host.memoryOf(cacheOwner(m.Tenant, m.OwnCache)).shared.startUse()
	defer endUse()
	if err := w.checkTask(&m, net, assignments, shared); err != nil {
		d.IsMalformed = true
		return hop.Done, err
	}
	d.Queries = stage.CountAsked(assignments) // if the task fails, as many queries get its error as their result

	// Contract, with the memory that the tables take reserved until the values are stored.
	release, err := w.host.memory.Hold(ctx, w.tableBytes(&m, assignments))
	if err != nil {
		return hop.Done, err
	}
	defer release()
	began := time.Now()
	values, err := w.contract(ctx, &m, net, assignments, stage.ContractOptions{
		First:   m.First,
		Until:   w.contractUntil(d, m.DeadlineMS, began),
		Memory:  w.memoryLimit(m.Memory),
		Threads: w.host.Threads,
		Shared:  shared,
	})
	if err != nil {
		return hop.Done, err
	}
	d.Flops = m.Cost
	d.SetAttributes(tracing.Flops.Float64(m.Cost))
	partial := &message.Partial{
		Job:         m.Job,
		Tenant:      m.Tenant,
		Digest:      m.Digest,
		JobBlob:     m.JobBlob,
		Plan:        m.Plan,
		K:           m.K,
		N:           m.N,
		Values:      values,
		NumericKind: w.host.kinds.ownKind,
		Names:       m.Names,
		Ends:        m.Ends,
		Stored:      m.Stored,
		Timings:     withTiming(m.Timings, w.Stage, began),
	}
	return hop.Done, w.StoreOutput(ctx, bus.StreamPartial, subject, partial, d, samePartial)
}

// isNeeded reports whether a task is still to be contracted. It reports false if the deadline has passed, because the
// timer or the sweeper ends the job then, with the best estimate so far if it has one. It also reports false if the
// partial is stored, by an earlier run of the same task; the stream delivers that to the aggregator. subject is that of
// the partial. It returns an error if the job has ended.
func (w *Contract) isNeeded(ctx context.Context, d *hop.Message, m *message.Task, subject string) (bool, error) {
	err := w.CheckOpen(ctx, d, m.DeadlineMS)
	if fault.CodeOf(err) == fault.Deadline {
		return false, nil
	}
	if err != nil || w.IsFresh(d) { // a fresh task has no partial
		return err == nil, err
	}
	isStored, err := w.Bus.Log.Has(ctx, bus.StreamPartial, subject)
	return err == nil && !isStored, err
}

// contractUntil returns when the contraction of a job's task ends that begins at began: at the job's deadline. It
// returns zero if there is none.
func (w *Contract) contractUntil(d *hop.Message, deadlineMS int64, began time.Time) time.Time {
	if deadlineMS <= 0 {
		return time.Time{}
	}
	return began.Add(time.Duration(deadlineMS)*time.Millisecond - w.Bus.Conn.Since(d.JobStored))
}

// contract returns the values of a task's units. In tests they are rounded as another processor would.
func (w *Contract) contract(
	ctx context.Context, m *message.Task, net *btn.Network, assignments []btn.Assignment, options stage.ContractOptions,
) ([]btn.UnitValue, error) {
	values, err := stage.Contract(ctx, net, assignments, m.Demands, m.Units, options)
	if err == nil && w.host.Arithmetic != nil {
		w.host.Arithmetic.Round(values)
	}
	return values, err
}

// decodeTask decodes a task into m and checks that it belongs to its subject. It writes the digest, the tenant and the
// time of the request into d.
func decodeTask(d *hop.Message, m *message.Task) error {
	if err := d.Decode(m); err != nil {
		return err
	}
	d.Digest = m.Digest
	d.Tenant = m.Tenant
	d.JobStored = storedAt(m.Stored)
	switch {
	case m.Job != d.Subject.Job:
		return d.Mismatch("job", m.Job, d.Subject.Job)
	case m.N != d.Subject.N || m.K != d.Subject.K:
		return d.Mismatch("chunk", []int{m.K, m.N}, []int{d.Subject.K, d.Subject.N})
	}
	return nil
}

// checkTask returns an error if the plans do not fit the network, or if the task has an invalid demand or a unit that
// does not exist. A unit is one part (component) of the plan of one query. All of these may come from anybody.
func (w *Contract) checkTask(m *message.Task, net *btn.Network, assignments []btn.Assignment, shared *problem.Shared) error {
	// The plans fit the network: this is checked once per pair of blobs.
	pair := [2]string{m.NetworkBlob, m.JobBlob}
	if _, isChecked := w.checkedPlans.Get(pair); !isChecked {
		if err := message.CheckAssignments(net, assignments); err != nil {
			return err
		}
		w.checkedPlans.Put(pair, true, 1)
	}

	// The units exist.
	for _, u := range m.Units {
		if u.Query >= len(assignments) {
			return fault.New(
				fault.BadInput, "pipeline: task names query %d of %d", u.Query, len(assignments),
			)
		}

		a := assignments[u.Query]
		if a.Plan == nil || u.Part >= a.Plan.PartCount() {
			return fault.New(
				fault.BadInput,
				"pipeline: task names component %d of query %d, which has no such component",
				u.Part, u.Query,
			)
		}
	}

	// The demands are valid.
	for i := range m.Demands {
		if err := m.Demands[i].Want.Check(contraction.Domains(net)); err != nil {
			return fault.New(fault.BadInput, "pipeline: demand %d of the task: %w", m.First+i, err)
		}
	}
	return checkRelevant(m, net, assignments, shared)
}

// checkRelevant checks the plans that were made for a part of the network, the one that matters to their query's demand,
// each against that part. It skips units without a demand in the task, because stage.Contract refuses them.
func checkRelevant(m *message.Task, net *btn.Network, assignments []btn.Assignment, shared *problem.Shared) error {
	isChecked := map[*btn.Plan]bool{}
	for _, u := range m.Units {
		a, demand := &assignments[u.Query], u.Query-m.First
		hasDemand := demand >= 0 && demand < len(m.Demands)
		if !a.Relevant || isChecked[a.Plan] || !hasDemand {
			continue
		}
		isChecked[a.Plan] = true
		part, _ := stage.PlannedNetwork(net, m.Demands[demand], a, shared) // without the demand on that part
		if err := message.CheckPlan(part, a.Plan); err != nil {
			return fault.Wrap(fault.BadInput, err)
		}
	}
	return nil
}

// tableBytes returns the bytes that a task's tables take at a time, by its plans: the size of the largest unit's tables
// times the number of threads. If that is above memoryLimit, it is memoryLimit, or the size of the largest unit's tables
// if that is larger.
func (w *Contract) tableBytes(m *message.Task, assignments []btn.Assignment) float64 {
	largest := 0.0
	for _, u := range m.Units {
		a := &assignments[u.Query]
		if a.Plan == nil {
			continue
		}
		part, estimate := a.Plan.Part(u.Part) // the part, and the estimate that it belongs to
		bytes := 0.0
		if estimate != nil {
			bytes = estimate.Cost.Bytes
		}
		if a.Cost != nil { // of the whole assignment
			bytes = max(bytes, a.Cost.Bytes)
		}
		if batcher, ok := part.(contraction.Batcher); ok && len(m.Units) > 1 { // it contracts Lanes units side by side
			bytes *= float64(batcher.Lanes())
		}
		largest = max(largest, bytes)
	}
	return min(largest*float64(max(1, w.host.Threads)), max(largest, float64(w.memoryLimit(m.Memory))))
}

// memoryLimit returns the bytes that tables may take: the limit of the request, 0 for the default, and at most the
// limit of this worker.
func (w *Contract) memoryLimit(requested int64) int64 {
	if requested == 0 {
		requested = query.DefaultMemory
	}

	if w.host.Memory > 0 {
		return min(requested, w.host.Memory)
	}
	return requested
}

// samePartial reports whether two partials of one chunk are the same but for timings and times. Partials of different
// numeric kinds or plans count as the same, because the aggregator refuses to mix them.
func samePartial(a, b wire.Message) bool {
	x, y := *a.(*message.Partial), *b.(*message.Partial) // copies, whose timings are removed below
	if x.NumericKind != y.NumericKind || x.JobBlob != y.JobBlob {
		return true
	}

	x.Timings, y.Timings = nil, nil
	x.Stored, y.Stored = 0, 0
	return hop.SameBytes(&x, &y)
}

// pauseBefore returns the time until this process may begin a task: until the task may begin at all, or until it is
// delivered again because workers of another kind are to compute it. It returns 0 or less if the process may begin it
// now.
func (w *Contract) pauseBefore(d *bus.Delivered) time.Duration {
	if pause := pauseUntilBegin(d); pause > 0 {
		return pause
	}
	return w.host.kinds.passPause(d, d.Header.Get(message.HeaderKind))
}

// isHeavy reports whether a task is not small, or does not state its cost.
func isHeavy(m *bus.Delivered) bool {
	cost, ok := message.Cost(m.Header)
	return !ok || cost > message.SmallFlops
}

// countTries returns how often the work on a task was begun, this time included, so that a task that kills its workers
// comes to an end. Normally that is the number of deliveries. But workers put large tasks aside and pass tasks on to
// another numeric kind without beginning them. For such tasks every call leaves a mark, and the marks are counted. A
// mark is a blob, which outlives the process, needs no further permission and is removed with time.
func (w *Contract) countTries(ctx context.Context, d *hop.Message) int {
	mayBePassed := d.Subject.N > 1 && (d.Raw.Header.Get(message.HeaderKind) != "" || w.host.kinds.mayBeMixed())
	if !mayBePassed && !isHeavy(d.Raw) {
		return d.Attempt
	}
	// Find the first try without a mark, which is this one, and leave its mark. Beyond MaxDeliveries the number makes no
	// difference. If a mark cannot be looked for or left, the tries so far count.
	for try := 1; ; try++ {
		mark := fmt.Appendf(nil, "basetensor: try %d of %s, message %d", try, d.Raw.Subject, d.Raw.Sequence)
		isMarked, err := w.Bus.Blobs.HasAndRenew(ctx, wire.Digest(mark))
		if err == nil && !isMarked {
			_, err = w.Bus.Blobs.Put(ctx, mark)
		}
		if err != nil || !isMarked || try > w.MaxDeliveries {
			return try
		}
	}
}
