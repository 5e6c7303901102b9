package estimates

// The price of an exact answer, for a request that excludes one.

import (
	"context"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// warnIfExactIsCheaper returns a warning if an exact contraction along the min-fill order fits the memory and takes fewer flops than the
// estimates of a plan. It returns "" if the contraction does not, if the estimates take almost no time (policy.ChunkFlops), or if the price
// of the contraction is not known: the search of the order takes too many moves, or the order has a table of more than policy.AutoFlops
// entries.
func warnIfExactIsCheaper(ctx context.Context, j *proposal.Job, ask proposal.Ask, plan *btn.Plan) (warning string, err error) {
	simplified, err := truncated.Simplify(ctx, j.Problem(), ask.Marginals)
	if err != nil {
		return "", err
	}
	moves := int64(min(policy.MostFill, policy.FillShare*j.Settings.Budget))
	h := simplified.Hypergraph()
	order, isWithin, err := contractionorder.MinFillWithin(ctx, h, math.Log2(policy.AutoFlops), moves)
	if err != nil || !isWithin {
		return "", err
	}
	cost, err := contractionorder.EvaluateOrderWithin(ctx, h, order, policy.AutoFlops)
	if err != nil || cost.Bytes > float64(j.Settings.Memory) {
		return "", err
	}

	plannedFlops := 0.0
	for k := range plan.Estimates {
		plannedFlops += estimateFlops(&plan.Estimates[k])
	}
	if plannedFlops < policy.ChunkFlops {
		return "", nil // almost no time
	}
	exactFlops := cost.Flops
	if ask.Marginals {
		exactFlops *= policy.MarginalRate
	}
	if exactFlops >= plannedFlops {
		return "", nil
	}
	return fmt.Sprintf("the exact way takes %.2g flops at most, what is planned without it %.2g: an exact answer is cheaper",
		exactFlops, plannedFlops), nil
}
