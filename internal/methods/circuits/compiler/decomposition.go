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

// bestDecomposition returns a tree decomposition of a hypergraph, and the steps that it took to find it. It is the decomposition of a
// greedy order, or that of a contraction tree. A tree is searched for only if the greedy one has neither few nor hopelessly many cells,
// and it is taken if it has fewer cells. The cells are the assignments of all bags. work is the limit of the search over the formula that
// follows, of which this may take a share; 0: no limit.
func bestDecomposition(ctx context.Context, h contractionorder.Hypergraph, work int64) (best decomposition, steps int64, err error) {
	// A greedy order.
	moveLimit := int64(math.MaxInt64)
	if work > 0 {
		moveLimit = int64(greedyShare * float64(work))
	}
	order, steps, err := contractionorder.BestWithin(ctx, h, moveLimit) // a move costs one step
	if err != nil {
		return decomposition{}, 0, err
	}
	greedy := decompose(h, order)
	steps += greedy.entries()
	if greedy.cells < treeFrom || greedy.cells > treeMost { // few, or hopelessly many
		return greedy, steps, nil
	}

	plan, err := searchTree(ctx, h, greedy.cells, work)
	if fault.CodeOf(err) == fault.OverBudget && err != nil { // no tree is found
		return greedy, steps, nil
	}
	if err != nil {
		return decomposition{}, 0, err
	}
	searched := decompose(h, eliminationOrder(h, plan.Tree))
	steps += plan.Moves/treeMovesPerStep + searched.entries()
	if searched.cells < greedy.cells {
		return searched, steps, nil
	}
	return greedy, steps, nil
}

// searchTree searches for a contraction tree, with as many moves as a greedy decomposition has cells, but at most treeMoves. If work is not
// 0, the moves take at most treeShare of it: treeMovesPerStep moves take the time of a step.
func searchTree(ctx context.Context, h contractionorder.Hypergraph, cells float64, work int64) (contractionorder.Plan, error) {
	moves := int64(min(cells, treeMoves))
	if work > 0 {
		moves = min(moves, int64(treeShare*float64(work*treeMovesPerStep)))
	}
	return contractionorder.Search(ctx, h, contractionorder.Options{
		Moves: max(moves, 1), Memory: math.MaxInt64 / 4, Effort: math.MaxInt32, // only the moves limit it
	})
}

// eliminationOrder returns the indices of h in the order in which a contraction tree sums them out. The leaves of the tree are tensors with
// the scopes h.Edges; merge k joins two nodes to node t.Leaves + k. An index is summed out by the first merge below which all tensors are
// that have the index. If one merge sums out several indices, they are in ascending order.
func eliminationOrder(h contractionorder.Hypergraph, t contractionorder.Tree) []int {
	tensorCount := make([]int, len(h.Dims))               // by index: the number of tensors that have it
	merged := make([]map[int]int, t.Leaves+len(t.Merges)) // by node of the tree and index: the number of tensors below the node that have it
	for i, scope := range h.Edges {
		merged[i] = map[int]int{}
		for _, v := range scope {
			tensorCount[v]++
			merged[i][v] = 1
		}
	}

	var order []int
	for k, m := range t.Merges {
		a, b := merged[m[0]], merged[m[1]]
		merged[m[0]], merged[m[1]] = nil, nil // each node is merged once
		if len(a) < len(b) {                  // add the smaller map to the larger one
			a, b = b, a
		}
		for v, n := range b {
			a[v] += n
		}
		var summed []int
		for v, n := range a {
			if n == tensorCount[v] {
				summed = append(summed, v)
				delete(a, v)
			}
		}
		slices.Sort(summed) // the order of a map is random
		order = append(order, summed...)
		merged[t.Leaves+k] = a
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

// guideWeight returns the weight of the tree decomposition in decisions, against occurrences and conflicts: high if the tree is narrow for
// the number of variables, low if there are many Boolean ones. Source: T. Korhonen and M. Järvisalo, arXiv:2308.15819, section 4.
func guideWeight(variables, booleans, width int) float64 {
	ratio := float64(variables) / float64(max(width, 1))
	if ratio > guideRatio {
		return guideMost
	}
	return min(guideFactor*math.Exp(ratio)/float64(booleans), guideMost)
}

// decomposition is a tree of bags: one per variable of an elimination order.
type decomposition struct {
	order []int
	bags  [][]int // by position in the order: the variable, and the later ones that it shares a table with when it is eliminated
	tree  [][]int // by position in the order: the neighbours of its bag in the tree
	vars  int     // number of variables, also of those that the order leaves out
	width int     // variables in the largest bag, less one
	cells float64 // assignments of all bags
}

// decompose returns the tree decomposition of an elimination order: a tree of bags, which are sets of variables. It simulates the
// elimination: the bag of a variable has the variable and its neighbours, with which it shares a table when it is eliminated. The
// neighbours then share a table, too: they are added to the bag of the first of them to be eliminated, and the two bags are adjacent in the
// tree.
func decompose(h contractionorder.Hypergraph, order []int) decomposition {
	position := slices.Repeat([]int{len(order)}, len(h.Dims)) // by variable, in the order; len(order) if the order leaves it out
	for i, v := range order {
		position[v] = i
	}

	d := decomposition{order: order, bags: make([][]int, len(order)), tree: make([][]int, len(order)), vars: len(h.Dims)}
	for _, scope := range h.Edges {
		d.addToBag(scope, position)
	}
	lastRoot := -1
	for i, v := range order {
		d.bags[i] = distinct(append(d.bags[i], v))
		d.width = max(d.width, len(d.bags[i])-1)
		neighbours := make([]int, 0, len(d.bags[i]))
		cells := 1.0
		for _, u := range d.bags[i] {
			cells *= float64(h.Dims[u])
			if u != v {
				neighbours = append(neighbours, u)
			}
		}
		d.cells += cells

		parent := d.addToBag(neighbours, position)
		if parent == len(order) { // bag i is the root of a connected part: link it to the root before, to get one tree
			parent = lastRoot
			lastRoot = i
		}
		if parent >= 0 {
			d.tree[i] = append(d.tree[i], parent)
			d.tree[parent] = append(d.tree[parent], i)
		}
	}
	return d
}

// addToBag adds a scope to the bag of its variable that comes first in the order. It returns the position of that bag, or the length of the
// order if it has no variable of the scope.
func (d *decomposition) addToBag(scope, position []int) int {
	first := len(d.order)
	for _, v := range scope {
		first = min(first, position[v])
	}
	if first < len(d.order) {
		d.bags[first] = append(d.bags[first], scope...)
	}
	return first
}

// entries returns the sum of the sizes of all bags.
func (d decomposition) entries() int64 {
	n := 0
	for _, bag := range d.bags {
		n += len(bag)
	}
	return int64(n)
}

// guide returns, for each variable of the formula, what the tree decomposition adds to its score in decisions:
// weight · (largest depth − depth) / largest depth. Depths count from the middle bag of the tree, so that variables near it are decided
// first. booleans is the number of Boolean variables, on which the weight depends.
func (d decomposition) guide(booleans int) []float64 {
	depth := d.depths()
	largestDepth := 0
	for _, v := range d.order { // the variables that are in bags
		largestDepth = max(largestDepth, depth[v])
	}
	weight := guideWeight(len(d.order), booleans, d.width)
	guide := make([]float64, d.vars)
	for v := range guide {
		guide[v] = weight * float64(largestDepth-depth[v]) / float64(max(largestDepth, 1))
	}
	return guide
}

// inward returns the variables of the order from the leaves of the tree to its middle: the deepest ones first.
func (d decomposition) inward() []int {
	depth := d.depths()
	inward := slices.Clone(d.order)
	slices.SortStableFunc(inward, func(u, v int) int { return depth[v] - depth[u] })
	return inward
}

// distinct returns a list sorted, with each number once. It changes the list.
func distinct(list []int) []int {
	slices.Sort(list)
	return slices.Compact(list)
}

// depths returns the depth of each variable in the tree of bags, whose root is the middle bag. The first bag of a variable is the bag
// nearest to the root that has it. The depth of the variable is 1 plus the number of bags above its first bag. Of these, bags that are not
// the first bag of any variable do not count. Variables in no bag have depth 0.
func (d decomposition) depths() []int {
	depth := make([]int, d.vars)
	if len(d.bags) == 0 {
		return depth
	}
	type visit struct {
		bag, parent int
		depth       int // number of bags above that count
	}
	stack := []visit{{d.middle(), -1, 0}}
	for len(stack) > 0 {
		next := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		hasNew := false
		for _, v := range d.bags[next.bag] {
			if depth[v] == 0 {
				hasNew = true
				depth[v] = next.depth + 1
			}
		}
		childDepth := next.depth
		if hasNew {
			childDepth++
		}
		for _, bag := range d.tree[next.bag] {
			if bag != next.parent {
				stack = append(stack, visit{bag, next.bag, childDepth})
			}
		}
	}
	return depth
}

// middle returns the centroid of the tree: the bag for which the largest part that remains without it has the fewest bags.
func (d decomposition) middle() int {
	n := len(d.bags)
	walk, parent := d.walk()
	size := make([]int, n)                // by bag: bags of the subtree below it, itself included
	largest := make([]int, n)             // by bag: bags of the largest part that remains of the tree without the bag; 0: not complete yet
	best := n - 1                         // the root of the walk, which comes last in the loop
	for i := len(walk) - 1; i >= 0; i-- { // children before parents
		bag := walk[i]
		size[bag]++
		largest[bag] = max(largest[bag], n-size[bag]) // the part above it
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

// walk returns the bags of the tree with the last one as its root, parents before children, and the parent of each bag, −1 for the root.
func (d decomposition) walk() (bags, parent []int) {
	n := len(d.bags)
	bags, parent = make([]int, 0, n), make([]int, n)
	parent[n-1] = -1
	bags = append(bags, n-1)
	for i := 0; i < len(bags); i++ { // the list grows
		for _, neighbour := range d.tree[bags[i]] {
			if neighbour != parent[bags[i]] {
				parent[neighbour] = bags[i]
				bags = append(bags, neighbour)
			}
		}
	}
	return bags, parent
}
