package contractionorder

// The cheapest of several greedy orders.

import (
	"context"

	"github.com/basetensor/basetensor/pkg/query"
)

const (
	cheapFlops     = 1e7     // orders that cost fewer flops are not improved
	maxSeededRuns  = 64      // limit of the runs with seeded tie-breaks
	maxSeededMoves = 1 << 27 // limit of the elementary operations of all seeded runs together
)

// Best returns the order with the fewest flops of several greedy ones, and its cost by EvaluateOrder. It tries min-fill. While the best
// order so far costs more than 10^7 flops, it also tries min-weight and up to 64 min-fill runs that break ties by a seed. The seeded runs
// take at most 2^27 moves (elementary operations), and at most a 32nd of the flops that they try to save. Since work is counted in moves
// and not in seconds, the same hypergraph gives the same order everywhere. The only error is that of the context.
func Best(ctx context.Context, h Hypergraph) ([]int, query.Cost, error) {
	s, err := newGreedySearch(ctx, h)
	if err != nil {
		return nil, query.Cost{}, err
	}
	err = s.tryFurtherOrders(maxSeededMoves)
	return s.best, s.cost, err
}

// BestFrom returns the order with the fewest flops of several greedy ones, and its cost, as Best does. It begins with the given order, its
// cost and the number of moves that MinFillCost has returned, not stopped by a limit.
func BestFrom(ctx context.Context, h Hypergraph, order []int, cost query.Cost, moves int64) ([]int, query.Cost, error) {
	s := &greedySearch{ctx: ctx, hypergraph: h, best: order, cost: cost, firstMoves: moves, movesSpent: moves}
	err := s.tryFurtherOrders(maxSeededMoves)
	return s.best, s.cost, err
}

// BestWithin returns the order with the fewest flops of several greedy ones, as Best does, and the number of moves (elementary operations)
// that all orders took. The runs with seeded tie-breaks take at most maxMoves moves, some 10^8 a second. No limit shortens the first two
// orders, min-fill and min-weight.
func BestWithin(ctx context.Context, h Hypergraph, maxMoves int64) (best []int, moves int64, err error) {
	s, err := newGreedySearch(ctx, h)
	if err == nil {
		err = s.tryFurtherOrders(maxMoves)
	}
	return s.best, s.movesSpent, err
}

// greedySearch is a search among greedy orders of h.
type greedySearch struct {
	ctx        context.Context
	hypergraph Hypergraph
	best       []int      // the cheapest order so far; nil after an error
	cost       query.Cost // of best
	firstMoves int64      // moves of the first order
	movesSpent int64      // of all orders so far
}

// newGreedySearch returns a search whose best order is the min-fill order.
func newGreedySearch(ctx context.Context, h Hypergraph) (s *greedySearch, err error) {
	s = &greedySearch{ctx: ctx, hypergraph: h}
	if s.best, s.firstMoves, err = greedyOrder(ctx, h, byFill, 0); err == nil {
		s.cost, err = EvaluateOrder(ctx, h, s.best)
	}
	s.movesSpent = s.firstMoves
	return s, err
}

// tryFurtherOrders compares the best order so far with the min-weight order and with min-fill orders whose ties are broken by a seed. It
// stops as soon as the best order costs fewer than cheapFlops. The seeded runs take at most maxMoves moves (elementary operations)
// together. They also end when they took more moves than a 32nd of the flops of the best order. After an error there is no best order.
func (s *greedySearch) tryFurtherOrders(maxMoves int64) error {
	if s.cost.Flops < cheapFlops {
		return nil
	}
	if err := s.tryRule(byWeight, 0); err != nil { // seed 0: byWeight does not use it
		return err
	}

	movesBefore := s.movesSpent
	movesPerRun := s.firstMoves + 1 // an estimate: as many as the first run took
	for seed := uint64(1); seed <= maxSeededRuns; seed++ {
		spent := s.movesSpent - movesBefore
		isOverLimit := spent+movesPerRun > min(maxMoves, maxSeededMoves)
		isNotWorthwhile := float64(spent) > s.cost.Flops/32 // chosen: the runs may cost a small share of what they try to save
		if isOverLimit || isNotWorthwhile || s.cost.Flops < cheapFlops {
			break
		}
		rule := byFillWeight
		if seed%2 == 0 {
			rule = byFillRandom
		}
		if err := s.tryRule(rule, seed); err != nil {
			return err
		}
	}
	return nil
}

// tryRule makes the order of a greedy rule the best one if it costs fewer flops than the best one so far. It computes the cost only until
// it exceeds that. After an error there is no best order.
func (s *greedySearch) tryRule(rule rule, seed uint64) error {
	order, moves, err := greedyOrder(s.ctx, s.hypergraph, rule, seed)
	s.movesSpent += moves
	if err != nil {
		s.best = nil
		return err
	}

	cost, isComplete, err := evaluateOrder(s.ctx, s.hypergraph, order, s.cost.Flops)
	if isComplete && cost.Flops < s.cost.Flops {
		s.best, s.cost = order, cost
	}
	if err != nil {
		s.best = nil
	}
	return err
}
