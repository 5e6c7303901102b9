package plan

// Planning under a deadline: the search for plans leaves time for the answer.

import (
	"context"
	"errors"
	"time"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/pace"
	"github.com/basetensor/basetensor/pkg/fault"
)

// planningKey is the key of a planning in a context.
type planningKey struct{}

// PlanUntil returns a context under which Assign plans until t at the latest: searches are counted in moves,
// and where a machine is too busy for those, what a greedy search gives is taken. A plan that is remembered
// is used whatever the time.
func PlanUntil(ctx context.Context, t time.Time) context.Context {
	return context.WithValue(ctx, planningKey{}, planning{until: t, answer: true})
}

// PriceUntil is PlanUntil for who asks for a plan and not for an answer: the plan does not begin with what is
// sure to be there in time.
func PriceUntil(ctx context.Context, t time.Time) context.Context {
	return context.WithValue(ctx, planningKey{}, planning{until: t})
}

// earlier returns a context under which a share of the time that is left for planning is planned.
func earlier(ctx context.Context, share float64) context.Context {
	p, ok := ctx.Value(planningKey{}).(planning)
	if !ok {
		return ctx
	}
	p.until = time.Now().Add(time.Duration(share * float64(time.Until(p.until))))
	return context.WithValue(ctx, planningKey{}, p)
}

// planning is how long plans may be searched for.
type planning struct {
	until  time.Time
	answer bool // the request has a deadline
}

// planningContext ends after a share of the time that is left for planning, with ctx at the latest.
func planningContext(ctx context.Context, share float64) (context.Context, context.CancelFunc) {
	p, ok := ctx.Value(planningKey{}).(planning)
	if !ok {
		until, cancel := context.WithCancel(ctx)
		return pace.Still(until), cancel
	}
	left := time.Until(p.until)
	until, cancel := context.WithTimeout(ctx, time.Duration(share*float64(left)))
	return pace.Still(until), cancel
}

// errNoTime is the end of the time for a part of the planning that has something to fall back on.
var errNoTime = errors.New("plan: no time is left for planning")

// timed reports whether Assign plans against a clock: the request has a deadline.
func timed(ctx context.Context) bool {
	p, _ := ctx.Value(planningKey{}).(planning)
	return p.answer
}

// over reports whether a request has a deadline and the time for its planning has passed.
func over(ctx context.Context) bool {
	p, _ := ctx.Value(planningKey{}).(planning)
	return p.answer && !time.Now().Before(p.until)
}

// within runs a part of the assigner's work that there is an alternative to for a share of the time for
// planning. Its end is fault.OverBudget; what names the work.
func (a *assigner) within(share float64, what string, work func() error) error {
	whole := a.ctx
	planning, cancel := planningContext(whole, share)
	defer cancel()
	a.ctx = planning
	err := work()
	a.ctx = whole
	if outOfTime(whole, planning, err) {
		return fault.New(fault.OverBudget, "plan: %s: not done in the time that the deadline leaves", what)
	}
	return err
}

// rememberWhole is remember for what the clock may cut short: what is not whole serves this job alone,
// requests that have more time do not find it.
func (a *assigner) rememberWhole(
	settings string, shape contractionorder.Hypergraph,
	compute func(context.Context) (plan *btn.Plan, whole bool, err error),
) (*btn.Plan, string, error) {
	for {
		var short *btn.Plan
		plan, hit, err := a.remember(settings, shape, func(ctx context.Context) (*btn.Plan, error) {
			p, whole, err := compute(ctx)
			if err == nil && !whole {
				short, err = p, errNoTime
			}
			return p, err
		})
		if short == nil && errors.Is(err, errNoTime) && a.ctx.Err() == nil {
			continue // another job's planning ended, whose result this one waited for
		}
		if !errors.Is(err, errNoTime) || a.ctx.Err() != nil {
			return plan, hit, err
		}
		a.anyMiss, a.short = true, true
		return short, a.cacheState(), nil
	}
}

// outOfTime reports whether a search ended because its share of the time was over, and not because nobody
// waits for it any more.
func outOfTime(ctx, planning context.Context, err error) bool {
	return ctx.Err() == nil && planning.Err() != nil && errors.Is(err, context.DeadlineExceeded)
}

// late reports whether a part of the planning ended with its time. What was found before it is taken then; nobody remembers that.
func late(err error) bool { return errors.Is(err, context.DeadlineExceeded) }
