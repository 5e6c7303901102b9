package pipeline

import (
	"context"
	"maps"
	"sync"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/internal/stage"
	"github.com/basetensor/basetensor/pkg/fault"
)

// contract computes the values of one chunk: task.<lane>.<job>.<n>.<k> → partial.<lane>.<job>.<n>.<k>.
func (w *worker) contract(ctx context.Context, d *delivery) error {
	var m message.Task
	if err := d.decode(&m); err != nil {
		return err
	}
	d.digest, d.tenant = m.Digest, m.Tenant
	switch {
	case m.Job != d.subject.Job:
		return d.mismatch("job", m.Job, d.subject.Job)
	case m.N != d.subject.N || m.K != d.subject.K:
		return d.mismatch("chunk", []int{m.K, m.N}, []int{d.subject.K, d.subject.N})
	}
	if err := w.open(ctx, d, m.Job, m.Digest, m.Stored, m.DeadlineMS); err != nil {
		return err
	}
	subject := message.PartialSubject(d.subject.Lane, m.Job, m.N, m.K)
	if !d.fresh(m.Stored) {
		if has, err := w.bus.Has(ctx, bus.StreamPartial, subject); err != nil || has {
			return err // contracted before; the aggregator was told by the stream
		}
	}
	net, err := w.networks.get(ctx, w.bus, m.NetworkBlob)
	if err != nil {
		return err
	}
	job, err := w.jobs.of(ctx, w.bus, m.JobBlob, m.Plan)
	if err != nil {
		return err
	}
	if err := w.checked.within(&m, net, job); err != nil {
		d.broken = true
		return err
	}
	d.queries = len(job.Assignments)
	began := now()
	of, end := w.shared.hold()
	defer end()
	values, err := stage.Contract(ctx, net, job, m.Queries, m.Units, stage.ContractOptions{First: m.First, Memory: w.memory(m.Memory), Threads: w.Threads, Shared: of, Projectors: w.pairs})
	if err != nil {
		return err
	}
	timings := maps.Clone(m.Timings)
	if timings == nil {
		timings = map[string]float64{}
	}
	timings[string(w.stage)] = milliseconds(began)
	out := &message.Partial{
		Job: m.Job, Tenant: m.Tenant, Digest: m.Digest, JobBlob: m.JobBlob, Plan: m.Plan, K: m.K, N: m.N, Values: values,
		NumericKind: numericKind(), Files: m.Files, Ends: m.Ends, Stored: m.Stored, Timings: timings,
	}
	return w.forward(ctx, bus.StreamPartial, subject, out, d, samePartial)
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

// memory is what tables may take: what the request allows, and not more than this worker does.
func (w *worker) memory(asked int64) int64 {
	if asked == 0 {
		asked = btn.DefaultMemory
	}
	if w.Memory > 0 {
		return min(asked, w.Memory)
	}
	return asked
}
