package compiler

// Guidance by a tree decomposition: variables of bags near the middle of the tree are decided
// first, because the residual formula then falls into parts.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/fault"
)

// treeFrom is the number of assignments of all bags of the greedy decomposition from which a
// better one is searched for, treeMost the number that is too large for a contraction along any
// like it.
const (
	treeFrom = 1 << 20
	treeMost = 1 << 56
)

// treeMoves bounds that search, in moves; treeMovesPerStep of them take the time of a step of the search over the formula, treeShare is
// the part of the work of a search with a limit that they may take.
// Measured: ra takes 0.8 s of CPU time, 1.6 s with twice of treeShare; log-5, 076 and 091 as long.
const (
	treeMoves        = 1 << 29
	treeMovesPerStep = 4
	treeShare        = 1.0 / 4
)

// greedyShare is the part of the work of a search with a limit that the search for a good greedy order may take.
// Chosen: at most one of 90 variables, a clause for every pair, is summed in 2^24 steps with it; the greedy orders alone would take
// twice that.
const greedyShare = 1.0 / 16

// bestDecomposition returns the better one of the tree of a greedy order and, if it is worth it, of a contraction tree that is searched
// for, with the steps that this took. The search over the formula may take so much work, without a limit if that is 0.
func bestDecomposition(ctx context.Context, h contractionorder.Hypergraph, work int64) (best decomposition, steps int64, err error) {
	limit := int64(math.MaxInt64)
	if work > 0 {
		limit = int64(greedyShare * float64(work))
	}
	order, steps, err := contractionorder.BestWithin(ctx, h, limit) // a move costs one step
	if err != nil {
		return decomposition{}, 0, err
	}
	greedy := decompose(h, order)
	steps += greedy.entries()
	if greedy.cells < treeFrom || greedy.cells > treeMost {
		return greedy, steps, nil
	}
	moves := int64(min(greedy.cells, treeMoves))
	if work > 0 {
		moves = min(moves, int64(treeShare*float64(work*treeMovesPerStep)))
	}
	plan, err := contractionorder.Search(ctx, h, contractionorder.Options{
		Moves: max(moves, 1), Memory: math.MaxInt64 / 4, Effort: math.MaxInt32,
	})
	if fault.CodeOf(err) == fault.OverBudget && err != nil {
		return greedy, steps, nil
	}
	if err != nil {
		return decomposition{}, 0, err
	}
	searched := decompose(h, eliminated(h, plan.Tree))
	steps += plan.Moves/treeMovesPerStep + searched.entries()
	if searched.cells < greedy.cells {
		return searched, steps, nil
	}
	return greedy, steps, nil
}

// eliminated lists the indices of h in the order in which the merges of a tree sum them: when the last tensor with an index joins.
func eliminated(h contractionorder.Hypergraph, t contractionorder.Tree) []int {
	tensors := make([]int, len(h.Dims)) // by index: the number of its tensors
	tables := make([]map[int]int, t.Leaves+len(t.Merges))
	var order []int
	for i, scope := range h.Edges {
		tables[i] = map[int]int{}
		for _, v := range scope {
			tensors[v]++
			tables[i][v] = 1
		}
	}
	for k, m := range t.Merges {
		a, b := tables[m[0]], tables[m[1]]
		tables[m[0]], tables[m[1]] = nil, nil
		if len(a) < len(b) {
			a, b = b, a
		}
		for v, n := range b {
			a[v] += n
		}
		var done []int
		for v, n := range a {
			if n == tensors[v] {
				done = append(done, v)
				delete(a, v)
			}
		}
		order = append(order, distinct(done)...)
		tables[t.Leaves+k] = a
	}
	return order
}

// guideMost bounds the weight of the decomposition's depth against occurrences and conflicts,
// guideFactor is its factor if the tree is wide, and guideRatio is the number of variables by
// the width from which the weight is largest.
// Source: T. Korhonen and M. Järvisalo, arXiv:2308.15819, section 4, with a tenth of guideFactor.
const (
	guideMost   = 1e7
	guideFactor = 1000
	guideRatio  = 40
)

// guideWeight returns the weight of the guide against occurrences and conflicts: high if the tree is narrow for
// the number of variables, low if there are many Boolean ones. Source: T. Korhonen and M. Järvisalo, arXiv:2308.15819, section 4.
func guideWeight(n, booleans, width int) float64 {
	ratio := float64(n) / float64(max(width, 1))
	if ratio > guideRatio {
		return guideMost
	}
	return min(guideFactor*math.Exp(ratio)/float64(booleans), guideMost)
}

// decomposition is a tree of bags: one per variable of an elimination order.
type decomposition struct {
	order []int
	bags  [][]int // by place in the order: the variable, and those it meets when it is eliminated
	tree  [][]int // by place: neighbours in the tree
	vars  int
	width int
	cells float64 // assignments of all bags
}

// decompose simulates the elimination: a bag passes its remaining variables to the bag of the first
// of them in the order.
func decompose(h contractionorder.Hypergraph, order []int) decomposition {
	place := make([]int, len(h.Dims))
	for i := range place {
		place[i] = -1
	}
	for i, v := range order {
		place[v] = i
	}
	d := decomposition{order: order, bags: make([][]int, len(order)), tree: make([][]int, len(order)), vars: len(h.Dims)}
	hand := func(scope []int) int { // the place that a scope belongs to
		first := len(order)
		for _, v := range scope {
			if place[v] >= 0 {
				first = min(first, place[v])
			}
		}
		if first < len(order) {
			d.bags[first] = append(d.bags[first], scope...)
		}
		return first
	}
	for _, e := range h.Edges {
		hand(e)
	}
	last := -1
	for i, v := range order {
		d.bags[i] = distinct(append(d.bags[i], v))
		d.width = max(d.width, len(d.bags[i])-1)
		others := make([]int, 0, len(d.bags[i]))
		cells := 1.0
		for _, u := range d.bags[i] {
			cells *= float64(h.Dims[u])
			if u != v {
				others = append(others, u)
			}
		}
		d.cells += cells
		next := hand(others)
		if next == len(order) { // the root of a part: parts are strung together
			next = last
			last = i
		}
		if next >= 0 {
			d.tree[i] = append(d.tree[i], next)
			d.tree[next] = append(d.tree[next], i)
		}
	}
	return d
}

// entries returns the number of variables in all bags.
func (d decomposition) entries() int64 {
	n := 0
	for _, bag := range d.bags {
		n += len(bag)
	}
	return int64(n)
}

// guide returns the weight of every variable of the formula in decisions, of so many Boolean variables: it is higher near the middle of the
// tree.
func (d decomposition) guide(booleans int) []float64 {
	depth := d.depths()
	deepest := 0
	for _, v := range d.order {
		deepest = max(deepest, depth[v])
	}
	weight := guideWeight(len(d.order), booleans, d.width)
	guide := make([]float64, d.vars)
	for v := range guide {
		guide[v] = weight * float64(deepest-depth[v]) / float64(max(deepest, 1))
	}
	return guide
}

// inward returns the order from the leaves to the middle.
func (d decomposition) inward() []int {
	depth := d.depths()
	inward := slices.Clone(d.order)
	slices.SortStableFunc(inward, func(u, v int) int { return depth[v] - depth[u] })
	return inward
}

// distinct sorts a list and takes repetitions out.
func distinct(list []int) []int {
	slices.Sort(list)
	return slices.Compact(list)
}

// depths returns the depth of the first bag that has a variable, counted in bags with variables that
// those above have not, from the middle of the tree.
func (d decomposition) depths() []int {
	depth := make([]int, d.vars)
	if len(d.bags) == 0 {
		return depth
	}
	type step struct{ bag, from, depth int }
	stack := []step{{d.middle(), -1, 0}}
	for len(stack) > 0 {
		next := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		fresh := false
		for _, v := range d.bags[next.bag] {
			if depth[v] == 0 {
				fresh = true
				depth[v] = next.depth + 1
			}
		}
		below := next.depth
		if fresh {
			below++
		}
		for _, bag := range d.tree[next.bag] {
			if bag != next.from {
				stack = append(stack, step{bag, next.bag, below})
			}
		}
	}
	return depth
}

// middle returns the bag whose removal leaves the smallest largest part of the tree, by number of bags.
func (d decomposition) middle() int {
	n := len(d.bags)
	parent, walk := make([]int, n), make([]int, 0, n)
	parent[n-1] = -1
	walk = append(walk, n-1)
	for i := 0; i < len(walk); i++ {
		for _, next := range d.tree[walk[i]] {
			if next != parent[walk[i]] {
				parent[next] = walk[i]
				walk = append(walk, next)
			}
		}
	}
	size, largest := make([]int, n), make([]int, n)
	best := n - 1
	for i := len(walk) - 1; i >= 0; i-- {
		bag := walk[i]
		size[bag]++
		largest[bag] = max(largest[bag], n-size[bag])
		if largest[bag] < largest[best] || largest[best] == 0 {
			best = bag
		}
		if p := parent[bag]; p >= 0 {
			size[p] += size[bag]
			largest[p] = max(largest[p], size[bag])
		}
	}
	return best
}
