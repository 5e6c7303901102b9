package regions

// The messages of belief propagation that regions are computed from.

import (
	"context"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/query"
)

// messageShare is the part of a budget that belief propagation may take, and of the time for planning.
// Measured: a quarter of it makes 2 of 15 models better and 1 worse, decision 20.
const messageShare = 1.0 / 2

// passed runs belief propagation under a query's evidence, from all starts and from near maxima.
func passed(ctx context.Context, j *proposal.Job, e *sumproduct.Expression) (*phased, error) {
	enough, cancel := proposal.PlanningContext(ctx, messageShare)
	defer cancel()
	states, err := bp.Propagate(ctx, e, bp.PropagateOptions{
		Seed: j.Settings.Seed, Updates: updatesFor(e, j.Settings), Enough: enough,
	})
	if err != nil {
		return nil, err
	}
	return further(ctx, j, e, states)
}

// leastUpdates are granted to a run under any budget: some 100 ms.
// Chosen; the time follows from UpdateFlops.
const leastUpdates = 400_000

// updatesFor bounds the updates of all starts together by the budget; 0 is package bp's own bound. A message
// is updated twice at least, so that there is something to answer with.
func updatesFor(e *sumproduct.Expression, s query.Settings) int64 {
	incidences := incidencesOf(e)
	most := messageShare * s.WithDefaults().Budget / policy.UpdateFlops
	if most >= policy.MessageUpdates*float64(incidences) {
		return 0
	}
	return max(int64(most), 2*int64(incidences), leastUpdates)
}

// incidencesOf is the number of pairs of a table and an index of it.
func incidencesOf(e *sumproduct.Expression) (n int) {
	for _, t := range e.Tables {
		n += len(t.Scope)
	}
	return n
}
