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

// messageShare is the share of a budget, and of the time for planning, that belief propagation may take.
// Measured: a quarter of it makes 2 of 15 models better and 1 worse, decision 20.
const messageShare = 1.0 / 2

// propagateAll runs belief propagation on the expression of a query: from all starts of bp.Propagate, and from starts near maxima of the
// product of all tables (findPhases). It returns the states in which the runs end, the phases.
func propagateAll(ctx context.Context, j *proposal.Job, e *sumproduct.Expression) (*phaseSet, error) {
	// If the context enough ends, a share of the time for planning, runs end with the messages that they have.
	enough, cancel := proposal.PlanningContext(ctx, messageShare)
	defer cancel()
	states, err := bp.Propagate(ctx, e, bp.PropagateOptions{
		Seed: j.Settings.Seed, Updates: updatesFor(e, j.Settings), Enough: enough,
	})
	if err != nil {
		return nil, err
	}
	return findPhases(ctx, j, e, states)
}

// leastUpdates is the number of updates that a run may take under any budget, about 100 ms.
// Chosen; the time follows from UpdateFlops.
const leastUpdates = 400_000

// updatesFor returns how many updates of messages the budget allows to all starts together. It is 0, which stands for the limit of package
// bp, if the budget allows more than that. It is at least two for each message, so that there is a value.
func updatesFor(e *sumproduct.Expression, s query.Settings) int64 {
	incidences := countIncidences(e) // each has a message
	updates := messageShare * s.WithDefaults().Budget / policy.UpdateFlops
	if updates >= policy.MessageUpdates*float64(incidences) {
		return 0
	}
	return max(int64(updates), 2*int64(incidences), leastUpdates)
}

// countIncidences returns the number of pairs of a table and an index of it.
func countIncidences(e *sumproduct.Expression) (n int) {
	for _, t := range e.Tables {
		n += len(t.Scope)
	}
	return n
}
