package admission

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Ledger keeps, for all processes together, until when tenants have spent their rate. Book applies
// Booking to the entry of a name; ok is false if the ledger cannot be reached.
type Ledger interface {
	Book(ctx context.Context, name string, b Booking) (begin time.Time, ok bool)
}

// Booking is work that takes a while of a tenant's rate.
type Booking struct {
	Now   time.Time
	Takes time.Duration // of the rate
	Burst time.Duration // bound of the work spent ahead
	Most  time.Duration // the longest wait: beyond it nothing is booked
}

// Book returns when the work may begin, and until when the rate is spent then, given until when it
// was spent before.
func (b Booking) Book(spent time.Time) (begin, after time.Time) {
	begin = b.Now
	if first := spent.Add(-b.Burst); first.After(begin) {
		begin = first
	}
	if begin.Sub(b.Now) > b.Most {
		return begin, spent
	}
	if spent.Before(b.Now) {
		spent = b.Now
	}
	return begin, spent.Add(b.Takes)
}

// Rates bound the work of tenants per second.
type Rates struct {
	Shared Ledger // nil: this process counts for itself alone

	mu    sync.Mutex
	spent map[string]time.Time // by tenant, by this process
}

// Spend books flops of a tenant and returns when they may be spent. A wait beyond the limits is an
// error with the code over_budget.
func (r *Rates) Spend(
	ctx context.Context, now time.Time, tenant, class string, flops float64, l *Limits,
) (begin time.Time, err error) {
	if l.FlopsPerSecond == 0 || flops == 0 {
		return now, nil
	}
	b := Booking{
		Now:   now,
		Takes: seconds(flops / l.FlopsPerSecond),
		Burst: seconds(l.Burst / l.FlopsPerSecond),
		Most:  seconds(l.WaitSeconds),
	}
	if l.WaitSeconds == 0 {
		b.Most = math.MaxInt64
	}

	// The ledger may be out of reach for one job and not for the next: this process counts its own as well.
	begin = now
	if r.Shared != nil {
		if shared, ok := r.Shared.Book(ctx, tenant, b); ok {
			begin = shared
		}
	}
	if begin.Sub(now) <= b.Most {
		if own := r.book(tenant, b); own.After(begin) {
			begin = own
		}
	}
	if wait := begin.Sub(now); wait > b.Most {
		return begin, fault.New(
			fault.OverBudget, "admission: %.4g flops could begin in %.0f s: flops_per_second of class %q is %.4g, "+
				"wait_seconds %.4g", flops, wait.Seconds(), class, l.FlopsPerSecond, l.WaitSeconds,
		)
	}
	return begin, nil
}

// book is Booking in this process. Tenants whose rate is not spent are forgotten now and then.
func (r *Rates) book(tenant string, b Booking) (begin time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.spent == nil || len(r.spent) > 10_000 {
		kept := map[string]time.Time{}
		for name, until := range r.spent {
			if until.After(b.Now) {
				kept[name] = until
			}
		}
		r.spent = kept
	}
	begin, r.spent[tenant] = b.Book(r.spent[tenant])
	return begin
}

// seconds is a duration of at most a hundred years.
func seconds(s float64) time.Duration {
	return time.Duration(min(s, 100*365*86400) * float64(time.Second))
}
