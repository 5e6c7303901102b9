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

// planningKey is the key of a planningClock in a context.
type planningKey struct{}

// planningClock states how long plans may be searched for. It is a value of a context. Without one, the time is not limited.
type planningClock struct {
	end           time.Time // of the search for plans
	hasDeadline   bool      // the answer has a deadline (WithAnswerDeadline); false if only the plan has one (WithPlanningEnd)
	deadlineFlops float64   // the flops of truncated legs that are possible until the deadline; 0: not known
}

// WithAnswerDeadline returns a context under which the search for plans ends at t, for an answer with a deadline. A search that is ended
// takes the best plan so far, or that of a greedy search. A remembered plan is used whatever the time.
func WithAnswerDeadline(ctx context.Context, t time.Time) context.Context {
	return context.WithValue(ctx, planningKey{}, planningClock{end: t, hasDeadline: true})
}

// WithDeadlineFlops returns a context that states how many flops of truncated legs are possible until the deadline of a request.
// FitsDeadline reads it.
func WithDeadlineFlops(ctx context.Context, flops float64) context.Context {
	clock, _ := ctx.Value(planningKey{}).(planningClock)
	clock.deadlineFlops = flops
	return context.WithValue(ctx, planningKey{}, clock)
}

// FitsDeadline reports whether the first estimate of p, which is exact, can be contracted by the deadline of the request. Its parts are
// contracted in parallel, each by a thread at its best rate (policy.FastExact). limit is the largest number of flops of one part for
// which ok is true. If the deadline is not known (WithDeadlineFlops), ok is true.
func FitsDeadline(ctx context.Context, p *btn.Plan) (limit float64, ok bool) {
	clock, _ := ctx.Value(planningKey{}).(planningClock)
	e := &p.Estimates[0]
	limit = policy.FastExact * clock.deadlineFlops
	return limit, clock.deadlineFlops <= 0 || e.Cost.Flops <= limit*float64(len(e.Parts))
}

// WithPlanningEnd returns a context under which the search for plans ends at t, for a caller who asks for a plan and not for an answer. In
// contrast to a plan under WithAnswerDeadline, the plan does not begin with an estimate that is sure to be there in time.
func WithPlanningEnd(ctx context.Context, t time.Time) context.Context {
	return context.WithValue(ctx, planningKey{}, planningClock{end: t})
}

// WithTimeShare returns a context under which the search for plans may take only a share, between 0 and 1, of the time that remains for
// it. It returns ctx if that time is not limited.
func WithTimeShare(ctx context.Context, share float64) context.Context {
	clock, ok := ctx.Value(planningKey{}).(planningClock)
	if !ok {
		return ctx
	}
	clock.end = time.Now().Add(time.Duration(share * float64(time.Until(clock.end))))
	return context.WithValue(ctx, planningKey{}, clock)
}

// WithMinimumTime returns a context under which the search for plans may take at least d from now on. It returns ctx if the search may
// take as long anyway.
func WithMinimumTime(ctx context.Context, d time.Duration) context.Context {
	clock, ok := ctx.Value(planningKey{}).(planningClock)
	if end := time.Now().Add(d); ok && clock.end.Before(end) {
		clock.end = end
		return context.WithValue(ctx, planningKey{}, clock)
	}
	return ctx
}

// PlanningContext returns a context that is done after a share, between 0 and 1, of the time that remains for planning, or with ctx. If
// that time is not limited, it is done with ctx. A computation in it gives way to more urgent ones if one in ctx does (KeepGiveWay).
func PlanningContext(ctx context.Context, share float64) (context.Context, context.CancelFunc) {
	clock, ok := ctx.Value(planningKey{}).(planningClock)
	if !ok {
		planning, cancel := context.WithCancel(ctx)
		return pace.KeepGiveWay(planning), cancel
	}
	remaining := time.Until(clock.end)
	planning, cancel := context.WithTimeout(ctx, time.Duration(share*float64(remaining)))
	return pace.KeepGiveWay(planning), cancel
}

// ErrNoTime is the error of a step of the planning whose time ended, if another result can take the place of its own.
var ErrNoTime = errors.New("plan: no time is left for planning")

// HasDeadline reports whether the answer to the request has a deadline (WithAnswerDeadline).
func HasDeadline(ctx context.Context) bool {
	clock, _ := ctx.Value(planningKey{}).(planningClock)
	return clock.hasDeadline
}

// IsPlanningOver reports whether the request has a deadline and the time for its planning has passed.
func IsPlanningOver(ctx context.Context) bool {
	clock, _ := ctx.Value(planningKey{}).(planningClock)
	return clock.hasDeadline && !time.Now().Before(clock.end)
}

// IsOutOfTime reports whether err is that the time of a step of the planning ended, and not the time of the caller, whose context is ctx.
func IsOutOfTime(ctx context.Context, err error) bool { return ctx.Err() == nil && IsLate(err) }

// IsLate reports whether err is that the time of a step of the planning ended. The caller then takes results from before that step, and
// does not remember them.
func IsLate(err error) bool { return errors.Is(err, context.DeadlineExceeded) }

// recurringKey is the key in a context for whether the network recurs (WithRecurringNetwork).
type recurringKey struct{}

// WithRecurringNetwork returns a context under which a network counts as one that is asked about repeatedly, as that of a registered
// model. Plans that serve later queries as well are then made at the first query.
func WithRecurringNetwork(ctx context.Context) context.Context {
	return context.WithValue(ctx, recurringKey{}, true)
}

// IsRecurring reports whether the network counts as one that is asked about repeatedly (WithRecurringNetwork).
func IsRecurring(ctx context.Context) bool {
	isRecurring, _ := ctx.Value(recurringKey{}).(bool)
	return isRecurring
}

// RunInTimeShare runs a step of the planning with a share, between 0 and 1, of the time that is left for planning. name is that of the
// step. It returns the error of the step. If the time of the step ended, the error is fault.OverBudget with the name.
func RunInTimeShare(ctx context.Context, share float64, name string, work func(context.Context) error) error {
	planning, cancel := PlanningContext(ctx, share)
	defer cancel()
	return NameLateStep(ctx, name, work(planning))
}

// NameLateStep returns err, the error of a step of the planning with that name. If err is that the time of the step ended, and the job goes
// on, it returns fault.OverBudget with the name of the step instead.
func NameLateStep(ctx context.Context, name string, err error) error {
	if IsOutOfTime(ctx, err) {
		return fault.New(fault.OverBudget, "plan: %s: not done in the time that the deadline leaves", name)
	}
	return err
}

// RememberComplete returns the plan for some settings and a shape as Remember does, for plans that the clock may cut short. compute
// returns isComplete false for a plan that was cut short. This job then uses that plan, but the memo does not remember it, so that
// requests with more time do not find it.
func (j *Job) RememberComplete(
	ctx context.Context, settings string, shape contractionorder.Hypergraph,
	compute func(context.Context) (plan *btn.Plan, isComplete bool, err error),
) (plan *btn.Plan, cacheState string, err error) {
	for {
		var shortPlan *btn.Plan // the plan that compute has cut short; nil if it has not
		plan, cacheState, err := j.Remember(ctx, settings, shape, func(computing context.Context) (*btn.Plan, error) {
			plan, isComplete, err := compute(computing)
			if err == nil && !isComplete {
				shortPlan, err = plan, ErrNoTime
			}
			return plan, err
		})
		if !errors.Is(err, ErrNoTime) || ctx.Err() != nil {
			return plan, cacheState, err
		}
		if shortPlan == nil { // this job waited for the computation of another one, whose time ended: try again
			continue
		}
		shared := j.sharedState() // Remember returned an error, and so has noted no miss
		shared.hasMissed = true
		shared.cutShort++
		return shortPlan, j.CacheState(), nil
	}
}
