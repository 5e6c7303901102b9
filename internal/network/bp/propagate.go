package bp

// Propagate: the starts of belief propagation, the same for the planner and the engines.

import (
	"context"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// PropagateOptions are the options of Propagate. The zero value works.
type PropagateOptions struct {
	Seed    uint64
	Starts  int             // 0: policy.PhaseStarts, enough to find competing fixed points
	Updates int64           // limit for all starts together; 0: each start has the limit of Options.Updates
	Enough  context.Context // see Options.Enough
}

// Propagate returns the distinct states of belief propagation from several seeded starts, the best first. The first start is uniform if
// Seed is 0. For expressions of more than policy.PhaseTables tables there is only one start, a uniform one. Errors and cost as of
// FixedPoints.
func Propagate(ctx context.Context, e *sumproduct.Expression, o PropagateOptions) ([]*State, error) {
	starts := policy.PhaseStarts
	if o.Starts > 0 {
		starts = o.Starts
	}
	if len(e.Tables) > policy.PhaseTables {
		starts = 1
		o.Seed = 0
	}
	if o.Updates > 0 {
		o.Updates = max(o.Updates/int64(starts), 1)
	}
	return FixedPoints(ctx, e, starts, Options{
		Seed:    o.Seed,
		Updates: o.Updates,
		Enough:  o.Enough,
	})
}
