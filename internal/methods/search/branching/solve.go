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
	Work  int64 // entries of tables that are looked at; 0: no limit. The search may exceed it by what one variable takes.
	Open  int64 // bytes of open nodes, default 256 MiB: beyond, the search is a depth-first one. Mini-buckets may take as many again.
	Best  int   // number of assignments of least cost that are looked for; 0: one
	Start []int // an assignment that is known before the search; nil: none
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

// Solve looks for an assignment of least cost. For the same network and options, and a context that does not end, the result is the same.
// When the context ends, the result is what is known by then, without an error.
//
// Errors: bad_input for a network that is none and for a start of another one, over_budget for tables beyond MostEntries.
func Solve(ctx context.Context, n *Network, o Options) (*Result, error) {
	if err := n.check(); err != nil {
		return nil, err
	}
	if o.Start != nil && !n.isAssignment(o.Start) {
		return nil, fault.New(fault.BadInput, "search: the assignment to start from is none of the network")
	}
	if o.Open <= 0 {
		o.Open = 256 << 20
	}
	s, isPossible := newSolver(ctx, n)
	if !isPossible {
		return &Result{Cost: math.Inf(1), Bound: math.Inf(1), Proved: true}, nil
	}
	s.workLimit, s.openBytesLimit, s.count = o.Work, o.Open, o.Best
	if o.Start != nil {
		s.offer(o.Start)
	}
	s.openRoot()
	return s.searchAndReport(), nil
}

// searchAndReport searches the open nodes, and returns what was found.
func (s *solver) searchAndReport() *Result {
	s.searchOpenNodes()
	lower := min(s.upperBound, s.leafFloor)
	for _, n := range s.open {
		lower = min(lower, n.bound)
	}
	lower = max(lower, min(s.provenBound, s.upperBound))
	r := &Result{Values: s.best, Cost: s.bestReal, Bound: s.base + float64(lower)*s.unit, Proved: lower >= s.bestCost, Stats: s.stats}
	r.Stats.Work = s.work
	if lower >= s.forbidden {
		r.Bound = math.Inf(1)
	}
	if s.count < 2 {
		r.Bound = min(r.Bound, r.Cost)
		return r
	}
	slices.SortFunc(s.bestList, func(a, b listedAssignment) int {
		return cmp.Or(cmp.Compare(a.real, b.real), slices.Compare(a.values, b.values))
	})
	for k, l := range s.bestList {
		if k == 0 {
			r.Values, r.Cost = l.values, l.real
		} else {
			r.Others = append(r.Others, l.values)
		}
	}
	return r
}

// step is a decision about variable x: it has one of values, or, if removes is set, none of them.
type step struct {
	x       int32
	removes bool
	values  []int32
}

// frame is a decision of a dive whose other side is not searched yet.
type frame struct {
	pathLength int   // number of steps before the decision
	bound      int64 // of the node before the decision
	otherSide  step
}

// node is an open node: its subtree is not searched yet.
type node struct {
	bound  int64  // no assignment in the subtree costs less
	serial int64  // number of the node in the order of creation
	path   []step // decisions from the root
}

// openNodes is a heap of open nodes: the lowest bound first, of equal ones the longest path, then the oldest node.
type openNodes []*node

func (o openNodes) Len() int { return len(o) }
func (o openNodes) Less(i, j int) bool {
	a, b := o[i], o[j]
	return cmp.Or(cmp.Compare(a.bound, b.bound), cmp.Compare(len(b.path), len(a.path)), cmp.Compare(a.serial, b.serial)) < 0
}
func (o openNodes) Swap(i, j int) { o[i], o[j] = o[j], o[i] }
func (o *openNodes) Push(x any)   { *o = append(*o, x.(*node)) }
func (o *openNodes) Pop() any {
	last := (*o)[len(*o)-1]
	*o = (*o)[:len(*o)-1]
	return last
}

// maxDive limits the backtracks of a dive. The limit of the next dive is doubled if more than a tenth of the nodes are restored ones, and
// halved if less than a twentieth is.
const maxDive = 1 << 14

// openRoot makes the root consistent and an open node. No node is open then if that is the whole search.
func (s *solver) openRoot() {
	s.leafFloor = math.MaxInt64
	s.offerGreedyStart()
	if s.makeRootConsistent() {
		heap.Push(&s.open, &node{bound: s.lowerBound()})
	}
	s.backtrackLimit, s.exploredWork = 1, s.work
}

// searchOpenNodes dives from the open node of least bound again and again, until no node of interest is open or the search is stopped. Each
// time that the work has doubled it explores and searches along separators.
func (s *solver) searchOpenNodes() {
	for len(s.open) > 0 && !s.stopped {
		if s.work >= 2*s.exploredWork {
			s.exploredWork = s.work
			s.explore()
			before := s.work
			decompose(s)
			s.exploredWork += s.work - before // only the work of other kinds has to double
		}
		next := s.open[0]
		if max(next.bound, s.provenBound) >= s.upperBound {
			s.open = s.open[:0]
			return
		}
		heap.Pop(&s.open)
		s.openBytes -= next.bytes()
		s.diveFrom(next, s.backtrackLimit)
		switch {
		case s.stats.Restored > s.stats.Nodes/10 && s.backtrackLimit < maxDive:
			s.backtrackLimit *= 2
		case s.stats.Restored < s.stats.Nodes/20 && s.backtrackLimit > 1:
			s.backtrackLimit /= 2
		}
	}
}

// makeRootConsistent propagates at the root, moves costs so that the bound is high, and looks for good assignments. It returns false if no
// assignment of interest is left, so that the search is complete.
func (s *solver) makeRootConsistent() bool {
	s.smallRise = s.largestCost() >> 10
	for x := range s.vars {
		if !s.makeNodeConsistent(int32(x)) {
			return false
		}
		if s.vars[x].domainSize == 1 {
			s.fixed = append(s.fixed, int32(x))
		}
		s.shrunk.insert(x)
		s.doubtful.insert(x)
		s.eliminable.insert(x)
	}
	if !s.propagate() || !s.reverseOrder() || !s.reverseOrder() || !s.raiseRootBound() || !s.propagateAll() {
		return false
	}
	s.offerRounded()
	s.explore()
	isConsistent := s.propagate()
	s.trail = s.trail[:0]
	return isConsistent
}

// largestCost returns the largest cost in a table that is not forbidden.
func (s *solver) largestCost() int64 {
	largest := int64(0)
	visit := func(costs []int64) {
		for _, c := range costs {
			if c < s.forbidden {
				largest = max(largest, c)
			}
		}
	}
	for x := range s.vars {
		visit(s.cells[s.vars[x].unaryCell:][:s.vars[x].domainSize])
	}
	for k := range s.arcs {
		visit(s.arcs[k].table)
	}
	for k := range s.wides {
		visit(s.wides[k].table)
	}
	return largest
}

// raiseRootBound raises the bound by message passing, and by virtual arc consistency if that leads to a bound higher by a part in
// virtualLead of the gap: than before in a first trial that is taken back, or than that of message passing. It returns false if no
// assignment of interest is left.
func (s *solver) raiseRootBound() bool {
	before, virtualBound := s.lowerBound(), int64(0)
	isPossible := runWithoutTrace(s, func() bool {
		isPossible := s.raiseVirtually()
		virtualBound = s.lowerBound()
		return isPossible
	})
	if !isPossible {
		return false
	}
	if virtualBound-before > (s.upperBound-virtualBound)/virtualLead && !s.raiseVirtually() {
		return false
	}
	s.trail = s.trail[:0]
	if !s.passMessages() {
		return false
	}
	if virtualBound-s.lowerBound() > (s.upperBound-virtualBound)/virtualLead {
		return s.raiseVirtually() && s.passMessages()
	}
	return true
}

// propagateAll makes the network consistent as if every variable had lost values. It returns false on a conflict.
func (s *solver) propagateAll() bool {
	for x := range s.vars {
		s.shrunk.insert(x)
		s.doubtful.insert(x)
	}
	return s.propagate()
}

// bytes estimates the memory of an open node.
func (n *node) bytes() int64 {
	size := int64(64)
	for _, p := range n.path {
		size += 40 + 4*int64(len(p.values))
	}
	return size
}

// apply makes a decision. It returns false on a conflict.
func (s *solver) apply(d step) bool {
	v := &s.vars[d.x]
	if d.removes {
		for _, a := range d.values {
			if s.isLive(d.x, a) && !s.removeValue(d.x, a) {
				return false
			}
		}
	} else {
		for k := int(s.cells[v.liveCountCell]) - 1; k >= 0; k-- {
			if a := v.live[k]; !slices.Contains(d.values, a) && !s.removeValue(d.x, a) {
				return false
			}
		}
	}
	return s.makeNodeConsistent(d.x)
}

// reapply makes a decision of an open node's path again. Better bounds may have assigned the variable since then, or eliminated it: an
// elimination holds for all its values, so nothing is to be done. It returns false on a conflict.
func (s *solver) reapply(d step) bool {
	switch s.cells[s.vars[d.x].stateCell] {
	case open:
		return s.apply(d)
	case assigned:
		return slices.Contains(d.values, s.vars[d.x].live[0]) != d.removes
	}
	return true
}

// diveFrom searches below an open node, depth first, for at most limit backtracks. What is not searched then becomes open nodes.
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
		if !s.reapply(d) || !s.propagate() {
			return
		}
	}
	s.searchDepthFirst(path, limit, math.MaxInt64, func(path []step, bound int64) { s.addOpenNode(path, max(bound, start.bound)) })
}

// searchDepthFirst searches below a consistent node, which path leads to, for at most limit backtracks. When limit is reached or the search
// is stopped, keep takes the path and the bound of each node that is not searched. If keep is nil, the search ends there, and when the work
// reaches end. It reports whether the search is complete: every node was searched or kept. The network is as before then.
func (s *solver) searchDepthFirst(path []step, limit, end int64, keep func(path []step, bound int64)) (isComplete bool) {
	depth := len(s.marks)
	frames := s.frames[:0]
	backtracksLeft, isConsistent := limit, true
	for keep != nil || !s.stopped && s.work <= end {
		if isConsistent {
			switch {
			case s.stopped:
				keep(path, s.lowerBound())
			case s.cells[s.openCountCell] == 0:
				s.takeLeaf()
			default:
				first, second := s.chooseDecision()
				frames = append(frames, frame{len(path), s.lowerBound(), second})
				path = append(path, first)
				s.push()
				s.stats.Nodes++
				isConsistent = s.apply(first) && s.propagate()
				continue
			}
			isConsistent = false // nothing is left to search below this node
		}
		if len(frames) == 0 {
			isComplete = true
			break
		}
		// Go back to the last decision and take its other side.
		s.stats.Backtracks++
		backtracksLeft--
		f := frames[len(frames)-1]
		frames = frames[:len(frames)-1]
		s.pop()
		path = append(path[:f.pathLength], f.otherSide)
		s.lastConflict = f.otherSide.x
		if f.bound >= s.upperBound {
			continue
		}
		if s.stopped || backtracksLeft < 0 && (keep == nil || s.openBytes < s.openBytesLimit) {
			if keep == nil {
				break
			}
			keep(path, f.bound)
			continue
		}
		s.stats.Nodes++
		isConsistent = s.apply(f.otherSide) && s.propagate()
	}
	s.path, s.frames = path, frames
	for len(s.marks) > depth {
		s.pop()
	}
	return isComplete
}

// addOpenNode adds an open node with a copy of the path.
func (s *solver) addOpenNode(path []step, bound int64) {
	s.serial++
	n := &node{bound: bound, serial: s.serial, path: slices.Clone(path)}
	s.openBytes += n.bytes()
	heap.Push(&s.open, n)
	s.stats.Open = max(s.stats.Open, len(s.open))
}

// takeLeaf offers the assignment of a node without open variables, before and after a local search. If several assignments are looked for,
// it offers further ones with other values of the eliminated variables.
func (s *solver) takeLeaf() {
	s.stats.Leaves++
	if s.count > 1 {
		s.offerCompletions()
	}
	s.completeAssignment()
	s.offer(s.values)
	s.improve(s.values)
	s.offer(s.values)
	if s.count < 2 && s.lowerBound() < s.upperBound { // costs beyond maxMoved are not in the bound
		s.leafFloor = min(s.leafFloor, s.lowerBound())
	}
}

// offer takes an assignment that is better than the best one so far or has a place in the list, in nats or in units. It ignores forbidden
// ones.
func (s *finder) offer(values []int) {
	real := s.net.Cost(values)
	if math.IsInf(real, 1) {
		return
	}
	if real < s.bestReal {
		s.bestReal = real
		s.best = append(s.best[:0], values...)
	}
	cost := s.costOfAll(values)
	switch {
	case cost >= s.upperBound:
	case s.count < 2:
		s.upperBound, s.bestCost = cost, cost
	default:
		s.insertListed(listedAssignment{slices.Clone(values), cost, real})
	}
}

// costOfAll returns the cost of an assignment in units: the sum over the functions of the network, each rounded down.
func (s *finder) costOfAll(values []int) int64 {
	cost := int64(0)
	for x, a := range values {
		cost += s.networkUnary[x][a]
	}
	for k := 0; k < s.networkPairs; k++ {
		e := &s.arcs[2*k]
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

// chooseDecision returns a decision about an open variable and its opposite. The variable is that of the last conflict if it is open, else
// the one of chooseVariable. A single value is the one with existential support, else the first of unary cost 0.
func (s *solver) chooseDecision() (first, second step) {
	x := s.lastConflict
	if x < 0 || !s.isOpen(x) {
		x = s.chooseVariable()
	}
	v := &s.vars[x]
	live := s.liveValues(x)
	if len(live) <= fewValues {
		a := v.existentialValue
		if !s.isLive(x, a) || s.cells[v.unaryCell+int(a)] > 0 {
			for _, b := range live {
				if s.cells[v.unaryCell+int(b)] == 0 {
					a = b
					break
				}
			}
		}
		values := []int32{a}
		return step{x, false, values}, step{x, true, values}
	}
	values := slices.Clone(live)
	slices.SortFunc(values, func(a, b int32) int {
		return cmp.Or(cmp.Compare(s.cells[v.unaryCell+int(a)], s.cells[v.unaryCell+int(b)]), cmp.Compare(a, b))
	})
	values = values[:len(values)/2]
	return step{x, false, values}, step{x, true, values}
}

// weightOf returns the number of conflicts of a function, and 1 more, by its index in weights. It is 1 for a function made on the way.
func (s *solver) weightOf(k int) int64 {
	if k == len(s.weights)-1 {
		return 1
	}
	return s.weights[k]
}

// chooseVariable returns the open variable with the fewest live values per weight, which is 1 plus the weights of its active functions.
func (s *solver) chooseVariable() int32 {
	best, leastRatio := int32(-1), math.Inf(1)
	s.work += int64(len(s.vars))
	for x := range s.vars {
		v := &s.vars[x]
		if s.cells[v.stateCell] != open {
			continue
		}
		weight := int64(1)
		for _, id := range v.arcs {
			if s.cells[s.arcs[id].activeCell] != 0 {
				weight += s.weightOf(s.pairWeight(id))
			}
		}
		for _, id := range v.wides {
			if s.cells[s.wides[id].activeCell] != 0 {
				weight += s.weightOf(s.wideWeight(id))
			}
		}
		if ratio := float64(s.cells[v.liveCountCell]) / float64(weight); ratio < leastRatio {
			best, leastRatio = int32(x), ratio
		}
	}
	return best
}
