package workers

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/cached"
	"github.com/basetensor/basetensor/internal/hop"
	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/internal/stage"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Contract computes the values of tasks.
type Contract struct {
	*hop.Loop
	networks   *decoded[*btn.Network]
	plans      *decoded[*btn.Job]
	checked    checked
	shared     shared
	projectors *cached.Projectors
	threads    int
	memory     int64 // most bytes for tables, whatever the request allows; 0: the request decides
}

// task computes the values of one chunk: task.<lane>.<job>.<n>.<k> → partial.<lane>.<job>.<n>.<k>.
func (w *Contract) task(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
	var m message.Task
	if err := d.Decode(&m); err != nil {
		return hop.Done, err
	}
	d.Digest, d.Tenant = m.Digest, m.Tenant
	switch {
	case m.Job != d.Subject.Job:
		return hop.Done, d.Mismatch("job", m.Job, d.Subject.Job)
	case m.N != d.Subject.N || m.K != d.Subject.K:
		return hop.Done, d.Mismatch("chunk", []int{m.K, m.N}, []int{d.Subject.K, d.Subject.N})
	}
	if err := w.Open(ctx, d, m.Job, m.Digest, m.Stored, m.DeadlineMS); err != nil {
		return hop.Done, err
	}
	subject := message.PartialSubject(d.Subject.Lane, m.Job, m.N, m.K)
	if !d.Fresh(m.Stored) {
		if has, err := w.Bus.Has(ctx, bus.StreamPartial, subject); err != nil || has {
			return hop.Done, err // contracted before; the aggregator was told by the stream
		}
	}
	net, err := w.networks.get(ctx, w.Bus, m.NetworkBlob)
	if err != nil {
		return hop.Done, err
	}
	job, err := w.plans.of(ctx, w.Bus, m.JobBlob, m.Plan)
	if err != nil {
		return hop.Done, err
	}
	if err := w.checked.within(&m, net, job); err != nil {
		d.Broken = true
		return hop.Done, err
	}
	d.Queries = len(job.Assignments)
	began := time.Now()
	of, end := w.shared.hold()
	defer end()
	values, err := stage.Contract(ctx, net, job, m.Queries, m.Units, stage.ContractOptions{First: m.First, Memory: w.bytes(m.Memory), Threads: w.threads, Shared: of, Projectors: w.projectors})
	if err != nil {
		return hop.Done, err
	}
	timings := maps.Clone(m.Timings)
	if timings == nil {
		timings = map[string]float64{}
	}
	timings[w.Stage] = milliseconds(began)
	out := &message.Partial{
		Job: m.Job, Tenant: m.Tenant, Digest: m.Digest, JobBlob: m.JobBlob, Plan: m.Plan, K: m.K, N: m.N, Values: values,
		NumericKind: cached.NumericKind(), Files: m.Files, Ends: m.Ends, Stored: m.Stored, Timings: timings,
	}
	return hop.Done, w.Forward(ctx, bus.StreamPartial, subject, out, d, samePartial)
}

// checked is the last network and plan that were found to fit each other: the tasks of a job name the same two.
type checked struct {
	mu  sync.Mutex
	net *btn.Network
	job *btn.Job
}

// within checks that the plan fits the network and that the task's units exist: both may come from anywhere.
func (c *checked) within(m *message.Task, net *btn.Network, job *btn.Job) error {
	c.mu.Lock()
	known := c.net == net && c.job == job
	c.mu.Unlock()
	if !known {
		if err := message.CheckJob(net, job); err != nil {
			return err
		}
		c.mu.Lock()
		c.net, c.job = net, job
		c.mu.Unlock()
	}
	for _, u := range m.Units {
		if u.Query >= len(job.Assignments) {
			return fault.New(fault.BadInput, "pipeline: task names query %d of %d", u.Query, len(job.Assignments))
		}
		a := job.Assignments[u.Query]
		if a.Error != nil || u.Component >= len(job.Decompositions[a.Decomposition].Components) {
			return fault.New(fault.BadInput, "pipeline: task names component %d of query %d, which has no such component", u.Component, u.Query)
		}
	}
	return nil
}

// bytes is what tables may take: what the request allows, and not more than this worker does.
func (w *Contract) bytes(asked int64) int64 {
	if asked == 0 {
		asked = btn.DefaultMemory
	}
	if w.memory > 0 {
		return min(asked, w.memory)
	}
	return asked
}

// samePartial also holds for two numeric kinds: their last bits may differ, and the aggregator refuses to mix them.
func samePartial(a, b wire.Message) bool {
	x, y := *a.(*message.Partial), *b.(*message.Partial)
	if x.NumericKind != y.NumericKind {
		return x.Digest == y.Digest
	}
	x.Timings, y.Timings, x.Stored, y.Stored, x.JobBlob, x.Plan = nil, nil, 0, 0, y.JobBlob, y.Plan
	return hop.SameBytes(&x, &y)
}
