package workers

// learn-worker makes the plan of a job. For a job with a deadline it also stores a first answer before it begins
// anything that may be late. The aggregator answers with that if all else fails. The tasks are cut in publish_tasks.go.

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/basetensor/basetensor/internal/answer/plan"
	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/admission"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/pull"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Learn makes plans for networks, and cuts the contraction of their parts into tasks.
type Learn struct {
	*hop.Loop
	host     *Host
	taskRoom *bus.Room       // for messages in the stream of tasks
	rates    admission.Rates // what tenants have spent of their rates
}

// setUpLearn gives worker the intake of learn-worker, its only source of messages: networks.
func (h *Host) setUpLearn(worker *Worker) {
	room := bus.NewRoom(h.Bus.Conn, bus.StreamTask, bus.ConsumerTask, 4) // a quarter of the backlog of jobs
	learn := &Learn{Loop: worker.loop, host: h, taskRoom: room}
	if h.Redis {
		learn.rates.Shared = h.Cache
	}
	h.hasLearner = true
	h.addListener(worker)

	worker.intakes = []*intake{
		{
			Feed:   streams.Networks,
			Intake: hop.Intake{Handler: learn.handleNetwork, MeasuresCost: true},
			pull:   pull.Intake{Prefetch: 2, Slots: 4, Room: room},
		},
	}
}

// earlierPlanAge is the age of a job above which learn-worker first looks for an earlier plan, as it does for a message
// that is delivered again: the job may have been started again.
const earlierPlanAge = 2 * time.Second

// handleNetwork assigns plans to a job's queries and cuts the work into tasks: network.<lane>.<job> →
// task.<lane>.<job>.<n>.<k>.
func (w *Learn) handleNetwork(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
	var m message.Network
	if err := d.Decode(&m); err != nil {
		return hop.Done, err
	}
	d.Digest = m.Digest
	d.Tenant = m.Tenant
	d.JobStored = storedAt(m.Stored)
	d.Queries = len(m.Queries)
	if m.Job != d.Subject.Job {
		return hop.Done, d.Mismatch("job", m.Job, d.Subject.Job)
	}

	if err := w.CheckOpen(ctx, d, m.DeadlineMS); err != nil {
		return hop.Done, err
	}

	// Find the plan of an earlier run, or make one.
	net, err := w.host.networks.get(ctx, w.Bus.Blobs, m.Blob, nil)
	if err != nil {
		return hop.Done, err
	}
	began := time.Now()
	var p *jobPlan
	mayHaveBegun := d.Attempt > 1 || w.Bus.Conn.Since(d.JobStored) > earlierPlanAge
	if mayHaveBegun {
		p, err = w.findEarlierPlan(ctx, d, m.Job)
	}
	if p == nil && err == nil {
		p, err = w.planWithFirstAnswer(ctx, d, net, &m)
	}
	if err != nil {
		return hop.Done, err
	}

	m.Timings = withTiming(m.Timings, w.Stage, began)
	if err := w.cutAndPublish(ctx, d, &m, net, p); err != nil {
		return hop.Done, err
	}
	w.Progress(m.Job, w.Stage, 1, 1)
	return hop.Done, nil
}

// planWithFirstAnswer makes the plans of a job's queries. If the job has a deadline, it also stores a first answer, at
// most once: quick estimates for the queries that have no result when the deadline comes. Planning has a head start, in
// which most plans are made; it is 0 if the network is large. The first answer is stored
//   - before planning, if the head start is 0 or the message is delivered again
//   - from a goroutine, if planning takes longer than its head start
//   - after planning, if planning failed or the contraction of the plans may be late
func (w *Learn) planWithFirstAnswer(ctx context.Context, d *hop.Message, net *btn.Network, m *message.Network) (*jobPlan, error) {
	if m.DeadlineMS == 0 {
		return w.makePlan(ctx, net, m)
	}

	// Store a first answer now, or when the head start of planning is over.
	remaining := time.Duration(m.DeadlineMS)*time.Millisecond - w.Bus.Conn.Since(d.JobStored)
	ctx, cancel := context.WithCancel(ctx) // its end gives up a first answer in work, which is of no use after this function
	defer cancel()
	store := onlyFirst(func(remaining time.Duration) { w.storeFirstAnswer(ctx, d, net, m, remaining) })
	headStart := stage.HeadStart(remaining, len(net.Cores))
	if headStart == 0 || d.Attempt > 1 {
		store(remaining)
	} else {
		timer := time.AfterFunc(headStart, func() { store(remaining) })
		defer timer.Stop()
	}

	// Plan, and store a first answer if it was not stored and may be needed.
	p, err := w.makePlan(ctx, net, m)
	if err != nil {
		store(remaining)
		return p, err
	}
	switch plan.Insure(p.assignments, len(net.Cores), m.Settings) {
	case plan.Insured: // some plan may be late
		store(remaining)
	case plan.InsuredBySweep: // no plan takes a large share of the budget, but one takes longer than a sweep of belief propagation
		store(oneSweep)
	}
	return p, nil
}

// oneSweep is the remaining time with which storeFirstAnswer makes one sweep of belief propagation: no time is left for
// a second one.
const oneSweep = 0

// onlyFirst returns a function that calls store with the argument of its first call. Further calls wait until that has
// ended, and do nothing else.
func onlyFirst(store func(remaining time.Duration)) func(remaining time.Duration) {
	var isBegun atomic.Bool
	hasEnded := make(chan struct{})
	return func(remaining time.Duration) {
		if !isBegun.CompareAndSwap(false, true) {
			<-hasEnded
			return
		}
		defer close(hasEnded)
		store(remaining)
	}
}

// storeFirstAnswer computes and stores the first answer of a job, given the remaining time until its deadline. A
// failure or a panic is only logged, because the job goes on without a first answer.
func (w *Learn) storeFirstAnswer(ctx context.Context, d *hop.Message, net *btn.Network, m *message.Network, remaining time.Duration) {
	var err error
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v: %s", p, debug.Stack())
		}
		if err != nil && ctx.Err() == nil {
			w.Log.Warn("no first answer", "job", m.Job, "error", err)
		}
	}()

	subject := message.FirstSubject(m.Job)
	if d.Attempt > 1 { // an earlier attempt may have stored it
		var isStored bool
		if isStored, err = w.Bus.Log.Has(ctx, bus.StreamPartial, subject); isStored || err != nil {
			return
		}
	}

	results, err := stage.FirstResults(ctx, m.Job, net, m.Queries, m.Settings, remaining)
	if err != nil || !stage.HasAnswer(results) {
		return
	}
	names, err := message.DecodeNames(m.Names)
	if err != nil {
		return
	}
	for i := range results {
		results[i].Name(names) // names its variables
	}

	answer := &wire.Answer{Job: m.Job, Tenant: m.Tenant, Digest: m.Digest, Status: wire.StatusOK, Results: results}
	msg, err := hop.NewMsg(subject, answer, d)
	if err != nil {
		return
	}
	if _, err = w.Bus.Log.PutOnce(ctx, bus.StreamPartial, msg); err != nil {
		err = fault.Wrap(fault.Infrastructure, err)
	}
}

// makePlan makes the plans of a job's queries, with what is remembered for the job's owner.
func (w *Learn) makePlan(ctx context.Context, net *btn.Network, m *message.Network) (*jobPlan, error) {
	planning, settings := w.fitToDeadline(ctx, m, len(net.Cores))
	if m.Registered { // more jobs with this model may come
		planning = proposal.WithRecurringNetwork(planning)
	}
	if w.host.Replan != nil { // in tests
		settings = w.host.Replan(settings)
	}

	// Plan.
	owner := cacheOwner(m.Tenant, m.OwnCache)
	memory := w.host.memoryOf(owner)
	_, endUse := memory.shared.startUse() // planning uses the shared results by way of memory.knowledge
	defer endUse()
	assignments, err := stage.Learn(planning, net, m.Queries, settings, memory.memo, memory.knowledge)
	if err != nil {
		return nil, err
	}

	// Encode the plans.
	blob, err := message.EncodeAssignmentsOf(owner, assignments)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err)
	}
	return &jobPlan{assignments: assignments, digest: wire.Digest(blob), blob: blob}, nil
}

// fitToDeadline returns a context and settings for the planning of a job with so many tables. If the job has a
// deadline, the context ends the search for plans, and the settings bound the budget. The budget depends on the
// requested deadline and not on the clock, so that every worker makes the same plan. The clock only ends the search.
func (w *Learn) fitToDeadline(ctx context.Context, m *message.Network, tables int) (context.Context, query.Settings) {
	settings := m.Settings
	if m.DeadlineMS == 0 {
		return ctx, settings
	}

	deadline := time.Duration(m.DeadlineMS) * time.Millisecond
	work := policy.WorkShare * deadline.Seconds() * policy.Rate // operations in WorkShare of the deadline
	settings.Budget = min(settings.WithDefaults().Budget, work)

	remaining := stage.PlanningTime(deadline, tables) - w.Bus.Conn.Since(time.UnixMilli(m.Stored))
	return proposal.WithDeadlineFlops(proposal.WithAnswerDeadline(ctx, time.Now().Add(remaining)), work), settings
}

// withTiming returns a copy of timings with the time since a stage began.
func withTiming(timings map[string]float64, stage string, began time.Time) map[string]float64 {
	timings = maps.Clone(timings)
	if timings == nil {
		timings = map[string]float64{}
	}
	timings[stage] = milliseconds(began)
	return timings
}
