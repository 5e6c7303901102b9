package workers

// The first answer of a job with a deadline: learn-worker stores it before anything begins that may be late, and the aggregator answers
// with it where all else fails.

import (
	"context"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/answer/plan"
	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
)

// planInsured is plan with the first answer of a job with a deadline: it is stored from a goroutine of its own if planning takes longer
// than its head start, and else before plans are passed on whose contraction may be late. A large network, and a message that is
// delivered again, have it before planning.
func (w *Learn) planInsured(ctx context.Context, d *hop.Message, net *btn.Network, m *message.Network) (*planned, error) {
	left := time.Duration(m.DeadlineMS)*time.Millisecond - w.Bus.Conn.Since(d.Asked)
	if m.DeadlineMS == 0 {
		return w.plan(ctx, net, m)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var once sync.Once
	store := func(left time.Duration) { once.Do(func() { w.storeFirst(ctx, d, net, m, left) }) }
	head := stage.HeadStart(left, len(net.Cores))
	if head == 0 || d.Attempt > 1 {
		store(left)
	}
	timer := time.AfterFunc(head, func() { store(left) })
	defer timer.Stop()
	p, err := w.plan(ctx, net, m)
	switch {
	case err != nil:
		store(left)
	default:
		switch plan.Insure(p.job, m.Settings) {
		case plan.Insured:
			store(left)
		case plan.InsuredBySweep:
			store(0)
		}
	}
	return p, err
}

// storeFirst stores the first answer of a job that has so much time left. A failure is logged alone: the job goes on without.
func (w *Learn) storeFirst(ctx context.Context, d *hop.Message, net *btn.Network, m *message.Network, left time.Duration) {
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
