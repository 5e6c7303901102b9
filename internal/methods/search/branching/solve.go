package branching

import (
	"cmp"
	"container/heap"
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Options bound a search. The zero value of every field is its default.
type Options struct {
	Work      int64 // entries of tables that are looked at; 0: no limit. The search may exceed it by what one variable takes.
	OpenBytes int64 // bytes of open nodes, default 256 MiB: beyond, the search is a depth-first one. Mini-buckets may take as many again.
	Count     int   // number of assignments of least cost that are looked for; 0: one
	Start     []int // an assignment that is known before the search; nil: none
}

// Result is what a search has found.
type Result struct {
	Values []int   // nil if no assignment was found
	Cost   float64 // of Values, nats
	// Others are the next assignments in ascending order of their costs, if more than one was looked for.
	Others [][]int
	// Bound in nats: no assignment costs less. If more than one was looked for, no assignment that is not listed costs less. It is +Inf if
	// there is none.
	Bound float64
	// Proved reports that the search is complete: the cost of the last listed assignment exceeds Bound by rounding only.
	Proved bool
	Stats  Stats
}

// Solve looks for an assignment of least cost, or for the o.Count cheapest ones. The result depends on the network and the options alone,
// unless the context ends: then the result is what is known by then, without an error.
//
// Errors: bad_input if the network is invalid or o.Start is no assignment of it, over_budget for tables beyond MostEntries.
func Solve(ctx context.Context, n *Network, o Options) (*Result, error) {
	if err := n.check(); err != nil {
		return nil, err
	}
	if o.Start != nil && !n.isAssignment(o.Start) {
		return nil, fault.New(fault.BadInput, "search: the assignment to start from is none of the network")
	}
	if o.OpenBytes <= 0 {
		o.OpenBytes = 256 << 20 // 256 MiB
	}
	s, isPossible := newSolver(ctx, n)
	if !isPossible {
		return &Result{Cost: math.Inf(1), Bound: math.Inf(1), Proved: true}, nil
	}
	s.workLimit, s.openBytesLimit, s.wantedCount = o.Work, o.OpenBytes, o.Count
	if o.Start != nil {
		s.offer(o.Start)
	}
	s.openRoot()
	return s.searchAndReport(), nil
}

// searchAndReport searches the open nodes, and returns the assignments found with a bound of all others.
func (s *solver) searchAndReport() *Result {
	s.searchOpenNodes()
	lower := s.boundOfUnfound() // in units; Bound and Cost are in nats
	r := &Result{Values: s.best, Cost: s.bestNats, Bound: s.base + float64(lower)*s.unit, Proved: lower >= s.bestCost, Stats: s.stats}
	r.Stats.Work = s.work
	if lower >= s.forbidden { // no other assignment is allowed
		r.Bound = math.Inf(1)
	}
	if s.wantedCount < 2 { // the bound is that of all assignments, Values included
		r.Bound = min(r.Bound, r.Cost)
		return r
	}

	// Of several assignments, the cheapest in nats is the best one. The list is in the order of rounded costs.
	slices.SortFunc(s.bestList, func(a, b listedAssignment) int {
		return cmp.Or(cmp.Compare(a.nats, b.nats), slices.Compare(a.values, b.values))
	})
	for k, l := range s.bestList {
		if k == 0 {
			r.Values, r.Cost = l.values, l.nats
		} else {
			r.Others = append(r.Others, l.values)
		}
	}
	return r
}

// boundOfUnfound returns a lower bound of the cost of every assignment that may be better than those found, at most upperBound. Such an
// assignment is in an open node or in a leaf (leafFloor). The search along separators has another bound for all of them (provenBound).
func (s *solver) boundOfUnfound() int64 {
	lower := min(s.upperBound, s.leafFloor)
	for _, n := range s.open {
		lower = min(lower, n.bound)
	}
	return max(lower, min(s.provenBound, s.upperBound))
}

// openRoot propagates at the root and makes it the first open node. No node is open if that alone shows that no assignment is better than
// the best one so far.
func (s *solver) openRoot() {
	s.leafFloor = math.MaxInt64
	s.offerGreedyStart()
	if s.makeRootConsistent() {
		heap.Push(&s.open, &node{bound: s.lowerBound()})
	}
	s.backtrackLimit, s.exploredWork = 1, s.work
}

// searchOpenNodes dives from the open node of least bound again and again, until no open node has a bound below upperBound or the search is
// stopped. Each time that the work has doubled it also looks for better assignments (explore) and searches along separators (decompose).
func (s *solver) searchOpenNodes() {
	for len(s.open) > 0 && !s.stopped {
		if s.work >= 2*s.exploredWork {
			s.exploredWork = s.work
			s.explore()
			workBefore := s.work
			decompose(s)
			s.exploredWork += s.work - workBefore // the work of decompose does not count until the next time
		}
		next := s.open[0]
		if max(next.bound, s.provenBound) >= s.upperBound { // no open node has a better assignment
			s.open = s.open[:0]
			return
		}
		heap.Pop(&s.open)
		s.openBytes -= next.bytes()
		s.diveFrom(next, s.backtrackLimit)
		// Decisions that are made again (Restored) are wasted: dives get longer if they are more than a tenth of the nodes, and shorter if they
		// are less than a twentieth.
		switch {
		case s.stats.Restored > s.stats.Nodes/10 && s.backtrackLimit < maxDive:
			s.backtrackLimit *= 2
		case s.stats.Restored < s.stats.Nodes/20 && s.backtrackLimit > 1:
			s.backtrackLimit /= 2
		}
	}
}

// makeRootConsistent propagates at the root, moves costs so that the bound is high, and looks for good assignments. It returns false if
// that shows that no assignment is better than the best one so far: the search is complete then. Each of its steps returns false on such a
// conflict.
func (s *solver) makeRootConsistent() bool {
	// Queue all variables.
	s.smallRise = s.largestCost() >> 10 // a rise of the bound by up to 1/1024 of that is not worth more work
	for x := range s.vars {
		if !s.makeNodeConsistent(int32(x)) {
			return false
		}
		if s.vars[x].domainSize == 1 {
			s.toAssign = append(s.toAssign, int32(x))
		}
		s.lostValues.insert(x)
		s.doubtfulSupport.insert(x)
		s.maybeEliminable.insert(x)
	}

	// Propagation moves costs along the order of variables. It raises the bound in both directions: the order is reversed twice. Then
	// come the methods of raiseRootBound.
	if !s.propagate() || !s.reverseOrder() || !s.reverseOrder() || !s.raiseRootBound() || !s.propagateAll() {
		return false
	}
	s.offerRounded()
	s.explore()
	isConsistent := s.propagate()
	s.trail = s.trail[:0] // nothing of the root is taken back
	return isConsistent
}

// largestCost returns the largest entry of all tables, forbidden ones left out.
func (s *solver) largestCost() int64 {
	largest := int64(0)
	update := func(costs []int64) {
		for _, c := range costs {
			if c < s.forbidden {
				largest = max(largest, c)
			}
		}
	}
	for x := range s.vars {
		update(s.cells[s.vars[x].unaryCell:][:s.vars[x].domainSize])
	}
	for k := range s.arcs {
		update(s.arcs[k].table)
	}
	for k := range s.wides {
		update(s.wides[k].table)
	}
	return largest
}

// raiseRootBound raises the bound by message passing and, if that is worth it, by virtual arc consistency (raiseVirtually). A trial of
// virtual arc consistency, which is taken back, finds the bound that it can reach, virtualBound. Virtual arc consistency is worth it if
//
//	virtualBound − present bound > (upperBound − virtualBound) / virtualLead
//
// This is asked before message passing and again after it. raiseRootBound returns false if no assignment is better than the best one so
// far.
func (s *solver) raiseRootBound() bool {
	virtualBound := int64(0)
	boundBefore := s.lowerBound()
	mayImprove := runWithoutTrace(s, func() bool {
		mayImprove := s.raiseVirtually()
		virtualBound = s.lowerBound()
		return mayImprove
	})
	if !mayImprove {
		return false
	}

	// Before message passing.
	virtualGap := s.upperBound - virtualBound
	if virtualBound-boundBefore > virtualGap/virtualLead && !s.raiseVirtually() {
		return false
	}
	s.trail = s.trail[:0] // nothing of the root is taken back
	if !s.passMessages() {
		return false
	}

	// After message passing.
	virtualGap = s.upperBound - virtualBound // message passing may have found a better assignment
	if virtualBound-s.lowerBound() > virtualGap/virtualLead {
		return s.raiseVirtually() && s.passMessages()
	}
	return true
}

// propagateAll makes the network consistent from the beginning, as if every variable had just lost values. It returns false on a conflict.
func (s *solver) propagateAll() bool {
	for x := range s.vars {
		s.lostValues.insert(x)
		s.doubtfulSupport.insert(x)
	}
	return s.propagate()
}

// bytes returns an estimate of the memory of an open node.
func (n *node) bytes() int64 {
	size := int64(64)
	for _, p := range n.path {
		size += 40 + 4*int64(len(p.values))
	}
	return size
}

// apply makes a decision: it removes values of variable d.x, those in d.values if d.removes is set, else all others. It returns false on a
// conflict: the variable has no value left, or the bound has reached upperBound.
func (s *solver) apply(d decision) bool {
	v := &s.vars[d.x]
	if d.removes {
		for _, a := range d.values {
			if s.isLive(d.x, a) && !s.removeValue(d.x, a) {
				return false
			}
		}
	} else {
		for k := int(s.liveCount(v)) - 1; k >= 0; k-- { // backwards, since removeValue reorders the list behind k
			if a := v.live[k]; !slices.Contains(d.values, a) && !s.removeValue(d.x, a) {
				return false
			}
		}
	}
	return s.makeNodeConsistent(d.x)
}

// reapply makes a decision of an open node's path again. It returns false on a conflict. Bounds are better than when the decision was made
// first, so the variable may have one value left (assigned): then the decision only has to allow that value. The variable may also be
// eliminated: then there is nothing to do, since an elimination holds for all values.
func (s *solver) reapply(d decision) bool {
	switch s.cells[s.vars[d.x].stateCell] {
	case open:
		return s.apply(d)
	case assigned: // the only live value is the first one
		isNamed := slices.Contains(d.values, s.vars[d.x].live[0])
		return isNamed != d.removes // the decision removes the named values, or all others
	}
	return true
}

// diveFrom makes the decisions of an open node again and searches below it, depth first, for at most limit backtracks. The nodes that are
// not searched then become open nodes. At its end the state of the network is as before.
func (s *solver) diveFrom(start *node, limit int64) {
	s.push()
	defer s.pop()
	path := append(s.path[:0], start.path...)
	for _, d := range path {
		s.stats.Restored++
		if s.stopped {
			s.addOpenNode(start.path, start.bound)
			return
		}
		if !s.reapply(d) || !s.propagate() { // nothing below the node costs less than upperBound
			return
		}
	}
	addUnsearched := func(path []decision, bound int64) { s.addOpenNode(path, max(bound, start.bound)) }
	s.searchDepthFirst(path, limit, math.MaxInt64, addUnsearched)
}

// searchDepthFirst searches below a consistent node, which the decisions of path lead to. It returns true if every node below was searched,
// or was handed to addUnsearched. In any case the state of the network is as before.
//
// After limit backtracks, or if the search is stopped, it searches no further nodes: it calls addUnsearched with the path and the bound of
// each of them, which become open nodes. If the memory of open nodes is full, it searches on after limit backtracks.
//
// If addUnsearched is nil, it returns false after limit backtracks, if the search is stopped, and when the work exceeds workEnd.
func (s *solver) searchDepthFirst(
	path []decision, limit, workEnd int64, addUnsearched func(path []decision, bound int64),
) (isComplete bool) {
	depth := len(s.marks)
	t := depthFirst{solver: s, path: path, undecided: s.openDecisions[:0], backtracksLeft: limit, addUnsearched: addUnsearched}
	isToSearch, isOver := true, false // isToSearch: the present node is consistent, and was not searched
	for !isOver && (addUnsearched != nil || !s.stopped && s.work <= workEnd) {
		if isToSearch {
			if isLeaf := s.cells[s.openCountCell] == 0; !isLeaf && !s.stopped {
				isToSearch = t.goDown()
				continue
			}
			if s.stopped { // with addUnsearched, since the loop has ended without it
				addUnsearched(t.path, s.lowerBound())
			} else {
				s.takeLeaf()
			}
		}
		if len(t.undecided) == 0 {
			isComplete = true
			break
		}
		isToSearch, isOver = t.goBack()
	}
	s.path, s.openDecisions = t.path, t.undecided // buffers of the next search
	for len(s.marks) > depth {
		s.pop()
	}
	return isComplete
}

// depthFirst is a search of searchDepthFirst.
type depthFirst struct {
	*solver
	path           []decision     // to the present node
	undecided      []openDecision // the decisions of path whose opposites are not searched
	backtracksLeft int64          // below 0: no further nodes are searched
	addUnsearched  func(path []decision, bound int64)
}

// goDown makes a decision at the present node. It returns false on a conflict.
func (t *depthFirst) goDown() bool {
	first, opposite := t.chooseDecision()
	t.undecided = append(t.undecided, openDecision{len(t.path), t.lowerBound(), opposite})
	t.path = append(t.path, first)
	t.push()
	t.stats.Nodes++
	return t.apply(first) && t.propagate()
}

// goBack takes back the last decision of undecided and what came after it, and goes to the node of its opposite. isToSearch is false if
// nothing below that node costs less than upperBound, or if it was handed to addUnsearched. isOver is true if the node should be handed
// over, but addUnsearched is nil.
func (t *depthFirst) goBack() (isToSearch, isOver bool) {
	t.stats.Backtracks++
	t.backtracksLeft--
	last := t.undecided[len(t.undecided)-1]
	t.undecided = t.undecided[:len(t.undecided)-1]
	t.pop()
	t.path = append(t.path[:last.pathLength], last.opposite)
	t.lastConflict = last.opposite.x
	if last.bound >= t.upperBound { // a better assignment was found since the decision
		return false, false
	}
	hasMemory := t.addUnsearched == nil || t.openBytes < t.openBytesLimit
	if t.stopped || t.backtracksLeft < 0 && hasMemory {
		if t.addUnsearched == nil {
			return false, true
		}
		t.addUnsearched(t.path, last.bound)
		return false, false
	}
	t.stats.Nodes++
	return t.apply(last.opposite) && t.propagate(), false
}

// addOpenNode adds the node that the decisions of path lead to, with its bound, to the open nodes. It copies path.
func (s *solver) addOpenNode(path []decision, bound int64) {
	s.serial++
	n := &node{bound: bound, serial: s.serial, path: slices.Clone(path)}
	s.openBytes += n.bytes()
	heap.Push(&s.open, n)
	s.stats.Open = max(s.stats.Open, len(s.open))
}

// takeLeaf offers the cheapest assignment of a node without open variables as a solution, before and after a local search. If several
// assignments are looked for, it also offers those with other values of the eliminated variables.
//
// If one assignment is looked for, the bound of the node mostly is the cost of that assignment, so that upperBound is now at most the
// bound. If the bound is still below upperBound, assignments of the node may cost as little as the bound says: leafFloor, the least of
// these bounds, falls to it. If several are looked for, offerCompletions does so.
func (s *solver) takeLeaf() {
	s.stats.Leaves++
	if s.wantedCount > 1 {
		s.offerCompletions()
	}
	s.completeAssignment() // writes s.values
	s.offer(s.values)
	s.improve(s.values)
	s.offer(s.values)
	if s.wantedCount < 2 && s.lowerBound() < s.upperBound { // costs beyond maxMoved are not in the bound
		s.leafFloor = min(s.leafFloor, s.lowerBound())
	}
}

// offer records an assignment as a solution, unless it is forbidden. It has two costs: in nats, and in integer units, into which the search
// rounds all table entries down. If its cost in nats is the least so far, it becomes s.best. If its cost in units is below upperBound,
// upperBound and bestCost fall to it, or, if several assignments are looked for, it gets a place in the list of the best ones. Since
// rounding may change the order, bestCost may be the cost of another assignment than s.best.
func (s *finder) offer(values []int) {
	nats := s.net.Cost(values)
	if math.IsInf(nats, 1) {
		return
	}
	if nats < s.bestNats {
		s.bestNats = nats
		s.best = append(s.best[:0], values...)
	}
	cost := s.costOfAll(values) // in units
	switch {
	case cost >= s.upperBound:
	case s.wantedCount < 2:
		s.upperBound, s.bestCost = cost, cost
	default:
		s.insertListed(listedAssignment{slices.Clone(values), cost, nats})
	}
}

// costOfAll returns the cost of an assignment in units: the sum of the entries of all tables of the network, each rounded down. The
// tables of s do not change when costs are moved: cells keep what was moved. Functions that the search made do not count.
func (s *finder) costOfAll(values []int) int64 {
	cost := int64(0)
	for x, a := range values {
		cost += s.networkUnary[x][a]
	}
	for k := 0; k < s.networkPairs; k++ {
		e := &s.arcs[2*k] // the first of the two arcs of a function
		cost += e.table[values[e.from]*s.vars[e.to].domainSize+values[e.to]]
	}
	for k := range s.wides[:s.networkWides] {
		w := &s.wides[k]
		index := 0
		for i, x := range w.scope {
			index += values[x] * int(w.strides[i])
		}
		cost += w.table[index]
	}
	return cost
}

// fewValues is the largest number of live values for which a decision tries one value. For more it tries the cheaper half of them.
const fewValues = 10

// chooseDecision returns a decision about an open variable, and its opposite. The variable is that of the last conflict if it is open,
// else chooseVariable chooses it. If it has at most fewValues values, the decision is to keep one: the value that had existential support
// last (it cost 0 together with its functions) if its unary cost is 0, else the first value of unary cost 0. If the variable has more
// values, the decision is to keep the cheaper half of them.
func (s *solver) chooseDecision() (first, opposite decision) {
	x := s.lastConflict // its variable
	if x < 0 || !s.isOpen(x) {
		x = s.chooseVariable()
	}
	v := &s.vars[x]
	live := s.liveValues(x)
	const keeps, removes = false, true

	// One value.
	if len(live) <= fewValues {
		a := v.existentialValue
		if !s.isLive(x, a) || s.unaryCost(v, a) > 0 {
			for _, b := range live {
				if s.unaryCost(v, b) == 0 {
					a = b
					break
				}
			}
		}
		values := []int32{a}
		return decision{x, keeps, values}, decision{x, removes, values}
	}

	// The cheaper half of the values.
	values := slices.Clone(live)
	slices.SortFunc(values, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.unaryCost(v, a), s.unaryCost(v, b)), cmp.Compare(a, b))
	})
	values = values[:len(values)/2]
	return decision{x, keeps, values}, decision{x, removes, values}
}

// conflictWeight returns 1 plus the number of conflicts of the function with index k in s.weights. It is 1 for the last index, which all
// functions share that the search made.
func (s *solver) conflictWeight(k int) int64 {
	if k == len(s.weights)-1 {
		return 1
	}
	return s.weights[k]
}

// chooseVariable returns the open variable with the least ratio of live values to weight. The weight is 1 plus the conflict weights of its
// active functions, so that variables that often lead to conflicts come first.
func (s *solver) chooseVariable() int32 {
	best, leastRatio := int32(-1), math.Inf(1)
	s.work += int64(len(s.vars))
	for x := range s.vars {
		v := &s.vars[x]
		if !s.isOpen(int32(x)) {
			continue
		}
		weight := int64(1)
		for _, id := range v.arcs {
			if s.isActive(s.arcs[id].activeCell) {
				weight += s.conflictWeight(s.pairWeightIndex(id))
			}
		}
		for _, id := range v.wides {
			if s.isActive(s.wides[id].activeCell) {
				weight += s.conflictWeight(s.wideWeightIndex(id))
			}
		}
		if ratio := float64(s.liveCount(v)) / float64(weight); ratio < leastRatio {
			best, leastRatio = int32(x), ratio
		}
	}
	return best
}
