package proposal

// Planning under a deadline: the search for plans leaves time for the answer.

import (
	"context"
	"errors"
	"time"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/fault"
)

// planningKey is the key of a planning in a context.
type planningKey struct{}

// planning is the time until which plans may be searched for.
type planning struct {
	until  time.Time
	answer bool    // the request has a deadline
	flops  float64 // what it is worth; 0: not known
}

// Until returns a context under which queries are planned until t at the latest: searches are counted in moves,
// and where a machine is too busy for those, the result of a greedy search is taken. A plan that is remembered
// is used whatever the time.
func Until(ctx context.Context, t time.Time) context.Context {
	return context.WithValue(ctx, planningKey{}, planning{until: t, answer: true})
}

// Worth returns a context under which the deadline of a request is worth flops of truncated legs, beside planning.
func Worth(ctx context.Context, flops float64) context.Context {
	p, _ := ctx.Value(planningKey{}).(planning)
	p.flops = flops
	return context.WithValue(ctx, planningKey{}, p)
}

// InTime reports whether an exact plan can be contracted by the deadline, if there is one: its parts one beside the other, each by a
// thread at its best (policy.FastExact). worth is the flops of the longest one that can.
func InTime(ctx context.Context, p *btn.Plan) (worth float64, ok bool) {
	at, _ := ctx.Value(planningKey{}).(planning)
	e := &p.Estimates[0]
	worth = policy.FastExact * at.flops
	return worth, at.flops <= 0 || e.Cost.Flops <= worth*float64(len(e.Parts))
}

// PriceUntil is Until for a caller who asks for a plan and not for an answer: the plan does not begin with an estimate that
// is sure to be there in time.
func PriceUntil(ctx context.Context, t time.Time) context.Context {
	return context.WithValue(ctx, planningKey{}, planning{until: t})
}

// Earlier returns a context under which a share of the time that is left for planning is planned.
func Earlier(ctx context.Context, share float64) context.Context {
	p, ok := ctx.Value(planningKey{}).(planning)
	if !ok {
		return ctx
	}
	p.until = time.Now().Add(time.Duration(share * float64(time.Until(p.until))))
	return context.WithValue(ctx, planningKey{}, p)
}

// AtLeast returns a context under which planning takes d from now on, or as long as it may take under ctx where that is longer.
func AtLeast(ctx context.Context, d time.Duration) context.Context {
	p, ok := ctx.Value(planningKey{}).(planning)
	if until := time.Now().Add(d); ok && p.until.Before(until) {
		p.until = until
		return context.WithValue(ctx, planningKey{}, p)
	}
	return ctx
}

// Planning returns a context that ends after a share of the time that is left for planning, with ctx at the latest.
func Planning(ctx context.Context, share float64) (context.Context, context.CancelFunc) {
	p, ok := ctx.Value(planningKey{}).(planning)
	if !ok {
		until, cancel := context.WithCancel(ctx)
		return pace.Still(until), cancel
	}
	left := time.Until(p.until)
	until, cancel := context.WithTimeout(ctx, time.Duration(share*float64(left)))
	return pace.Still(until), cancel
}

// ErrNoTime is the end of the time for a part of the planning that has something to fall back on.
var ErrNoTime = errors.New("plan: no time is left for planning")

// Timed reports whether queries are planned against a clock: the request has a deadline.
func Timed(ctx context.Context) bool {
	p, _ := ctx.Value(planningKey{}).(planning)
	return p.answer
}

// Over reports whether a request has a deadline and the time for its planning has passed.
func Over(ctx context.Context) bool {
	p, _ := ctx.Value(planningKey{}).(planning)
	return p.answer && !time.Now().Before(p.until)
}

// OutOfTime reports whether a search ended because its share of the time, or that of a part of it, was over, and not because nobody
// waits for it any more.
func OutOfTime(ctx context.Context, err error) bool { return ctx.Err() == nil && Late(err) }

// Late reports whether a part of the planning ended with its time. The results from before it are taken then, and not remembered.
func Late(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// recurringKey is the key of Recurring in a context.
type recurringKey struct{}

// Recurring returns a context under which a network is taken for one that was asked about before, as that of a registered model:
// plans that serve later queries as well are made at the first.
func Recurring(ctx context.Context) context.Context {
	return context.WithValue(ctx, recurringKey{}, true)
}

// Recurs reports whether ctx is one of Recurring.
func Recurs(ctx context.Context) bool {
	is, _ := ctx.Value(recurringKey{}).(bool)
	return is
}

// Within runs work, a step of the planning that has an alternative, under a share of the time that is left for planning. If that time ends
// first, the error is fault.OverBudget and contains the name of the step.
func Within(ctx context.Context, share float64, name string, work func(context.Context) error) error {
	planning, cancel := Planning(ctx, share)
	defer cancel()
	return InBudget(ctx, name, work(planning))
}

// InBudget returns the error of a part of the planning, as fault.OverBudget where it is the end of some clock of that part: the job goes
// on.
func InBudget(ctx context.Context, name string, err error) error {
	if OutOfTime(ctx, err) {
		return fault.New(fault.OverBudget, "plan: %s: not done in the time that the deadline leaves", name)
	}
	return err
}

// RememberWhole is Remember for plans that the clock may cut short: one that is not whole serves this job alone,
// requests that have more time do not find it.
func (j *Job) RememberWhole(
	ctx context.Context, settings string, shape contractionorder.Hypergraph,
	compute func(context.Context) (plan *btn.Plan, whole bool, err error),
) (*btn.Plan, string, error) {
	for {
		var short *btn.Plan
		plan, hit, err := j.Remember(ctx, settings, shape, func(computing context.Context) (*btn.Plan, error) {
			p, whole, err := compute(computing)
			if err == nil && !whole {
				short, err = p, ErrNoTime
			}
			return p, err
		})
		if short == nil && errors.Is(err, ErrNoTime) && ctx.Err() == nil {
			continue // another job's planning ended, whose result this one waited for
		}
		if !errors.Is(err, ErrNoTime) || ctx.Err() != nil {
			return plan, hit, err
		}
		plans := j.plans()
		plans.missed = true
		plans.short++
		return short, j.CacheState(), nil
	}
}
