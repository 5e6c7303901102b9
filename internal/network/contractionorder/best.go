package contractionorder

// The cheapest of several greedy orders.

import (
	"context"

	"github.com/basetensor/basetensor/pkg/query"
)

const (
	worthMore  = 1e7     // flops below which the first order is taken as it is
	maxRetries = 64      // seeded runs at most
	retryMoves = 1 << 27 // elementary operations of all seeded runs together at most
)

// Best returns the cheapest by flops of: min-fill, min-weight and, while the cheapest so far costs
// more than 10^7 flops, up to 64 min-fill runs with seeded tie-breaks. The work spent on them is
// counted in moves, bounded by a 32nd of the flops they try to save and by 2^27, so that the same
// hypergraph gives the same order everywhere. The cost is that of EvaluateOrder. The only error is the context's.
func Best(ctx context.Context, h Hypergraph) ([]int, query.Cost, error) {
	s, err := newGreedySearch(ctx, h)
	if err != nil {
		return nil, query.Cost{}, err
	}
	err = s.improve(retryMoves)
	return s.best, s.cost, err
}

// BestFrom is Best where MinFillCost has returned an order, its cost and the number of moves, and was not at its bounds.
func BestFrom(ctx context.Context, h Hypergraph, order []int, cost query.Cost, moves int64) ([]int, query.Cost, error) {
	s := &greedySearch{ctx: ctx, h: h, best: order, cost: cost, first: moves, moves: moves}
	err := s.improve(retryMoves)
	return s.best, s.cost, err
}

// BestWithin is Best whose seeded runs take at most most moves, and returns the number of moves, those for the first two orders
// included, which no limit shortens: some 10^8 a second.
func BestWithin(ctx context.Context, h Hypergraph, most int64) (best []int, moves int64, err error) {
	s, err := newGreedySearch(ctx, h)
	if err == nil {
		err = s.improve(most)
	}
	return s.best, s.moves, err
}

// greedySearch is the cheapest of the greedy orders so far.
type greedySearch struct {
	ctx   context.Context
	h     Hypergraph
	best  []int
	cost  query.Cost
	first int64 // moves of the first order
	moves int64 // of all orders so far
}

// newGreedySearch begins with the min-fill order.
func newGreedySearch(ctx context.Context, h Hypergraph) (s *greedySearch, err error) {
	s = &greedySearch{ctx: ctx, h: h}
	if s.best, s.first, err = greedyOrder(ctx, h, byFill, 0); err == nil {
		s.cost, err = EvaluateOrder(ctx, h, s.best)
	}
	s.moves = s.first
	return s, err
}

// improve tries further orders, while they are worth their moves. After an error there is no order.
func (s *greedySearch) improve(most int64) error {
	if s.cost.Flops < worthMore {
		return nil
	}
	if err := s.try(byWeight, 0); err != nil {
		return err
	}
	begun, perRun := s.moves, s.first+1
	for seed := uint64(1); seed <= maxRetries; seed++ {
		spent := s.moves - begun
		if spent+perRun > min(most, retryMoves) || float64(spent) > s.cost.Flops/32 || s.cost.Flops < worthMore {
			break
		}
		r := byFillWeight
		if seed%2 == 0 {
			r = byFillRandom
		}
		if err := s.try(r, seed); err != nil {
			return err
		}
	}
	return nil
}

// try takes the order of a rule if it is cheaper than the best so far.
func (s *greedySearch) try(r rule, seed uint64) error {
	order, moves, err := greedyOrder(s.ctx, s.h, r, seed)
	s.moves += moves
	if err == nil {
		var cost query.Cost
		var within bool
		if cost, within, err = evaluateOrder(s.ctx, s.h, order, s.cost.Flops); within && cost.Flops < s.cost.Flops {
			s.best, s.cost = order, cost
		}
	}
	if err != nil {
		s.best = nil
	}
	return err
}
