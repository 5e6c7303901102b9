package contractionorder

// The cheapest of several greedy orders.

import (
	"context"
)

const (
	worthMore  = 1e7     // flops below which the first order is taken as it is
	maxRetries = 64      // seeded runs at most
	retryMoves = 1 << 27 // elementary operations of all seeded runs together at most
)

// Best returns the cheapest by flops of: min-fill, min-weight and, while the cheapest so far costs
// more than 10^7 flops, up to 64 min-fill runs with seeded tie-breaks. The work spent on them is
// counted in moves, bounded by a 32nd of the flops they try to save and by 2^27, so that the same
// hypergraph gives the same order everywhere. The only error is the context's.
func Best(ctx context.Context, h Hypergraph) ([]int, error) {
	best, _, err := BestWithin(ctx, h, retryMoves)
	return best, err
}

// BestWithin is Best whose seeded runs take at most most moves, and returns the number of moves, those for the first two orders
// included, which no limit shortens: some 10^8 a second.
func BestWithin(ctx context.Context, h Hypergraph, most int64) (best []int, moves int64, err error) {
	best, first, err := greedyOrder(ctx, h, byFill, 0)
	if err != nil {
		return nil, first, err
	}
	plan, err := EvaluateOrder(ctx, h, best)
	if err != nil || plan.Flops < worthMore {
		return best, first, err
	}

	// try takes an order that is cheaper than the best so far.
	flops := plan.Flops
	try := func(order []int) error {
		plan, ok, err := evaluateOrder(ctx, h, order, flops)
		if ok && plan.Flops < flops {
			best, flops = order, plan.Flops
		}
		return err
	}

	light, second, err := greedyOrder(ctx, h, byWeight, 0)
	if err != nil {
		return nil, first + second, err
	}
	if err := try(light); err != nil {
		return nil, first + second, err
	}

	perRun := first + 1
	spent := int64(0)

	// Seeded runs, while they are worth their moves.
	for seed := uint64(1); seed <= maxRetries; seed++ {
		if spent+perRun > min(most, retryMoves) || float64(spent) > flops/32 || flops < worthMore {
			break
		}
		r := byFillWeight
		if seed%2 == 0 {
			r = byFillRandom
		}

		order, moves, err := greedyOrder(ctx, h, r, seed)
		if err != nil {
			return nil, first + second + spent, err
		}
		spent += moves
		if err := try(order); err != nil {
			return nil, first + second + spent, err
		}
	}
	return best, first + second + spent, nil
}
