package bp

// Propagate: the starts that planner and engines make, the same for both.

import (
	"context"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// PropagateOptions are the options of Propagate. The zero value works.
type PropagateOptions struct {
	Seed    uint64
	Starts  int             // 0: policy.PhaseStarts, which look for competing fixed points
	Updates int64           // of all starts together; 0: each has its own bound, see Options.Updates
	Enough  context.Context // see Options.Enough
}

// Propagate returns the distinct states of belief propagation from several seeded starts, the one to
// use first. The first start is uniform. Networks of more than policy.PhaseTables tables have that one alone. Errors and cost as of
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
