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

// maxMoves is the limit of the elementary operations of one greedy run. A graph that needs more has tables far beyond any memory. The
// remaining indices of its order follow by their weights at that point.
const maxMoves = 1 << 28

// rule is the criterion that a greedy order minimises at every step.
type rule int

const (
	byFill       rule = iota // fill, then weight, then number
	byWeight                 // weight, then number
	byFillRandom             // fill, then a seeded hash
	byFillWeight             // fill, then weight, then a seeded hash
)

// MinFill returns an elimination order of the indices of h with a dimension above 1. It always eliminates the index that adds the fewest
// edges to the graph in which the indices of a tensor are adjacent; of several the one with the smallest table, then the one with the
// smallest number. Cost: O(degree) for every edge of the triangulated graph, at most 2^28 operations; the indices that remain then follow
// by the sizes of their tables. The only error is that of the context.
func MinFill(ctx context.Context, h Hypergraph) ([]int, error) {
	order, _, err := greedyOrder(ctx, h, byFill, 0)
	return order, err
}

// MinFillWithin returns the order of MinFill, within limits: it stops at an index whose table has more than 2^log2Table entries, or after
// maxMoves operations, some 10^8 a second. Then isComplete is false, and the remaining indices follow by the sizes of their tables at that
// point.
func MinFillWithin(
	ctx context.Context, h Hypergraph, log2Table float64, maxMoves int64,
) (order []int, isComplete bool, err error) {
	order, isComplete, _, err = minFill(ctx, h, nil, log2Table, maxMoves)
	return order, isComplete, err
}

// MinFillLast returns an order as MinFillWithin does, but the indices for which isLast is true come after all others. isLast is by index,
// and may be nil.
func MinFillLast(
	ctx context.Context, h Hypergraph, isLast []bool, log2Table float64, maxMoves int64,
) (order []int, isComplete bool, err error) {
	order, isComplete, _, err = minFill(ctx, h, isLast, log2Table, maxMoves)
	return order, isComplete, err
}

// minFill returns the order of MinFillLast and the number of operations that it took. isComplete is false if a limit was reached: a table
// with more than 2^log2Table entries, or maxMoves operations. Then the remaining indices follow by weight.
func minFill(
	ctx context.Context, h Hypergraph, isLast []bool, log2Table float64, maxMoves int64,
) (order []int, isComplete bool, movesTaken int64, err error) {
	const countsFill = true
	g := newFillGraph(h, countsFill, pace.New(ctx))
	g.isLast = isLast
	g.maxWeight, g.maxMoves = int64(min(log2Table*logUnit, math.MaxInt64/2)), maxMoves
	const noSeed = 0 // the rule byFill breaks ties by number
	order, movesTaken, err = g.eliminateAll(h, byFill, noSeed)
	isWithinTables := g.maxWeight > 0 // eliminateAll sets maxWeight to 0 if it comes to a table over the limit
	return order, isWithinTables && g.movesSpent < maxMoves, movesTaken, err
}

// MinFillCost returns the min-fill order of h, its cost and the number of operations that the search took. The search stops early at a
// table of more than maxFlops entries, or after maxMoves operations. Then the remaining indices follow by weight, and the cost is not
// known: maxFlops takes its place. If the search is complete but the flops of the order exceed maxFlops, the cost is that of its first
// steps, up to the one that exceeds.
func MinFillCost(
	ctx context.Context, h Hypergraph, maxFlops float64, maxMoves int64,
) (order []int, cost query.Cost, movesTaken int64, err error) {
	// A step over a table takes at least a flop for each entry, so this limit of the tables excludes no order of maxFlops or less.
	log2Table := math.Log2(maxFlops)
	order, isComplete, movesTaken, err := minFill(ctx, h, nil, log2Table, maxMoves) // nil: no index must come last
	if err != nil {
		return nil, query.Cost{}, movesTaken, err
	}
	if !isComplete {
		limit := query.Cost{Width: int(log2Table), Log2Table: log2Table, Flops: maxFlops, Bytes: 8 * maxFlops} // 8 bytes an entry
		return order, limit, movesTaken, nil
	}
	cost, err = EvaluateOrderWithin(ctx, h, order, maxFlops)
	return order, cost, movesTaken, err
}

// MinWeight returns an elimination order of the indices of h. It always eliminates the index with the smallest table: the product of the
// dimensions of the index and of its neighbours, which share a tensor with it. Of several it takes the smallest number. It is faster than
// MinFill, and better for some mixed domains.
func MinWeight(ctx context.Context, h Hypergraph) ([]int, error) {
	order, _, err := greedyOrder(ctx, h, byWeight, 0)
	return order, err
}

// greedyOrder returns the order in which a greedy rule eliminates the indices of h, and the number of moves (elementary operations). seed
// is for rules that break ties by a hash. Rules other than byWeight need fill counts. The only error is that of the context.
func greedyOrder(
	ctx context.Context, h Hypergraph, rule rule, seed uint64,
) (order []int, moves int64, err error) {
	return newFillGraph(h, rule != byWeight, pace.New(ctx)).eliminateAll(h, rule, seed)
}

// eliminateAll eliminates the vertices of g in the order of a greedy rule, and returns the order and the moves (elementary operations) of
// g so far. It stops early in two cases: if the moves reach maxMoves; or if maxWeight is above 0 and the rule comes to a vertex whose
// weight is above it. Then maxWeight becomes 0, which tells the caller. The remaining vertices follow by weight.
func (g *fillGraph) eliminateAll(
	h Hypergraph, rule rule, seed uint64,
) (order []int, moves int64, err error) {
	var q queue
	for v, d := range h.Dims {
		if d > 1 {
			q = append(q, g.key(int32(v), rule, seed))
		}
	}
	q.heapify()

	order = make([]int, 0, len(q))
	isEliminated := make([]bool, len(h.Dims))
	for len(q) > 0 && g.movesSpent < g.maxMoves && !g.pace.Over(16) { // some 16 operations for the queue
		k := q.pop()
		isStale := k != g.key(k.vertex, rule, seed) // the queue also has a newer key of the vertex
		if isEliminated[k.vertex] || isStale {
			continue
		}

		isTooLarge := g.maxWeight > 0 && g.weight[k.vertex] > g.maxWeight
		if isTooLarge {
			g.maxWeight = 0
			break
		}

		isEliminated[k.vertex] = true
		order = append(order, int(k.vertex))
		g.eliminate(k.vertex) // it sets g.touched to the vertices whose weight or fill count may have changed
		for _, a := range g.touched {
			if !isEliminated[a] {
				q.push(g.key(a, rule, seed))
			}
		}
	}

	if err := g.pace.Err(); err != nil {
		return nil, g.movesSpent, err
	}
	return append(order, g.remainingOrder(h, isEliminated)...), g.movesSpent, nil
}

// lastPenalty returns a number above every fill count if v comes after all others in a greedy order, else 0. It is added to the fill count.
func (g *fillGraph) lastPenalty(v int32) int64 {
	if g.isLast != nil && g.isLast[v] {
		return 1 << 62
	}
	return 0
}

// remainingOrder returns the vertices of dimension above 1 that are not eliminated, by weight, then by number. Vertices that isLast marks
// come after all others: only they have a lastPenalty above 0.
func (g *fillGraph) remainingOrder(h Hypergraph, isEliminated []bool) []int {
	var remaining []int
	for v, d := range h.Dims {
		if d > 1 && !isEliminated[v] {
			remaining = append(remaining, v)
		}
	}
	slices.SortStableFunc(remaining, func(a, b int) int {
		return cmp.Or(cmp.Compare(g.lastPenalty(int32(a)), g.lastPenalty(int32(b))), cmp.Compare(g.weight[a], g.weight[b]))
	})
	return remaining
}

// key returns the present priority of vertex v by a greedy rule. Keys are compared by three parts in sequence: two criteria, and a number
// that breaks ties, which no two vertices share. The fourth part is the vertex. The vertex of the smallest key is eliminated first. The
// fill count of v is the number of edges that its elimination adds; weight is log2 of the size of the table over v and its neighbours.
func (g *fillGraph) key(v int32, rule rule, seed uint64) key {
	switch rule {
	case byWeight:
		return key{g.weight[v], 0, uint64(v), v}
	case byFillRandom:
		return key{g.fillCount[v], 0, mix(seed, uint64(v)), v}
	case byFillWeight:
		return key{g.fillCount[v], g.weight[v], mix(seed, uint64(v)), v}
	}
	// By fill count, but some vertices come after all others: their penalty is above every fill count.
	return key{g.fillCount[v] + g.lastPenalty(v), g.weight[v], uint64(v), v}
}

// mix returns a hash of a vertex under a seed (the finaliser of splitmix64). It is a bijection for every seed, so that there are no ties.
func mix(seed, v uint64) uint64 {
	h := v + (seed+1)*0x9e3779b97f4a7c15
	h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
	h = (h ^ h>>27) * 0x94d049bb133111eb
	return h ^ h>>31
}
