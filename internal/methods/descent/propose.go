package descent

// Proposals: assignments of values, by parts beside those of an exact Z.

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
)

// IsRelaxed reports whether a plan, whose first part is a Descent, finds a marginal MAP assignment along a relaxed path: its total only
// bounds the weights of assignments.
func IsRelaxed(plan *btn.Plan) bool {
	part, ok := plan.Estimates[0].Parts[0].(*Descent)
	return ok && part.Along.Relaxed
}

// Propose returns the plan that finds the assignments that ask stands for, and the state of the cache for it. variables are those of a
// marginal MAP assignment. The slices of the path are divided among the parts of the plan. Paths are remembered by the shape of the
// tables.
func Propose(ctx context.Context, j *proposal.Job, ask btn.Ask, variables []int) (*btn.Plan, string, error) {
	p, err := PreparedOf(ctx, j.Problem(), ask, variables)
	if err != nil {
		return nil, "", err
	}
	settings := fmt.Sprintf("descent %s seed=%d moves=%d flops=%g %s", ask, j.Settings.Seed, proposal.MoveLimit(j.Settings),
		proposal.ExactFlopLimit(j.Settings), p.Shape())
	return j.Remember(ctx, settings, p.Hypergraph(), func(computing context.Context) (*btn.Plan, error) {
		path, cost, err := p.Plan(computing, PlanOptions{
			Memory: j.Settings.Memory,
			Seed:   j.Settings.Seed,
			Moves:  proposal.MoveLimit(j.Settings),
			Flops:  proposal.ExactFlopLimit(j.Settings),
		})
		if err != nil {
			return nil, err
		}

		// Parts of about SliceTaskFlops each, which divide the path.Count slices among them.
		partCount := int64(max(1, min(cost.Flops/policy.SliceTaskFlops, float64(path.Count), policy.MostChunks)))
		parts := make([]btn.Part, partCount)
		for k := range partCount {
			parts[k] = &Descent{
				Along: path,
				From:  proposal.ChunkStart(path.Count, partCount, k),
				To:    proposal.ChunkStart(path.Count, partCount, k+1),
			}
		}
		return proposal.ExactPlan(cost, parts...), nil
	})
}
