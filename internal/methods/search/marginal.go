package search

// Marginal MAP by search: best first over dives, values of the set in the reverse of an elimination order that sums first. The bound of a
// partial assignment is the product of the mini-buckets' tables and messages over it (Kask and Dechter, A general scheme for automatic
// generation of search heuristics from specification dependencies, 2001; Marinescu, Dechter and Ihler, AND/OR search for marginal MAP,
// 2014).

import (
	"cmp"
	"container/heap"
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/minibuckets"
	"github.com/basetensor/basetensor/internal/methods/descent"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Marginal has the mini-buckets that bound a search for a marginal MAP assignment.
type Marginal struct {
	Order   []int   `msgpack:"order"`   // elimination order of the indices; those that are maximised come last
	Entries float64 `msgpack:"entries"` // limit of the entries of a product of mini-buckets
}

const (
	// slackShare of btn.Tolerance is the gap to the bound, in nats, up to which no better assignment is looked for.
	slackShare = 0.5
	// leafWork is the work of a conditioned network beside its elimination, flops a table. Estimated: a microsecond.
	leafWork = 3000
	// improveShare is the share of the work that changes of single values of the first assignment may take. Chosen.
	improveShare = 1.0 / 4
	// leafShare is the share of the work that planning the sums of an assignment may take, and the share that the bounds of one assignment
	// may take if these sums do not fit. Chosen.
	leafShare = 1.0 / 64
	// changeWork is the work of the bound of one value, flops. Estimated.
	changeWork = 200
	// openBytes is the memory of an open node, and of a choice.
	openBytes = 64
)

// lowerBoundParameters are the values of the parameter below of minibuckets.Run with which lower bounds are tried.
var lowerBoundParameters = []float64{0.1, 1}

// openNode is a partial assignment that the search has yet to complete: values of the first of the maximised indices.
type openNode struct {
	lnBound float64 // no assignment with these values has a larger ln weight
	serial  int     // number of the node in the order of creation
	last    *choice // of the last of these indices; nil: no index has a value
}

// choice is the value of one maximised index, with the choices of all indices before it. Nodes share choices.
type choice struct {
	previous *choice
	depth    int // number of indices with a value; this one is levels[depth-1]
	value    int
}

// length returns the number of indices that have a value. It is 0 for nil.
func (c *choice) length() int {
	if c == nil {
		return 0
	}
	return c.depth
}

// openNodes is a heap: the node of the largest bound first, of equal ones that with the most values, then the oldest.
type openNodes []openNode

// Len implements heap.Interface.
func (o openNodes) Len() int { return len(o) }

// Less implements heap.Interface: it reports whether node i is to be searched before node j.
func (o openNodes) Less(i, j int) bool {
	a, b := o[i], o[j]
	byBound := cmp.Compare(b.lnBound, a.lnBound)
	byLength := cmp.Compare(b.last.length(), a.last.length())
	return cmp.Or(byBound, byLength, cmp.Compare(a.serial, b.serial)) < 0
}

// Swap implements heap.Interface.
func (o openNodes) Swap(i, j int) { o[i], o[j] = o[j], o[i] }

// Push implements heap.Interface: it appends a node, which heap.Push then moves to its place.
func (o *openNodes) Push(x any) { *o = append(*o, x.(openNode)) }

// Pop implements heap.Interface: it removes the last node, to which heap.Pop has moved the first one, and returns it.
func (o *openNodes) Pop() any {
	last := (*o)[len(*o)-1]
	*o = (*o)[:len(*o)-1]
	return last
}

// marginalSearch is the state of a search for a marginal MAP assignment. Logarithms are ln of weights.
type marginalSearch struct {
	ctx    context.Context
	tables *descent.Prepared
	bound  *minibuckets.Bound
	levels []level           // the maximised indices in the order in which they get values
	inner  *descent.InnerSum // computes the weight of an assignment; nil: leaf bounds it
	leaf   *minibuckets.Plan // mini-buckets of the sums of one assignment

	values    []int // by index: the assignment under way
	open      openNodes
	serial    int   // of the last open node
	openBytes int64 // of all nodes that were opened
	memory    int64 // bytes
	flopsLeft float64

	best                 []int // best assignment by index; nil: none yet
	bestLower, bestUpper float64
	closedBound          float64 // no assignment outside the open nodes has a larger weight
}

// level is an index that is maximised.
type level struct {
	position int // in the elimination order
	index    int
	domain   int // number of values
}

// newMarginalSearch bounds the network by mini-buckets and plans how to weigh assignments. A weight is computed exactly (inner) if the sums
// fit the memory and half of flops. If not, mini-buckets bound it (leaf).
//
// Errors: over_budget for mini-buckets beyond the memory.
func newMarginalSearch(
	ctx context.Context, tables *descent.Prepared, m *Marginal, memory int64, threads int, flops float64,
) (*marginalSearch, error) {
	h := tables.Hypergraph()
	plan, err := minibuckets.NewPlan(h, m.Order, m.Entries)
	if err != nil {
		return nil, err
	}
	if plan.Bytes > float64(memory) {
		return nil, fault.New(fault.OverBudget, "search: mini-buckets need %.3g bytes, %d are allowed", plan.Bytes, memory)
	}
	s := &marginalSearch{
		ctx: ctx, tables: tables, memory: memory, flopsLeft: flops, values: make([]int, len(h.Dims)),
		bestLower: math.Inf(-1), closedBound: math.Inf(-1),
	}

	if err := s.makeLevels(plan); err != nil {
		return nil, err
	}
	if s.bound, err = minibuckets.Run(ctx, tables.Terms(), plan, 0); err != nil { // 0: an upper bound
		return nil, err
	}
	s.flopsLeft -= plan.Flops + plan.Matching // Matching: what an upper bound takes beside Flops
	return s, s.planWeighing(plan.Maximal, flops, threads)
}

// makeLevels gives each maximised index a level of the search, in the reverse of the plan's elimination order, and marks it in
// plan.Maximal. It returns an error if the order sums an index out after a maximised one: the bounds of the levels would not hold then.
func (s *marginalSearch) makeLevels(plan *minibuckets.Plan) error {
	dims := s.tables.Hypergraph().Dims
	maximised := descent.MaximisedIndices(s.tables)
	plan.Maximal = make([]bool, len(dims))
	for _, i := range maximised {
		plan.Maximal[i] = true
	}
	for k := len(plan.Order) - 1; k >= 0; k-- {
		switch i := plan.Order[k]; {
		case plan.Maximal[i]:
			s.levels = append(s.levels, level{k, i, dims[i]})
		case dims[i] > 1 && len(s.levels) < len(maximised): // maximised indices come before i
			return fault.New(fault.Internal, "search: the order sums index %d out after a maximum", i)
		}
	}
	return nil
}

// planWeighing plans the sums that weigh one assignment: s.inner if they fit half of the memory and of flops, else the mini-buckets s.leaf,
// which bound them. isMaximised tells for each index whether it is maximised and not summed.
func (s *marginalSearch) planWeighing(isMaximised []bool, flops float64, threads int) (err error) {
	moves := max(1, int64(leafShare*flops/policy.MoveFlops)) // steps of planning: each takes the time of MoveFlops flops
	s.inner, err = descent.NewInnerSum(s.ctx, s.tables, descent.PlanOptions{Memory: s.memory / 2, Moves: moves}, threads)
	isAffordable := err == nil && s.inner.Cost.Flops <= flops/2
	if isAffordable || err != nil && fault.CodeOf(err) != fault.OverBudget {
		return err
	}

	// The sums take too much. The scopes of the remaining tables are the same for all assignments, so one with values 0 serves the plan.
	s.inner = nil
	order, err := descent.SumsFirstOrder(s.ctx, s.tables, policy.MostFill)
	if err != nil {
		return err
	}
	order = slices.DeleteFunc(order, func(i int) bool { return isMaximised[i] })
	conditioned := descent.ConditionedTerms(s.tables, s.values).Hypergraph()
	runs := float64(1 + len(lowerBoundParameters)) // of the mini-buckets for one assignment: an upper bound and lower ones (weigh)
	s.leaf, _, err = largestMiniBuckets(conditioned, order, leafShare*flops, runs, float64(s.memory/2))
	return err
}

// run dives from the open node of largest bound again and again, until no node can have a better assignment, the work is done or the
// context ends. The first dive is made whatever the work. It returns ln of a bound of the weights of all assignments: the largest of the
// best weight, the bounds of the open nodes, and closedBound, the bound of everything else.
func (s *marginalSearch) run() (lnBound float64, err error) {
	s.push(s.bound.Ln, nil)
	for dives := 0; len(s.open) > 0; dives++ {
		if s.open[0].lnBound <= s.cutoff() || dives > 0 && s.isOver() {
			break
		}
		n := heap.Pop(&s.open).(openNode)
		wasWithoutBest := s.best == nil
		if err := s.dive(n); err != nil {
			if s.ctx.Err() != nil && s.best != nil { // the time is over: n stays unsearched
				s.closedBound = max(s.closedBound, n.lnBound)
				break
			}
			return 0, err
		}
		if wasWithoutBest && s.best != nil && s.inner != nil { // the first assignment, and weights are exact (inner)
			if err := s.improve(); err != nil && s.ctx.Err() == nil { // at the end of the time there is an assignment already
				return 0, err
			}
		}
	}

	lnBound = max(s.closedBound, s.bestLower)
	if len(s.open) > 0 {
		lnBound = max(lnBound, s.open[0].lnBound)
	}
	return lnBound, nil
}

// cutoff returns ln of the weight that a node's bound has to exceed for the node to be searched.
func (s *marginalSearch) cutoff() float64 { return s.bestLower + slackShare*btn.Tolerance }

// isOver reports whether the work, the memory or the time has ended.
func (s *marginalSearch) isOver() bool {
	return s.flopsLeft <= 0 || s.openBytes > s.memory/4 || s.ctx.Err() != nil
}

// push adds an open node with the values up to the choice last.
func (s *marginalSearch) push(lnBound float64, last *choice) {
	s.serial++
	s.openBytes += 2 * openBytes // the node and its choice, which stays as long as a later node has it
	heap.Push(&s.open, openNode{lnBound, s.serial, last})
}

// dive completes a node to an assignment. A node has a value for the index of each of the first levels; n.last is the last of these
// choices, and each choice leads to the one before it. Each further index takes the value of largest bound, and its other values become
// open nodes. A value whose bound is at most the cutoff becomes no node: closedBound, a bound of all that is not searched, rises to its
// bound. dive ends early if all values of an index are at most the cutoff. A complete assignment is weighed and offered as the best one.
// Bounds are of ln of weights.
func (s *marginalSearch) dive(n openNode) error {
	for c := n.last; c != nil; c = c.previous {
		s.values[s.levels[c.depth-1].index] = c.value
	}
	lnBound, last := n.lnBound, n.last
	for k, l := range s.levels[last.length():] {
		bounds, best := s.boundValues(l, lnBound)
		largest := math.Inf(-1)
		if best >= 0 {
			largest = bounds[best]
		}
		depth := n.last.length() + k + 1 // indices with a value, this one included
		for a, bound := range bounds {
			switch {
			case a == best:
			case bound <= s.cutoff():
				s.closedBound = max(s.closedBound, bound)
			default:
				s.push(bound, &choice{last, depth, a})
			}
		}
		if lnBound = largest; lnBound <= s.cutoff() || best < 0 {
			s.closedBound = max(s.closedBound, lnBound)
			return nil
		}
		s.values[l.index] = best
		last = &choice{last, depth, best}
	}
	lower, upper, err := s.weigh()
	if err == nil {
		s.offer(lower, min(upper, max(lnBound, lower))) // the bound of the dive may be lower than that of weigh
	}
	return err
}

// boundValues returns, for each value of the index of level l, a bound of ln of the weights of assignments with the value and with s.values
// of the levels before. best is the first value of largest bound; it is −1 if all bounds are −Inf. lnBound bounds the weights without a
// value of the index. It changes the index's value in s.values.
func (s *marginalSearch) boundValues(l level, lnBound float64) (bounds []float64, best int) {
	s.flopsLeft -= changeWork * float64(l.domain)
	best, largest := -1, math.Inf(-1)
	bounds = make([]float64, l.domain)
	for a := range bounds {
		s.values[l.index] = a
		// Change is what the value takes off the bound: at most 0 but for rounding.
		if bounds[a] = min(lnBound, lnBound+s.bound.Change(l.position, s.values)); bounds[a] > largest {
			best, largest = a, bounds[a]
		}
	}
	return bounds, best
}

// offer makes s.values the best assignment if its ln weight, which is from lower to upper, is larger: lower exceeds that of the best one so
// far. It reports whether it did.
func (s *marginalSearch) offer(lower, upper float64) (isBetter bool) {
	s.closedBound = max(s.closedBound, upper)
	if lower <= s.bestLower {
		return false
	}
	s.best, s.bestLower, s.bestUpper = append(s.best[:0], s.values...), lower, upper
	return true
}

// weigh returns bounds of ln of the weight of the assignment s.values: the sum of all terms that have these values of the maximised
// indices. The bounds are equal if the sum is computed exactly (s.inner). If not, mini-buckets bound it (s.leaf).
func (s *marginalSearch) weigh() (lower, upper float64, err error) {
	if s.inner != nil {
		s.flopsLeft -= s.inner.Cost.Flops + leafWork*float64(len(s.tables.Terms().Tables))
		lower, err = s.inner.LnWeight(s.ctx, s.values)
		return lower, lower, err
	}

	// Bounds by mini-buckets. Run gives an upper bound if its parameter below is 0, and a lower bound if it is above 0. The largest of the
	// lower bounds counts. Flops are those of a run, and Matching those that the upper bound takes in addition.
	conditioned := descent.ConditionedTerms(s.tables, s.values)
	runs := float64(1 + len(lowerBoundParameters))
	s.flopsLeft -= runs*s.leaf.Flops + s.leaf.Matching + leafWork*float64(len(conditioned.Tables))
	b, err := minibuckets.Run(s.ctx, conditioned, s.leaf, 0) // 0: an upper bound
	if err != nil {
		return 0, 0, err
	}
	upper, lower = b.Ln, math.Inf(-1)
	for _, below := range lowerBoundParameters {
		if b, err = minibuckets.Run(s.ctx, conditioned, s.leaf, below); err != nil {
			return 0, 0, err
		}
		if b.Ln > lower { // false for NaN
			lower = b.Ln
		}
	}
	return min(lower, upper), upper, nil // rounding may have put lower above upper
}

// improve makes the best assignment better by local search: it tries all values of one index after another, and keeps each that makes the
// weight larger: offer then copies s.values to s.best. It ends after a round without a better assignment, or when it has taken improveShare
// of the work that was left at its beginning.
func (s *marginalSearch) improve() error {
	reserve := (1 - improveShare) * s.flopsLeft
	copy(s.values, s.best)
	for hasImproved := true; hasImproved; {
		hasImproved = false
		for _, l := range s.levels {
			for a := range l.domain {
				if s.flopsLeft <= reserve {
					return nil
				}
				if a == s.best[l.index] {
					continue
				}
				s.values[l.index] = a
				lower, upper, err := s.weigh()
				if err != nil {
					return err
				}
				hasImproved = s.offer(lower, upper) || hasImproved
			}
			s.values[l.index] = s.best[l.index]
		}
	}
	return nil
}
