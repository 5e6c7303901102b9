package learn

// Planning under a deadline: the search for plans leaves time for the answer.

import (
	"context"
	"errors"
	"time"
)

type planningKey struct{}

// PlanUntil returns a context under which Assign plans until t at the latest: searches are counted in moves, and where a machine is
// too busy for those, what a greedy search gives is taken. A plan that is remembered is used whatever the time.
func PlanUntil(ctx context.Context, t time.Time) context.Context {
	return context.WithValue(ctx, planningKey{}, t)
}

// planningContext ends after a share of the time that is left for planning, with ctx at the latest.
func planningContext(ctx context.Context, share float64) (context.Context, context.CancelFunc) {
	t, ok := ctx.Value(planningKey{}).(time.Time)
	if !ok {
		return context.WithCancel(ctx)
	}
	left := time.Until(t)
	return context.WithTimeout(ctx, time.Duration(share*float64(left)))
}

// outOfTime reports whether a search ended because its share of the time was over, and not because nobody waits for it any more.
func outOfTime(ctx, planning context.Context, err error) bool {
	return ctx.Err() == nil && planning.Err() != nil && errors.Is(err, context.DeadlineExceeded)
}
