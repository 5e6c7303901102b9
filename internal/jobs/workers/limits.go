package workers

import (
	"context"
	"strconv"
	"time"

	"github.com/basetensor/basetensor/internal/answer/questions"
	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/admission"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/wire"
)

// admitRequest refuses a request above its tenant's limits before any work on it.
func (w *Reparam) admitRequest(d *hop.Message, m *wire.Request) error {
	if w.host.Tenants == nil {
		return nil
	}
	var domains []int
	if m.Model != nil {
		domains = m.Model.Domains
	}
	size := questions.SizeOf(domains, m.Queries)
	asked := admission.Asked{
		Bytes: len(d.Data), Demands: size.Demands, Numbers: size.Numbers, Cases: size.Cases, Settings: m.Settings,
	}
	class, limits := w.host.Tenants.Tenants().Limits(d.Tenant)
	return limits.Admit(class, asked.AtLeast(), admission.ByRequest)
}

// headerBegin is the header of a task that is not to be begun before a time, in Unix milliseconds: its
// tenant has spent its rate.
const headerBegin = "Btn-Begin"

// admit refuses a job whose plan takes more than its tenant may have, and returns when its tasks may
// begin; zero: at once.
func (w *Learn) admit(
	ctx context.Context, d *hop.Message, m *message.Network, job []btn.Assignment, chunks [][]btn.Unit,
	flops []float64,
) (begin time.Time, err error) {
	if w.host.Tenants == nil {
		return time.Time{}, nil
	}
	var price admission.Cost
	for k, units := range chunks {
		price.Flops += flops[k] * marginalsFactor(job, units)
		price.Parts += float64(len(units))
	}
	for _, a := range job {
		if a.Plan != nil {
			for k := range a.Plan.Estimates {
				price.Bytes = max(price.Bytes, a.Plan.Estimates[k].Cost.Bytes)
			}
		}
	}

	class, limits := w.host.Tenants.Tenants().Limits(m.Tenant)
	if err := limits.Admit(class, price, admission.ByPlan); err != nil {
		return time.Time{}, err
	}
	if d.Attempt > 1 { // its work was booked
		return time.Time{}, nil
	}
	now := time.Now()
	if begin, err = w.rates.Spend(ctx, now, message.AccountOf(m.Job, m.Tenant), class, price.Flops, &limits); err != nil || begin == now {
		return time.Time{}, err
	}
	return begin, nil
}

// mostLater bounds the pause of a task that comes too early; then it is looked at again.
const longestBeginPause = 10 * time.Minute

// longestLater bounds the time from when a task was stored until it begins: the default life of messages. No learn-worker writes a
// header beyond it.
const latestBegin = 24 * time.Hour

// later returns how long a task is not to be begun yet; 0 where its header says a time beyond longestLater.
func pauseUntilBegin(m *bus.Delivered) time.Duration {
	begin, err := strconv.ParseInt(m.Header.Get(headerBegin), 10, 64)
	if err != nil || begin > m.Stored.Add(latestBegin).UnixMilli() {
		return 0
	}
	return min(time.Until(time.UnixMilli(begin)), longestBeginPause)
}
