package workers

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/admission"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/tracing"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// Learn makes plans for networks, and cuts the contraction of their parts into tasks.
type Learn struct {
	*hop.Loop
	host  *Host
	next  *bus.Room // of the task stream
	rates admission.Rates
}

// network assigns plans to a job's queries and cuts the work into chunks: network.<lane>.<job> →
// task.<lane>.<job>.<n>.<k>.
func (w *Learn) network(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
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

	net, err := w.host.networks.of(ctx, w.Bus.Blobs, m.Blob, nil)
	if err != nil {
		return hop.Done, err
	}

	began := time.Now()
	var p *planned
	if d.Attempt > 1 || w.Bus.Conn.Since(d.Asked) > plannedBefore {
		p, err = w.earlier(ctx, d, m.Job)
	}
	if p == nil && err == nil {
		p, err = w.planInsured(ctx, d, net, &m)
	}
	if err != nil {
		return hop.Done, err
	}

	m.Timings = withTiming(m.Timings, w.Stage, began)
	if err := w.pass(ctx, d, &m, net, p); err != nil {
		return hop.Done, err
	}
	w.Progress(m.Job, w.Stage, 1, 1)
	return hop.Done, nil
}

// plan makes the plans of a job's queries.
func (w *Learn) plan(ctx context.Context, net *btn.Network, m *message.Network) (*planned, error) {
	planning, settings := w.inTime(ctx, m, len(net.Cores))
	if m.Registered {
		planning = proposal.Recurring(planning)
	}
	if w.host.Replan != nil {
		settings = w.host.Replan(settings)
	}
	owner := ownerOf(m.Tenant, m.OwnCache)
	kept := w.host.keptOf(owner)
	_, end := kept.shared.hold()
	defer end()
	job, err := stage.Learn(planning, net, m.Queries, settings, kept.memo, kept.known)
	if err != nil {
		return nil, err
	}
	blob, err := message.EncodeAssignmentsOf(owner, job)
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err)
	}
	return &planned{job: job, digest: wire.Digest(blob), blob: blob}, nil
}

// pass cuts the contraction of a job into tasks and stores them. If an earlier run has passed on
// another plan, pass completes the tasks of that plan in place of p's.
func (w *Learn) pass(ctx context.Context, d *hop.Message, m *message.Network, net *btn.Network, p *planned) error {
	demands := stage.Demands(net, m.Queries)
	for range mostPlans {
		chunks, flops, ends := stage.ChunksAndCosts(net, p.job, w.host.ChunkFlops)
		begin, err := w.admit(ctx, d, m, p.job, chunks, flops)
		if err != nil {
			return err
		}
		// The plan travels in the only task of a small job, and is stored for the tasks of any other.
		if len(chunks) == 1 && len(p.blob) <= inlinePlan {
			p.inline = p.blob
		} else if err := w.keep(ctx, p); err != nil {
			return err
		}
		if text := stage.Describe(p.job); text != "" {
			w.Tell(m.Job, w.Stage, 0, 1, text)
		}
		d.Describe(
			tracing.Method.String(string(m.Settings.WithDefaults().Method)), tracing.Chunks.Int(len(chunks)),
		)

		tasks := w.tasks(d.Subject.Lane, m, p, demands, chunks, flops, ends)
		other, err := w.publish(ctx, d, tasks, p, begin)
		if err != nil || other == nil {
			return err
		}
		p = other
	}
	return fault.New(fault.Infrastructure, "pipeline: the tasks of job %s follow several plans", m.Job)
}

// mostPlans is the maximum number of plans of one job in one run of pass: its own, an earlier run's,
// and one more if the blob of that was lost.
const mostPlans = 3

// withTiming returns a copy of the timings with the time of a stage that began at a given time.
func withTiming(before map[string]float64, stage string, began time.Time) map[string]float64 {
	after := maps.Clone(before)
	if after == nil {
		after = map[string]float64{}
	}
	after[stage] = milliseconds(began)
	return after
}

// inTime fits the planning of a job to its deadline. The budget depends on the requested deadline
// and not on the clock, so that every worker makes the same plan; the clock only ends the search
// for plans.
func (w *Learn) inTime(ctx context.Context, m *message.Network, tables int) (context.Context, query.Settings) {
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

// inlinePlan is the size in bytes up to which a plan travels in the message of a job of one task:
// storing and fetching a blob takes longer than all the rest of a small job.
const inlinePlan = 16 << 10

// tasks returns one task per chunk.
func (w *Learn) tasks(
	lane int, m *message.Network, p *planned, demands []btn.Demand, chunks [][]btn.Unit, flops []float64, ends []int,
) []*message.Task {
	kind := "" // of the workers that compute several tasks
	if len(chunks) > 1 {
		kind = w.host.kinds.give(lane, m.Job, slices.Max(flops), time.Duration(m.DeadlineMS)*time.Millisecond)
	}
	tasks := make([]*message.Task, len(chunks))
	for k, units := range chunks {
		first, named := only(demands, units)
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
			Cost:        flops[k] * withMarginals(p.job, units),
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

// withMarginals returns the factor by which the cost of a chunk's units exceeds the cost of their
// values alone: 4 if marginals are wanted of one of them.
func withMarginals(job []btn.Assignment, units []btn.Unit) float64 {
	for _, u := range units {
		if u.Query >= 0 && u.Query < len(job) && job[u.Query].Want.Marginals {
			return 4
		}
	}
	return 1
}

// only returns the demands that units name, from the first to the last of them, and the position of
// the first. Demands between them that no unit names are left empty: a task carries only the
// demands that it needs.
func only(all []btn.Demand, units []btn.Unit) (first int, named []btn.Demand) {
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
