package andor

// The search itself: down the pseudo-tree by branching and bounding, with a memory for subtrees that come again.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/engine/minibuckets"
)

// Dive returns the assignment in which each variable, the root first, has the value of least bound. There must be mini-buckets.
func (s *Search) Dive() []int {
	s.workEnd = math.MaxInt64
	for k := len(s.order) - 1; k >= 0; k-- {
		v := s.order[k]
		start := s.pushBounds(&s.nodes[v], s.dims[v])
		s.values[v] = indexOfLeast(s.costStack[start : start+s.dims[v]])
		s.costStack = s.costStack[:start]
	}
	return slices.Clone(s.values)
}

// Solve looks for the assignment of least cost among those that cost less than below. It returns nil if there is none, and raises Bound to
// below then. It also returns nil if the work or the context ends before. What was found is remembered for the next call.
func (s *Search) Solve(ctx context.Context, below, work int64) (values []int) {
	if !s.hasMiniBuckets {
		return nil
	}
	s.makeMemory()
	s.workEnd, s.pace, s.stopped, s.costStack = s.Work+work/2, pace.New(ctx), false, s.costStack[:0]
	sum := int64(0) // a lower bound of the cost of all trees, in which more and more bounds become least costs
	for _, f := range s.functions {
		if len(f.Scope) == 0 {
			sum += f.Of[0]
		}
	}
	for _, v := range s.roots {
		sum += s.nodes[v].constant
	}
	costs := make([]int64, len(s.roots))
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
	s.workEnd += work / 2
	for i, v := range s.roots {
		if !s.assignTree(v, costs[i]) {
			return nil
		}
	}
	return slices.Clone(s.values)
}

// solveTree returns the least cost of the tree of v under the values of its separator if that is less than below. If not, it returns a
// lower bound of the least cost that is at least below. If the search stops, the result means nothing.
func (s *Search) solveTree(v int, below int64) int64 {
	remembered, key := s.lookUp(v)
	if remembered != nil && remembered.key == key && (remembered.isExact() || remembered.cost() >= below) {
		return remembered.cost()
	}
	n, d := &s.nodes[v], s.dims[v]
	s.Nodes++
	start := s.pushBounds(n, d)
	least, limit := int64(minibuckets.Forbidden), below
	for range d {
		a := indexOfLeast(s.costStack[start : start+d])
		cost := s.costStack[start+a]
		if cost >= limit || s.stopped {
			least = min(least, cost)
			break
		}
		s.costStack[start+a] = math.MaxInt64 // this value is done
		cost, _ = s.solveChildren(v, a, start+d, cost, limit, nil)
		least, limit = min(least, cost), min(limit, cost)
	}
	s.costStack = s.costStack[:start]
	if remembered != nil && !s.stopped {
		*remembered = entry{key, 2 * least}
		if least < below {
			remembered.value++
		}
	}
	return least
}

// indexOfLeast returns the index of the least cost, of equal ones the first.
func indexOfLeast(costs []int64) (best int) {
	for a, c := range costs {
		if c < costs[best] {
			best = a
		}
	}
	return best
}

// solveChildren sets v to value a and searches the trees of its children. cost is a lower bound with the children's bounds, which begin at
// childBounds in the stack; the least cost of each tree replaces its bound. It returns the cost then, and isComplete false if the search
// stopped or the cost reached below. If childCosts is not nil, it takes the least costs of the trees.
func (s *Search) solveChildren(v, a, childBounds int, cost, below int64, childCosts []int64) (_ int64, isComplete bool) {
	s.values[v] = a
	children := s.nodes[v].children
	for i, c := range children {
		bound := s.costStack[childBounds+a*len(children)+i]
		childCost := max(bound, s.solveTree(c, below-cost+bound))
		if cost += childCost - bound; s.stopped || cost >= below {
			return cost, false
		}
		if childCosts != nil {
			childCosts[i] = childCost
		}
	}
	return cost, true
}

// assignTree sets the values of the tree of v, whose least cost is known, to an assignment of that cost. It returns false if the search
// stops before.
func (s *Search) assignTree(v int, leastCost int64) bool {
	n, d := &s.nodes[v], s.dims[v]
	start := s.pushBounds(n, d)
	childCosts := make([]int64, len(n.children))
	isAssigned := false
	for range d {
		a := indexOfLeast(s.costStack[start : start+d])
		cost := s.costStack[start+a]
		if cost > leastCost || s.stopped {
			break
		}
		s.costStack[start+a] = math.MaxInt64 // this value is done
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

// makeMemory makes the hash tables of what is found below each variable, once. They have equal parts of the memory that mini-buckets leave.
// A variable whose separator is that of its parent and the parent has none: each of its separator values is met only once.
func (s *Search) makeMemory() {
	if s.memory != nil {
		return
	}
	s.memory = make([][]entry, len(s.nodes))
	var remembering []int // variables
	for v := range s.nodes {
		separator := s.nodes[v].separator
		k := len(separator)
		if k > 0 && len(s.nodes[separator[k-1]].separator) != k-1 && s.separatorStates(v) < 1<<62 {
			remembering = append(remembering, v)
		}
	}
	for _, v := range remembering {
		limit := min((1-bucketShare)*s.memoryLimit/entryBytes/float64(len(remembering)), s.separatorStates(v))
		size := 1 // a power of two
		for 2*float64(size) <= limit {
			size *= 2
		}
		s.memory[v] = make([]entry, size)
	}
}

// separatorStates returns the number of combinations of values of a variable's separator.
func (s *Search) separatorStates(v int) float64 {
	n := 1.0
	for _, u := range s.nodes[v].separator {
		n *= float64(s.dims[u])
	}
	return n
}

// lookUp returns the entry for the tree of v under the present values of its separator, and their key. The entry may hold another key; it
// is nil if v has no memory.
func (s *Search) lookUp(v int) (remembered *entry, key uint64) {
	m := s.memory[v]
	if m == nil {
		return nil, 0
	}
	s.Work += int64(len(s.nodes[v].separator))
	for _, u := range s.nodes[v].separator {
		key = key*uint64(s.dims[u]) + uint64(s.values[u])
	}
	hash := key * 0x9e3779b97f4a7c15
	hash = (hash ^ hash>>29) * 0xbf58476d1ce4e5b9
	return &m[(hash^hash>>32)&uint64(len(m)-1)], key + 1
}
