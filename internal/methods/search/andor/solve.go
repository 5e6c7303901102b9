package andor

// The search itself: down the pseudo-tree by branching and bounding, with a memory for subtrees that come again.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/engine/minibuckets"
)

// GreedyAssignment returns the assignment in which each variable has the value of least bound, given the values of its ancestors in the
// pseudo tree. WidenMiniBuckets must have made mini-buckets before. It changes s.values, and lifts the limit of work.
func (s *Search) GreedyAssignment() []int {
	s.workEnd = math.MaxInt64
	for k := len(s.order) - 1; k >= 0; k-- { // from the roots down: against the order of elimination
		v := s.order[k]
		start := s.pushBounds(&s.nodes[v], s.dims[v]) // a bound for each value of v is in costStack from start on
		s.values[v] = indexOfLeast(s.costStack[start : start+s.dims[v]])
		s.costStack = s.costStack[:start]
	}
	return slices.Clone(s.values)
}

// Solve returns the assignment of least cost if that cost is less than below. If not, it returns nil and raises s.Bound to below. It also
// returns nil if the work or the context ends before, or if there are no mini-buckets. Half of the work is for finding the least cost, and
// half for finding an assignment of that cost. The costs of subtrees that it found are remembered for the next call.
//
// The variables form trees (pseudo-trees), between which no function is: so the least cost is the sum of those of the trees.
func (s *Search) Solve(ctx context.Context, below, work int64) (values []int) {
	if !s.hasMiniBuckets {
		return nil
	}
	s.makeMemory()
	s.workEnd = s.Work + work/2
	s.pace = pace.New(ctx)
	s.stopped = false
	s.costStack = s.costStack[:0]

	// Replace the bound of each tree by its least cost. The limit of a tree's cost is that with which the sum reaches below.
	sum := s.boundOfTrees()
	costs := make([]int64, len(s.roots)) // by tree
	for i, v := range s.roots {
		if sum >= below {
			break
		}
		bound := s.nodes[v].constant
		costs[i] = max(bound, s.solveTree(v, below-sum+bound))
		if s.stopped {
			return nil
		}
		sum += costs[i] - bound
	}
	s.Bound = max(s.Bound, min(sum, below))
	if sum >= below {
		return nil
	}

	// Find an assignment with the least costs.
	s.workEnd += work / 2
	for i, v := range s.roots {
		if !s.assignTree(v, costs[i]) {
			return nil
		}
	}
	return slices.Clone(s.values)
}

// boundOfTrees returns a lower bound of the cost of an assignment: the functions without variables and the bound of each tree.
func (s *Search) boundOfTrees() int64 {
	sum := int64(0)
	for _, f := range s.functions {
		if len(f.Scope) == 0 {
			sum += f.Values[0]
		}
	}
	for _, v := range s.roots {
		sum += s.nodes[v].constant
	}
	return sum
}

// solveTree returns the least cost of the tree of v under the present values of its separator (the variables above on which the tree
// depends), if that cost is less than below. If not, it returns a lower bound of the least cost that is at least below. It remembers the
// result, exact or not, by the values of the separator. If the search stops, the result means nothing.
func (s *Search) solveTree(v int, below int64) int64 {
	remembered, key := s.lookUp(v)
	isKnown := remembered != nil && remembered.key == key
	if isKnown && (remembered.isExact() || remembered.cost() >= below) {
		return remembered.cost()
	}

	// Try the values of v, that of least bound first, until no bound is below limit, the least cost so far.
	n, d := &s.nodes[v], s.dims[v]
	s.Nodes++
	start := s.pushBounds(n, d) // costStack[start+a] bounds the cost of the tree if v has value a
	leastCost, limit := int64(minibuckets.Forbidden), below
	for range d {
		a := indexOfLeast(s.costStack[start : start+d])
		cost := s.costStack[start+a]
		if cost >= limit || s.stopped {
			leastCost = min(leastCost, cost)
			break
		}
		s.costStack[start+a] = math.MaxInt64                       // value a is not tried again
		cost, _ = s.solveChildren(v, a, start+d, cost, limit, nil) // a bound of at least limit if it is not complete
		leastCost, limit = min(leastCost, cost), min(limit, cost)
	}
	s.costStack = s.costStack[:start]

	if remembered != nil && !s.stopped {
		isExact := leastCost < below
		*remembered = newEntry(key, leastCost, isExact)
	}
	return leastCost
}

// indexOfLeast returns the index of the least cost. Of equal costs it is the first one.
func indexOfLeast(costs []int64) (best int) {
	for a, c := range costs {
		if c < costs[best] {
			best = a
		}
	}
	return best
}

// solveChildren sets v to value a and solves the trees of its children. cost is a lower bound that contains a bound for the tree of each
// child: costStack[boundsStart + a·n + i] for the i-th of n children. It replaces these bounds by the trees' least costs, and returns the
// new cost. If childCosts is not nil, it receives the least costs. isComplete is false if the search stopped or the cost reached below;
// then some bounds were not replaced.
func (s *Search) solveChildren(v, a, boundsStart int, cost, below int64, childCosts []int64) (_ int64, isComplete bool) {
	s.values[v] = a
	children := s.nodes[v].children
	for i, c := range children {
		bound := s.costStack[boundsStart+a*len(children)+i]
		childCost := max(bound, s.solveTree(c, below-cost+bound)) // the limit is what the other parts of cost leave of below
		if cost += childCost - bound; s.stopped || cost >= below {
			return cost, false
		}
		if childCosts != nil {
			childCosts[i] = childCost
		}
	}
	return cost, true
}

// assignTree sets s.values of the tree of v to an assignment of cost leastCost, the least cost of the tree under the present values of its
// separator, the variables above on which it depends. It returns false if the search stops before.
func (s *Search) assignTree(v int, leastCost int64) bool {
	// Find a value of v with that cost, and the least costs of the children's trees under it.
	n, d := &s.nodes[v], s.dims[v]
	start := s.pushBounds(n, d) // costStack[start+a] bounds the cost of the tree if v has value a
	childCosts := make([]int64, len(n.children))
	isAssigned := false
	for range d {
		a := indexOfLeast(s.costStack[start : start+d])
		cost := s.costStack[start+a]
		if cost > leastCost || s.stopped {
			break
		}
		s.costStack[start+a] = math.MaxInt64 // value a is not tried again
		// The bounds of the children's trees begin at costStack[start+d]. leastCost+1: stop if the cost exceeds leastCost.
		if _, isAssigned = s.solveChildren(v, a, start+d, cost, leastCost+1, childCosts); isAssigned {
			break
		}
	}
	s.costStack = s.costStack[:start]

	for i, c := range n.children {
		isAssigned = isAssigned && s.assignTree(c, childCosts[i])
	}
	return isAssigned && !s.stopped
}

// makeMemory makes the hash table of each variable, which remembers the least cost of its tree by the values of its separator. The tables
// have equal parts of the memory that mini-buckets leave. Later calls do nothing.
//
// A variable has no table if its separator consists of its parent and the parent's separator: the search comes only once to each
// combination of their values. It has no table either if its separator is empty, or has too many combinations of values for a key of 64
// bits.
func (s *Search) makeMemory() {
	if s.memory != nil {
		return
	}
	s.memory = make([][]entry, len(s.nodes))
	var remembering []int // variables that have a table
	for v := range s.nodes {
		if s.comesAgain(v) && s.separatorStates(v) < 1<<62 { // a key is 1 more than the number of a combination
			remembering = append(remembering, v)
		}
	}
	for _, v := range remembering {
		// The largest power of two of entries within the limit.
		limit := min((1-bucketShare)*s.memoryLimit/entryBytes/float64(len(remembering)), s.separatorStates(v))
		size := 1
		for 2*float64(size) <= limit {
			size *= 2
		}
		s.memory[v] = make([]entry, size)
	}
}

// comesAgain reports whether the search may come to v several times with the same values of its separator: the separator, whose last
// variable is the parent, does not have all of the parent's separator.
func (s *Search) comesAgain(v int) bool {
	separator := s.nodes[v].separator
	k := len(separator)
	return k > 0 && len(s.nodes[separator[k-1]].separator) != k-1
}

// separatorStates returns the number of combinations of values of a variable's separator.
func (s *Search) separatorStates(v int) float64 {
	n := 1.0
	for _, u := range s.nodes[v].separator {
		n *= float64(s.dims[u])
	}
	return n
}

// lookUp returns the place in v's hash table for the present values of its separator, and their key: 1 + the number whose digits are these
// values. Every key has one place; it may hold the entry of another key. It is nil if v has no table.
func (s *Search) lookUp(v int) (place *entry, key uint64) {
	table := s.memory[v]
	if table == nil {
		return nil, 0
	}
	s.Work += int64(len(s.nodes[v].separator))
	for _, u := range s.nodes[v].separator {
		key = key*uint64(s.dims[u]) + uint64(s.values[u])
	}

	// The bits of the key are mixed by the constants of splitmix64, so that keys that are near each other fall into different places. The
	// size of the table is a power of two. Keys are from 1 on, since a place without an entry has the key 0.
	hash := key * 0x9e3779b97f4a7c15
	hash = (hash ^ hash>>29) * 0xbf58476d1ce4e5b9
	return &table[(hash^hash>>32)&uint64(len(table)-1)], key + 1
}
