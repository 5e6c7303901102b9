package workers

import (
	"context"
	"maps"
	"strconv"
	"time"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/hop"
	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/internal/plan"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/internal/stage"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Learn decomposes networks and cuts the work on them into tasks.
type Learn struct {
	*hop.Loop
	memo       plan.Memo
	known      *plan.Known
	networks   *decoded[*btn.Network]
	next       *bus.Room // before contract-worker
	chunkFlops float64
}

// network decomposes a network and cuts the work into chunks: network.<lane>.<job> → task.<lane>.<job>.<n>.<k>.
func (w *Learn) network(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
	var m message.Network
	if err := d.Decode(&m); err != nil {
		return hop.Done, err
	}
	d.Digest, d.Tenant, d.Queries = m.Digest, m.Tenant, len(m.Queries)
	if m.Job != d.Subject.Job {
		return hop.Done, d.Mismatch("job", m.Job, d.Subject.Job)
	}
	if err := w.Open(ctx, d, m.Job, m.Digest, m.Stored, m.DeadlineMS); err != nil {
		return hop.Done, err
	}
	net, err := w.networks.get(ctx, w.Bus, m.Blob)
	if err != nil {
		return hop.Done, err
	}
	began := time.Now()
	planning, settings := inTime(ctx, &m)
	job, err := stage.LearnKnown(planning, net, m.Queries, settings, w.memo, w.known)
	if err != nil {
		return hop.Done, err
	}
	timings := maps.Clone(m.Timings)
	if timings == nil {
		timings = map[string]float64{}
	}
	timings[w.Stage] = milliseconds(began)
	blob, err := message.EncodeAssignments(job)
	if err != nil {
		return hop.Done, fault.Wrap(fault.Internal, err)
	}
	chunks, flops, ends := stage.ChunksAndCosts(net, job, w.chunkFlops)
	of := encodedPlan{digest: wire.Digest(blob)}
	if len(chunks) == 1 && len(blob) <= inlinePlan {
		of.inline = blob
	} else if err := w.WithRoom(ctx, func() error { _, err := w.Bus.PutBlob(ctx, blob); return err }); err != nil {
		return hop.Done, err
	}
	if text := stage.Describe(job); text != "" {
		w.Tell(m.Job, w.Stage, 0, 1, text)
	}
	if err := w.publishTasks(ctx, d, &m, of, chunks, flops, ends, timings); err != nil {
		return hop.Done, err
	}
	w.Progress(m.Job, w.Stage, 1, 1)
	return hop.Done, nil
}

// inTime fits the work of a job to its deadline. The budget becomes what the request's deadline is worth, whatever the time is now, so that
// every worker plans the same; the clock decides only whether a search for plans goes on.
func inTime(ctx context.Context, m *message.Network) (context.Context, btn.Settings) {
	s := m.Settings
	if m.DeadlineMS == 0 {
		return ctx, s
	}
	deadline := time.Duration(m.DeadlineMS) * time.Millisecond
	s.Budget = min(s.WithDefaults().Budget, policy.WorkShare*deadline.Seconds()*policy.Rate)
	return plan.PlanUntil(ctx, time.UnixMilli(m.Stored).Add(time.Duration(policy.PlanShare*float64(deadline)))), s
}

// inlinePlan is how large a plan may be that travels in the messages of a job of one chunk: storing and fetching a blob takes longer
// than the whole of a small job.
const inlinePlan = 16 << 10

// encodedPlan is a job's assignments as bytes, named by its digest, under which it is stored if it is not inline.
type encodedPlan struct {
	digest string
	inline []byte
}

// publishTasks stores one task per chunk, all under way at the same time.
func (w *Learn) publishTasks(
	ctx context.Context, d *hop.Message, m *message.Network, of encodedPlan, chunks [][]btn.Unit, flops []float64,
	ends []int, timings map[string]float64,
) error {
	msgs := make([]*nats.Msg, len(chunks))
	tasks := make([]*message.Task, len(chunks))
	for k, units := range chunks {
		first, queries := only(m.Queries, units)
		tasks[k] = &message.Task{
			Job: m.Job, Tenant: m.Tenant, Digest: m.Digest, NetworkBlob: m.Blob, JobBlob: of.digest, Plan: of.inline, K: k, N: len(chunks),
			Units: units, Ends: ends, Cost: flops[k] * withMarginals(
				m.Queries, units,
			), Queries: queries, First: first, Memory: m.Settings.WithDefaults().Memory,
			Stored: m.Stored, DeadlineMS: m.DeadlineMS, Timings: timings,
		}
		if k == 0 {
			tasks[k].Files = files(m.Queries)
		}
		subject := message.TaskSubject(d.Subject.Lane, m.Job, len(chunks), k)
		var err error
		if msgs[k], err = hop.NewMsg(subject, tasks[k], d); err != nil {
			return err
		}
		msgs[k].Header[headerCost] = []string{strconv.FormatFloat(tasks[k].Cost, 'g', 3, 64)}
	}
	w.next.Spend(d.Subject.Lane, len(msgs))
	var earlier []*jetstream.RawStreamMsg
	err := w.WithRoom(ctx, func() (err error) {
		earlier, err = w.Bus.OnceAll(ctx, bus.StreamTask, msgs)
		return err
	})
	if err != nil {
		return err
	}
	for k, e := range earlier {
		if e != nil {
			if err := w.Agree(e.Data, tasks[k], d, sameTask); err != nil {
				return err
			}
		}
	}
	return nil
}

// withMarginals is how much more than the value alone the units of a chunk cost if one of their queries wants marginals.
func withMarginals(all []query.Query, units []btn.Unit) float64 {
	for _, u := range units {
		if u.Query >= 0 && u.Query < len(all) && all[u.Query].Marginals {
			return 4
		}
	}
	return 1
}

// only returns the queries from the first to the last that units name, with nothing in those between that none names: a chunk
// carries what it needs.
func only(all []query.Query, units []btn.Unit) (first int, queries []query.Query) {
	if len(units) == 0 {
		return 0, nil
	}
	first, last := len(all), 0
	for _, u := range units {
		first, last = min(first, u.Query), max(last, u.Query)
	}
	queries = make([]query.Query, last+1-first)
	for _, u := range units {
		q := all[u.Query]
		queries[u.Query-first] = query.Query{Evidence: q.Evidence, Marginals: q.Marginals, Joint: q.Joint}
	}
	return first, queries
}

// files returns the evidence file per query, or nil if no query has one.
func files(q []query.Query) []string {
	out, any := make([]string, len(q)), false
	for i := range q {
		out[i] = q[i].EvidenceFile
		any = any || out[i] != ""
	}
	if !any {
		return nil
	}
	return out
}

func sameTask(a, b wire.Message) bool {
	x, y := *a.(*message.Task), *b.(*message.Task)
	x.Timings, y.Timings, x.Stored, y.Stored, x.JobBlob, x.Plan = nil, nil, 0, 0, y.JobBlob, y.Plan
	return hop.SameBytes(&x, &y)
}
