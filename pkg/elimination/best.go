package elimination

// The cheapest of several greedy orders.

const (
	worthMore  = 1e7     // flops below which the first order is taken as it is
	maxRetries = 64      // seeded runs at most
	retryMoves = 1 << 27 // elementary operations of all seeded runs together at most
)

// Best returns the cheapest by flops of: min-fill, min-weight and, while the cheapest so far costs more than 10^7
// flops, up to 64 min-fill runs with seeded tie-breaks. The work spent on them is counted in moves, bounded by a 32nd
// of the flops they try to save and by 2^27, so that the same hypergraph gives the same order everywhere.
func Best(h Hypergraph) []int {
	best, spent := greedy(h, byFill, 0)
	flops := Evaluate(h, best).Flops
	if flops < worthMore {
		return best
	}
	try := func(order []int) {
		if plan, ok := evaluate(h, order, flops); ok && plan.Flops < flops {
			best, flops = order, plan.Flops
		}
	}
	try(MinWeight(h))
	perRun := spent + 1
	spent = 0
	for seed := uint64(1); seed <= maxRetries; seed++ {
		if spent+perRun > retryMoves || float64(spent) > flops/32 || flops < worthMore {
			break
		}
		r := byFillWeight
		if seed%2 == 0 {
			r = byFillRandom
		}
		order, moves := greedy(h, r, seed)
		spent += moves
		try(order)
	}
	return best
}
