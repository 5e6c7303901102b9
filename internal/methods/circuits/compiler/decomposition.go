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

// follow has the search follow a tree decomposition of the formula.
func (s *search) follow(ctx context.Context, clauses [][]lit) error {
	h := s.residual.hypergraph(clauses)
	d, order, err := s.decomposition(ctx, h)
	if err == nil {
		s.guided(d, order)
		s.budget.begun, s.budget.cells = s.solver.Work, d.cells(h.Dims)
	}
	return err
}

// guided sets the guide of all variables and Stats.Width by a tree and its order.
func (s *search) guided(d decomposition, order []int) {
	if len(order) == 0 {
		return
	}
	depth := d.depths()
	inward := slices.Clone(order)
	slices.SortStableFunc(inward, func(u, v int) int { return depth[v] - depth[u] })
	s.dense.ready(s.residual.problem, s.solver.Implies, inward)
	deepest := 0
	for _, v := range order {
		deepest = max(deepest, depth[v])
	}
	s.stats.Width = d.width
	weight := guideWeight(len(order), s.residual.openVariables(), d.width)
	for b, v := range s.residual.problem.owner {
		s.heuristic.guide[b] = weight * float64(deepest-depth[v]) / float64(max(deepest, 1))
	}
}

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

// decomposition is the better one of the tree of a greedy order and, where it is worth it, of a contraction tree that is searched for.
func (s *search) decomposition(ctx context.Context, h contractionorder.Hypergraph) (decomposition, []int, error) {
	most := int64(math.MaxInt64)
	if s.o.Work > 0 {
		most = int64(greedyShare * float64(s.o.Work))
	}
	order, greedy, err := contractionorder.BestWithin(ctx, h, most)
	s.solver.Work += greedy // a move costs one step
	if err != nil {
		return decomposition{}, nil, err
	}
	d := s.decompose(h, order)
	cells := d.cells(h.Dims)
	if cells < treeFrom || cells > treeMost {
		return d, order, nil
	}
	moves := int64(min(cells, treeMoves))
	if s.o.Work > 0 {
		moves = min(moves, int64(treeShare*float64(s.o.Work*treeMovesPerStep)))
	}
	plan, err := contractionorder.Search(ctx, h, contractionorder.Options{
		Moves: max(moves, 1), Memory: math.MaxInt64 / 4, Effort: math.MaxInt32,
	})
	if fault.CodeOf(err) == fault.OverBudget && err != nil {
		return d, order, nil
	}
	if err != nil {
		return decomposition{}, nil, err
	}
	s.solver.Work += plan.Moves / treeMovesPerStep
	other := eliminated(h, plan.Tree)
	if e := s.decompose(h, other); e.cells(h.Dims) < cells {
		return e, other, nil
	}
	return d, order, nil
}

// decompose is decompose with its work counted: the entries of all bags.
func (s *search) decompose(h contractionorder.Hypergraph, order []int) decomposition {
	d := decompose(h, order)
	for _, bag := range d.bags {
		s.solver.Work += int64(len(bag))
	}
	return d
}

// cells is the total number of assignments of the bags.
func (d decomposition) cells(dims []int) float64 {
	sum := 0.0
	for _, bag := range d.bags {
		cells := 1.0
		for _, v := range bag {
			cells *= float64(dims[v])
		}
		sum += cells
	}
	return sum
}

// guideMost bounds the weight of the decomposition's depth against occurrences and conflicts,
// guideFactor is its factor where the tree is wide, and guideRatio is the number of variables by
// the width from which the weight is largest.
// Source: T. Korhonen and M. Järvisalo, arXiv:2308.15819, section 4, with a tenth of guideFactor.
const (
	guideMost   = 1e7
	guideFactor = 1000
	guideRatio  = 40
)

// guideWeight weighs the guide against occurrences and conflicts: high where the tree is narrow for
// the number of variables, low where there are many Boolean ones. Source: T. Korhonen and M. Järvisalo, arXiv:2308.15819, section 4.
func guideWeight(n, booleans, width int) float64 {
	ratio := float64(n) / float64(max(width, 1))
	if ratio > guideRatio {
		return guideMost
	}
	return min(guideFactor*math.Exp(ratio)/float64(booleans), guideMost)
}

// dimensions are the numbers of open values of the formula's variables, 1 for those that have a value.
func (r *residual) dimensions() []int {
	dims := make([]int, len(r.problem.f.Domains))
	for v := range dims {
		first, n := r.problem.first[v], r.problem.count(int32(v))
		open := 0
		for b := first; b < first+n; b++ {
			if r.value[2*b] == 0 {
				open++
			}
		}
		if n == 1 && open == 1 {
			open = 2
		}
		dims[v] = max(open, 1)
	}
	return dims
}

// hypergraph returns the residual formula's: its variables with the values that are open, and a
// scope per clause and table. The clauses are those of two literals and more.
func (r *residual) hypergraph(clauses [][]lit) contractionorder.Hypergraph {
	dims := r.dimensions()
	h := contractionorder.Hypergraph{Dims: dims}
	add := func(vars []int32) {
		var scope []int
		for _, v := range vars {
			if dims[v] > 1 {
				scope = append(scope, int(v))
			}
		}
		h.Edges = append(h.Edges, distinct(scope))
	}
	for _, c := range clauses {
		vars := make([]int32, len(c))
		for i, l := range c {
			vars[i] = r.problem.owner[l.Variable()]
		}
		add(vars)
	}
	for _, t := range r.problem.tables {
		add(t.scope)
	}
	return h
}

// decomposition is a tree of bags: one per variable of an elimination order.
type decomposition struct {
	bags  [][]int // by place in the order: the variable, and those it meets when it is eliminated
	tree  [][]int // by place: neighbours in the tree
	vars  int
	width int
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
	d := decomposition{bags: make([][]int, len(order)), tree: make([][]int, len(order)), vars: len(h.Dims)}
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
		rest := make([]int, 0, len(d.bags[i]))
		for _, u := range d.bags[i] {
			if u != v {
				rest = append(rest, u)
			}
		}
		next := hand(rest)
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

// distinct sorts a list and takes repetitions out.
func distinct(list []int) []int {
	slices.Sort(list)
	return slices.Compact(list)
}

// depths gives every variable the depth of the first bag that has it, counted in bags with variables that
// those above have not, from the middle of the tree.
func (d decomposition) depths() []int {
	depth := make([]int, d.vars)
	if len(d.bags) == 0 {
		return depth
	}
	type step struct{ bag, from, depth int }
	stack := []step{{d.middle(), -1, 0}}
	for len(stack) > 0 {
		at := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		fresh := false
		for _, v := range d.bags[at.bag] {
			if depth[v] == 0 {
				fresh = true
				depth[v] = at.depth + 1
			}
		}
		below := at.depth
		if fresh {
			below++
		}
		for _, next := range d.tree[at.bag] {
			if next != at.from {
				stack = append(stack, step{next, at.bag, below})
			}
		}
	}
	return depth
}

// middle is the bag whose removal leaves the smallest largest part of the tree, by number of bags.
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
		at := walk[i]
		size[at]++
		largest[at] = max(largest[at], n-size[at])
		if largest[at] < largest[best] || largest[best] == 0 {
			best = at
		}
		if p := parent[at]; p >= 0 {
			size[p] += size[at]
			largest[p] = max(largest[p], size[at])
		}
	}
	return best
}
