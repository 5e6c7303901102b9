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

// cheaperExactly returns a warning if a contraction along a quick order fits the memory and takes less than the estimates of a plan. It
// returns "" if not, if finding out takes long, or if both take almost no time.
func cheaperExactly(ctx context.Context, j *proposal.Job, ask proposal.Ask, plan *btn.Plan) (warning string, err error) {
	simplified, err := truncated.Of(ctx, j.Problem(), ask.Marginals)
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
	planned := 0.0
	for k := range plan.Estimates {
		planned += estimateFlops(&plan.Estimates[k])
	}
	if planned < policy.ChunkFlops {
		return "", nil // nobody waits for either
	}
	exact := cost.Flops
	if ask.Marginals {
		exact *= policy.MarginalRate
	}
	if exact >= planned {
		return "", nil
	}
	return fmt.Sprintf("the exact way takes %.2g flops at most, what is planned without it %.2g: an exact answer is cheaper",
		exact, planned), nil
}
