package admission

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Ledger keeps, for all processes together, the time until which each tenant has spent its rate.
type Ledger interface {
	// Book calls b.Book with the time of a name, and stores the new time. ok is false if the ledger cannot be reached.
	Book(ctx context.Context, name string, b Booking) (begin time.Time, ok bool)
}

// Booking is work that takes a while of a tenant's rate.
type Booking struct {
	Now      time.Time
	Duration time.Duration // time in which the rate allows this much work
	Burst    time.Duration // by how much work may begin before the rate allows it
	MaxWait  time.Duration // longest wait: if the work would begin later, nothing is booked
}

// Book books the work of a tenant whose earlier work takes its rate until spentUntil. The work may begin at the time
// begin: at spentUntil − Burst, or Now if that is later. With this work the rate is spent until spentAfter. If the wait
// until begin is longer than MaxWait, the work is not booked, and spentAfter is spentUntil.
func (b Booking) Book(spentUntil time.Time) (begin, spentAfter time.Time) {
	begin = b.Now
	if earliest := spentUntil.Add(-b.Burst); earliest.After(begin) {
		begin = earliest
	}
	if begin.Sub(b.Now) > b.MaxWait {
		return begin, spentUntil
	}
	if spentUntil.Before(b.Now) {
		spentUntil = b.Now
	}
	return begin, spentUntil.Add(b.Duration)
}

// Rates bound the work per second of each tenant.
type Rates struct {
	Shared Ledger // counts for all processes; nil: this process counts for itself alone

	mu         sync.Mutex
	spentUntil map[string]time.Time // by tenant, as this process counts
}

// Spend books flops of a tenant and returns when the work may begin. The error has the code over_budget if the wait is
// longer than the limits allow.
func (r *Rates) Spend(
	ctx context.Context, now time.Time, tenant, class string, flops float64, l *Limits,
) (begin time.Time, err error) {
	if l.FlopsPerSecond == 0 || flops == 0 {
		return now, nil
	}
	b := Booking{
		Now:      now,
		Duration: seconds(flops / l.FlopsPerSecond),
		Burst:    seconds(l.Burst / l.FlopsPerSecond),
		MaxWait:  seconds(l.WaitSeconds),
	}
	if l.WaitSeconds == 0 { // any wait
		b.MaxWait = math.MaxInt64
	}

	// Book in the ledger and, because that may be out of reach for one job and not for the next, in this process as well.
	// The later begin counts. This process is asked first, so that the ledger does not book work that this process refuses.
	begin, _ = b.Book(r.spentHere(tenant))
	isRefused := func() bool { return begin.Sub(now) > b.MaxWait }
	if r.Shared != nil && !isRefused() {
		if sharedBegin, ok := r.Shared.Book(ctx, tenant, b); ok && sharedBegin.After(begin) {
			begin = sharedBegin
		}
	}
	if !isRefused() {
		if ownBegin := r.bookHere(tenant, b); ownBegin.After(begin) {
			begin = ownBegin
		}
	}
	if isRefused() {
		wait := begin.Sub(now)
		return begin, fault.New(
			fault.OverBudget, "admission: %.4g flops could begin in %.0f s: flops_per_second of class %q is %.4g, "+
				"wait_seconds %.4g", flops, wait.Seconds(), class, l.FlopsPerSecond, l.WaitSeconds,
		)
	}
	return begin, nil
}

// spentHere returns the time until which this process has counted a tenant's rate as spent.
func (r *Rates) spentHere(tenant string) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.spentUntil[tenant]
}

// bookHere books work by what this process alone has counted. Tenants whose rate is not spent are forgotten now and
// then.
func (r *Rates) bookHere(tenant string, b Booking) (begin time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	const maxTenants = 10_000 // chosen; when more are known, those whose rate is not spent are forgotten
	if r.spentUntil == nil || len(r.spentUntil) > maxTenants {
		unexpired := map[string]time.Time{}
		for name, until := range r.spentUntil {
			if until.After(b.Now) {
				unexpired[name] = until
			}
		}
		r.spentUntil = unexpired
	}
	begin, r.spentUntil[tenant] = b.Book(r.spentUntil[tenant])
	return begin
}

// seconds converts seconds to a duration of at most a hundred years.
func seconds(s float64) time.Duration {
	const hundredYears = 100 * 365 * 86400 // seconds; a duration ends at 292 years
	return time.Duration(min(s, hundredYears) * float64(time.Second))
}
