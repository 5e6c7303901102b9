package contractionorder

// Greedy elimination orders: min-fill and min-weight, with fixed or seeded tie-breaks.

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/pkg/query"
)

// maxMoves bounds the elementary operations of one greedy run. A graph that needs more has
// tables far beyond any memory; the rest of its order follows the weights at that point.
const maxMoves = 1 << 28

// rule is the criterion that a greedy order minimises at every step.
type rule int

const (
	byFill       rule = iota // fill, then weight, then number
	byWeight                 // weight, then number
	byFillRandom             // fill, then a seeded hash
	byFillWeight             // fill, then weight, then a seeded hash
)

// MinFill returns the elimination order of h's indices of dimension above 1 that always takes the
// index whose elimination adds the fewest edges; ties go to the smallest table, then to the
// smallest number. Deterministic.
// Cost: fill counts are kept up to date, O(degree) for every edge of the triangulated graph;
// at most 2^28 operations, after which the rest follows by weight. The only error is the context's.
func MinFill(ctx context.Context, h Hypergraph) ([]int, error) {
	order, _, err := greedyOrder(ctx, h, byFill, 0)
	return order, err
}

// MinFillWithin is MinFill that gives the order up where it has an index whose table has more than
// 2^log2Table entries, or after moves operations: within is false then, and the rest of the order
// follows the weights at that point. Cost: at most moves operations, some 10^8 a second.
func MinFillWithin(
	ctx context.Context, h Hypergraph, log2Table float64, moves int64,
) (order []int, within bool, err error) {
	order, within, _, err = minFill(ctx, h, nil, log2Table, moves)
	return order, within, err
}

// MinFillLast is MinFillWithin with some indices after all others; nil: none.
func MinFillLast(
	ctx context.Context, h Hypergraph, last []bool, log2Table float64, moves int64,
) (order []int, within bool, err error) {
	order, within, _, err = minFill(ctx, h, last, log2Table, moves)
	return order, within, err
}

// minFill is MinFillLast, with the number of operations that were taken.
func minFill(
	ctx context.Context, h Hypergraph, last []bool, log2Table float64, moves int64,
) (order []int, within bool, taken int64, err error) {
	g := newFillGraph(h, true, pace.New(ctx))
	g.last = last
	g.most, g.limit = int64(min(log2Table*logUnit, math.MaxInt64/2)), moves
	order, taken, err = g.greedy(h, byFill, 0)
	return order, g.most > 0 && g.moves < moves, taken, err
}

// MinFillCost returns the min-fill order, its cost and the number of operations; beyond so many flops, or moves operations, some order,
// and no less than the flops.
func MinFillCost(ctx context.Context, h Hypergraph, flops float64, moves int64) (order []int, cost query.Cost, taken int64, err error) {
	log2Table := math.Log2(flops)
	order, within, taken, err := minFill(ctx, h, nil, log2Table, moves)
	if err != nil {
		return nil, query.Cost{}, taken, err
	}
	if !within {
		return order, query.Cost{Width: int(log2Table), Log2Table: log2Table, Flops: flops, Bytes: 8 * flops}, taken, nil
	}
	cost, err = EvaluateOrderWithin(ctx, h, order, flops)
	return order, cost, taken, err
}

// MinWeight is MinFill with the size of the table touched (the product of the dimensions of the
// index and its neighbours) in place of the fill; ties go to the smallest number. It is faster, and
// better on some mixed domains.
func MinWeight(ctx context.Context, h Hypergraph) ([]int, error) {
	order, _, err := greedyOrder(ctx, h, byWeight, 0)
	return order, err
}

// greedyOrder eliminates the primal graph of h by a rule, and returns the number of moves.
func greedyOrder(
	ctx context.Context, h Hypergraph, r rule, seed uint64,
) (order []int, moves int64, err error) {
	return newFillGraph(h, r != byWeight, pace.New(ctx)).greedy(h, r, seed)
}

// greedy eliminates the whole graph. It gives up at a table above g.most, which becomes 0.
func (g *fillGraph) greedy(
	h Hypergraph, r rule, seed uint64,
) (order []int, moves int64, err error) {
	var q queue
	for v, d := range h.Dims {
		if d > 1 {
			q = append(q, g.key(int32(v), r, seed))
		}
	}
	q.init()

	order = make([]int, 0, len(q))
	done := make([]bool, len(h.Dims))
	for len(q) > 0 && g.moves < g.limit && !g.pace.Over(16) {
		k := q.pop()
		if done[k.v] || k != g.key(k.v, r, seed) {
			continue
		}

		if g.most > 0 && g.weight[k.v] > g.most {
			g.most = 0
			break
		}

		done[k.v] = true
		order = append(order, int(k.v))
		g.eliminate(k.v)
		for _, a := range g.touch {
			if !done[a] {
				q.push(g.key(a, r, seed))
			}
		}
	}

	if err := g.pace.Err(); err != nil {
		return nil, g.moves, err
	}
	return append(order, g.rest(h, done)...), g.moves, nil
}

// late is added to the fill of v: more than any fill where v comes after others.
func (g *fillGraph) late(v int32) int64 {
	if g.last != nil && g.last[v] {
		return 1 << 62
	}
	return 0
}

// rest lists the remaining vertices by weight, then number.
func (g *fillGraph) rest(h Hypergraph, done []bool) []int {
	var left []int
	for v, d := range h.Dims {
		if d > 1 && !done[v] {
			left = append(left, v)
		}
	}
	slices.SortStableFunc(left, func(a, b int) int {
		return cmp.Or(cmp.Compare(g.late(int32(a)), g.late(int32(b))), cmp.Compare(g.weight[a], g.weight[b]))
	})
	return left
}

// key is v's priority in the queue: smaller keys are eliminated first.
func (g *fillGraph) key(v int32, r rule, seed uint64) key {
	switch r {
	case byWeight:
		return key{g.weight[v], 0, uint64(v), v}
	case byFillRandom:
		return key{g.fill[v], 0, mix(seed, uint64(v)), v}
	case byFillWeight:
		return key{g.fill[v], g.weight[v], mix(seed, uint64(v)), v}
	}
	return key{g.fill[v] + g.late(v), g.weight[v], uint64(v), v}
}

// mix hashes a vertex under a seed (the finaliser of splitmix64), a bijection for every seed.
func mix(seed, v uint64) uint64 {
	x := v + (seed+1)*0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
