package workers

// The first answer of a job with a deadline: learn-worker stores it before anything begins that may be late, and the aggregator answers
// with it where all else fails.

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"sync"
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
	taskRoom *bus.Room // of the task stream
	rates    admission.Rates
}

// learn gives w the intake of learn-worker: networks.
func (h *Host) setUpLearn(w *Worker) {
	next := bus.NewRoom(h.Bus.Conn, bus.StreamTask, bus.ConsumerTask, 4)
	l := &Learn{Loop: w.loop, host: h, taskRoom: next}
	if h.Redis {
		l.rates.Shared = h.Cache
	}
	h.hasLearner = true
	h.addListener(w)

	w.intakes = []*intake{
		{
			Feed:   streams.Networks,
			Intake: hop.Intake{Handler: l.handleNetwork, Metered: true},
			pull:   pull.Intake{Prefetch: 2, Slots: 4, Room: next},
		},
	}
}

// plannedBefore is the age above which learn-worker looks for a job's earlier plan first, as for a
// message that is delivered again: the job may have been started again.
const earlierPlanAge = 2 * time.Second

// network assigns plans to a job's queries and cuts the work into chunks: network.<lane>.<job> →
// task.<lane>.<job>.<n>.<k>.
func (w *Learn) handleNetwork(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
	var m message.Network
	if err := d.Decode(&m); err != nil {
		return hop.Done, err
	}
	d.Digest = m.Digest
	d.Tenant = m.Tenant
	d.Asked = storedAt(m.Stored)
	d.Queries = len(m.Queries)
	if m.Job != d.Subject.Job {
		return hop.Done, d.Mismatch("job", m.Job, d.Subject.Job)
	}

	if err := w.Open(ctx, d, m.DeadlineMS); err != nil {
		return hop.Done, err
	}

	net, err := w.host.networks.get(ctx, w.Bus.Blobs, m.Blob, nil)
	if err != nil {
		return hop.Done, err
	}

	began := time.Now()
	var p *jobPlan
	if d.Attempt > 1 || w.Bus.Conn.Since(d.Asked) > earlierPlanAge {
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

// planInsured is plan with the first answer of a job with a deadline: it is stored from a goroutine of its own if planning takes longer
// than its head start, and else before plans are passed on whose contraction may be late. A large network, and a message that is
// delivered again, have it before planning.
func (w *Learn) planWithFirstAnswer(ctx context.Context, d *hop.Message, net *btn.Network, m *message.Network) (*jobPlan, error) {
	left := time.Duration(m.DeadlineMS)*time.Millisecond - w.Bus.Conn.Since(d.Asked)
	if m.DeadlineMS == 0 {
		return w.makePlan(ctx, net, m)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var once sync.Once
	store := func(left time.Duration) { once.Do(func() { w.storeFirstAnswer(ctx, d, net, m, left) }) }
	head := stage.HeadStart(left, len(net.Cores))
	if head == 0 || d.Attempt > 1 {
		store(left)
	}
	timer := time.AfterFunc(head, func() { store(left) })
	defer timer.Stop()
	p, err := w.makePlan(ctx, net, m)
	switch {
	case err != nil:
		store(left)
	default:
		switch plan.Insure(p.assignments, m.Settings) {
		case plan.Insured:
			store(left)
		case plan.InsuredBySweep:
			store(0)
		}
	}
	return p, err
}

// storeFirst stores the first answer of a job that has so much time left. A failure is logged alone: the job goes on without.
func (w *Learn) storeFirstAnswer(ctx context.Context, d *hop.Message, net *btn.Network, m *message.Network, left time.Duration) {
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
	if d.Attempt > 1 {
		if has, failed := w.Bus.Log.Has(ctx, bus.StreamPartial, subject); has || failed != nil {
			err = failed
			return
		}
	}
	results, err := stage.First(ctx, m.Job, net, m.Queries, m.Settings, left)
	if err != nil || !stage.Answered(results) {
		return
	}
	names, err := message.DecodeNames(m.Names)
	if err != nil {
		return
	}
	for i := range results {
		results[i].Name(names)
	}
	first := &wire.Answer{Job: m.Job, Tenant: m.Tenant, Digest: m.Digest, Status: wire.StatusOK, Results: results}
	msg, err := hop.NewMsg(subject, first, d)
	if err != nil {
		return
	}
	if _, err = w.Bus.Log.PutOnce(ctx, bus.StreamPartial, msg); err != nil {
		err = fault.Wrap(fault.Infrastructure, err)
	}
}

// plan makes the plans of a job's queries.
func (w *Learn) makePlan(ctx context.Context, net *btn.Network, m *message.Network) (*jobPlan, error) {
	planning, settings := w.fitToDeadline(ctx, m, len(net.Cores))
	if m.Registered {
		planning = proposal.Recurring(planning)
	}
	if w.host.Replan != nil {
		settings = w.host.Replan(settings)
	}
	owner := cacheOwner(m.Tenant, m.OwnCache)
	kept := w.host.memoryOf(owner)
	_, end := kept.shared.begin()
	defer end()
	job, err := stage.Learn(planning, net, m.Queries, settings, kept.memo, kept.known)
	if err != nil {
		return nil, err
	}
	blob, err := message.EncodeAssignmentsOf(owner, job)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err)
	}
	return &jobPlan{assignments: job, digest: wire.Digest(blob), blob: blob}, nil
}

// inTime fits the planning of a job to its deadline. The budget depends on the requested deadline
// and not on the clock, so that every worker makes the same plan; the clock only ends the search
// for plans.
func (w *Learn) fitToDeadline(ctx context.Context, m *message.Network, tables int) (context.Context, query.Settings) {
	s := m.Settings
	if m.DeadlineMS == 0 {
		return ctx, s
	}

	deadline := time.Duration(m.DeadlineMS) * time.Millisecond
	worth := policy.WorkShare * deadline.Seconds() * policy.Rate
	s.Budget = min(s.WithDefaults().Budget, worth)

	left := stage.PlanningTime(deadline, tables) - w.Bus.Conn.Since(time.UnixMilli(m.Stored))
	return proposal.Worth(proposal.Until(ctx, time.Now().Add(left)), worth), s
}

// withTiming returns a copy of the timings with the time of a stage that began at a given time.
func withTiming(before map[string]float64, stage string, began time.Time) map[string]float64 {
	after := maps.Clone(before)
	if after == nil {
		after = map[string]float64{}
	}
	after[stage] = milliseconds(began)
	return after
}
