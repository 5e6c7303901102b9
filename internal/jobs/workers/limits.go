package workers

// Limits of tenants: reparam-worker refuses requests that are too large, learn-worker refuses plans that take too much
// and delays tasks of tenants that have spent their rate, and contract-worker waits until a delayed task may begin.

import (
	"context"
	"strconv"
	"time"

	"github.com/basetensor/basetensor/internal/answer/questions"
	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/queue/admission"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/wire"
)

// admitRequest returns an error if a request is above its tenant's limits, before any work on the request.
func (w *Reparam) admitRequest(d *hop.Message, m *wire.Request) error {
	if w.host.Tenants == nil {
		return nil
	}
	var domains []int
	if m.Model != nil {
		domains = m.Model.Domains
	}
	size := questions.SizeOf(domains, m.Queries)
	asked := admission.RequestCost{
		Bytes: len(d.Data), Demands: size.Demands, Numbers: size.Numbers, Cases: size.Cases, Settings: m.Settings,
	}
	class, limits := w.host.Tenants.Tenants().Limits(d.Tenant)
	return limits.Admit(class, asked.MinCost(), admission.ByRequest)
}

// headerBegin is the header of a task whose tenant has spent its rate: the time in Unix milliseconds before which the
// task may not begin.
const headerBegin = "Btn-Begin"

// admitPlan returns an error if a job's plan takes more than its tenant may have. Otherwise it books the work on the
// tenant's rate and returns when the job's tasks may begin; the zero time means at once. The work of a message that is
// delivered again was booked before.
func (w *Learn) admitPlan(ctx context.Context, d *hop.Message, m *message.Network, cut *planCut) (begin time.Time, err error) {
	if w.host.Tenants == nil {
		return time.Time{}, nil
	}
	price := cut.price()
	class, limits := w.host.Tenants.Tenants().Limits(m.Tenant)
	if err := limits.Admit(class, price, admission.ByPlan); err != nil {
		return time.Time{}, err
	}
	if d.Attempt > 1 {
		return time.Time{}, nil
	}
	now := time.Now()
	if begin, err = w.rates.Spend(ctx, now, message.AccountOf(m.Job, m.Tenant), class, price.Flops, &limits); err != nil || begin == now {
		return time.Time{}, err
	}
	return begin, nil
}

// price returns what the contraction of a plan takes: the operations of all its chunks, the number of their units (parts of
// plans), and the bytes of its largest estimate.
func (c *planCut) price() (price admission.Cost) {
	for k, units := range c.chunks {
		price.Flops += c.cost(k)
		price.Parts += float64(len(units))
	}
	for _, a := range c.assignments {
		if a.Plan != nil {
			for k := range a.Plan.Estimates {
				price.Bytes = max(price.Bytes, a.Plan.Estimates[k].Cost.Bytes)
			}
		}
	}
	return price
}

const (
	// latestBegin bounds the time from when a task was stored until it begins: the default life of messages. No learn-worker writes a
	// header beyond it.
	latestBegin = 24 * time.Hour
	// longestBeginPause bounds a pause before a task. After it the header is read again.
	longestBeginPause = 10 * time.Minute
)

// pauseUntilBegin returns the time until a task may begin. It returns 0 or less if the task may begin now, if it has no
// time, or if its time is beyond latestBegin.
func pauseUntilBegin(m *bus.Delivered) time.Duration {
	begin, err := strconv.ParseInt(m.Header.Get(headerBegin), 10, 64)
	if err != nil || begin > m.Stored.Add(latestBegin).UnixMilli() {
		return 0
	}
	return min(time.Until(time.UnixMilli(begin)), longestBeginPause)
}
