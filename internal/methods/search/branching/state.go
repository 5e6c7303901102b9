package branching

import (
	"context"
	"math"
	"slices"
)

// States of a variable.
const (
	open       = 0
	assigned   = 1 // its costs are in its neighbours'
	eliminated = 2 // its least costs are in its neighbours'
)

// variable is a variable of the network.
type variable struct {
	domainSize       int
	unaryCell        int     // of the first unary cost
	liveCountCell    int     // number of live values
	stateCell        int     // open, assigned or eliminated
	rank             int     // place in the order of directional consistency
	live             []int32 // all values, the live ones first
	position         []int32 // by value: its place in live
	arcs             []int32 // from this variable, those made last at the end
	wides            []int32 // wide functions over it
	existentialValue int32   // value that had existential support last
}

// arc is a function of two variables, seen from one of them. The arc seen from the other variable is at the position with the last bit
// changed (id^1, see reverseOf), with the transposed table. With d values of to, the function's cost at (a, b) is
//
//	table[a·d + b] − cells[movedCell + a] − cells[other arc's movedCell + b]
type arc struct {
	from, to   int32
	movedCell  int // of the first cost moved to a value of from; below 0: moved into the function
	activeCell int // 1 while both variables are open and the function is not replaced
	table      []int64
	support    []int32 // by value of from: the value of to that supported it last
}

// wide is a function of three or more variables. Its cost at a tuple t of values is
//
//	table[Σ_i t_i·strides[i]] − Σ_i cells[movedCells[i] + t_i]
type wide struct {
	scope         []int32
	strides       []int32
	movedCells    []int // by variable, of the first cost moved to one of its values
	openCountCell int   // number of variables that are not assigned
	activeCell    int   // 1 while the function is part of the network
	table         []int64
	supports      [][]int32 // by variable and value: index in table of the combination that supported it last
}

// undo is a cell with the value that it had before a change.
type undo struct {
	cell int
	old  int64
}

// mark is the length of what grows below a node, at the moment of a push.
type mark struct{ trail, arcs, wides, cells int }

// state is a network under the decisions of a node, with a trail that undoes them. All numbers that change with the node are cells, so that
// one trail records them: a field named …Cell is an index into cells.
type state struct {
	ctx  context.Context
	net  *Network
	unit float64 // of costs, nats
	base float64 // nats: an assignment that costs c units costs at least base + unit·c

	cells []int64
	trail []undo
	marks []mark
	vars  []variable
	arcs  []arc // two for each function of two variables, at the positions 2k and 2k+1
	wides []wide
	order []int32 // variables by rank

	forbidden     int64 // cost of a forbidden combination, more than all others add up to
	upperBound    int64 // assignments of this cost or more are of no interest
	openCountCell int   // number of open variables
	boundCell     int   // lower bound of this node

	weights      []int64 // number of conflicts, and 1: of the network's pairs, then its wide functions, then all functions made on the way
	networkPairs int     // functions of two variables in the network; functions made on the way follow them in arcs
	networkWides int     // wide functions in the network; functions made on the way follow them in wides
	blamedWeight int     // index in weights of the function that is looked at, whose weight a conflict raises

	lostValues      queue   // variables that lost values
	raisedCosts     queue   // variables with a unary cost that was raised from 0
	doubtfulSupport queue   // variables whose existential support may be lost
	maybeEliminable queue   // variables that lost values, functions or neighbours, and so may be eliminable
	toAssign        []int32 // variables with one value left, to be assigned
	smallRise       int64   // rises of the bound up to this are not worth the work
	highestCell     int     // no live value of an open variable has a higher unary cost
	work            int64   // entries of tables looked at
	nextLook        int64   // work at which to look at the context again
	workLimit       int64   // 0: none
	stopped         bool    // work or context has ended

	gains      []int64 // scratch: what values of the variable that gets support gain; by value, or by place in gaining
	losses     []int64 // scratch by value: unary cost moved into a function
	valueCosts []int64 // scratch by value
	gaining    []int32 // scratch: values that gain
}

// lowerBound returns the bound of this node: no assignment below it costs less.
func (s *state) lowerBound() int64 { return s.cells[s.boundCell] }

// gap returns how far the bound of this node is below upperBound. It is 0 or less if no assignment below the node costs less than
// upperBound.
func (s *state) gap() int64 { return s.upperBound - s.cells[s.boundCell] }

// reverseOf returns the number of the arc that is the same function as arc id, seen from the other variable.
func reverseOf(id int32) int32 { return id ^ 1 }

// isActive reports whether the function with this activeCell is part of the network: it was not replaced, and its variables are open.
func (s *state) isActive(activeCell int) bool { return s.cells[activeCell] != 0 }

// unaryCost returns the unary cost of value a of v.
func (s *state) unaryCost(v *variable, a int32) int64 { return s.cells[v.unaryCell+int(a)] }

// liveCount returns the number of values of v that are not removed.
func (s *state) liveCount(v *variable) int64 { return s.cells[v.liveCountCell] }

// movedOut returns the cost that was moved from the function of arc e to value a of its first variable. It is below 0 if cost was moved
// from the value into the function.
func (s *state) movedOut(e *arc, a int32) int64 { return s.cells[e.movedCell+int(a)] }

// movedOutWide returns the cost that was moved from a wide function to value a of the variable at position i of its scope. It is below 0 if
// cost was moved from the value into the function.
func (s *state) movedOutWide(w *wide, i int, a int32) int64 { return s.cells[w.movedCells[i]+int(a)] }

// pairCost returns the present cost of the function of arc id at value a of its first variable and value b of its second one: the entry
// of the table minus the costs that were moved to the two values.
func (s *state) pairCost(id, a, b int32) int64 {
	e, reverse := &s.arcs[id], &s.arcs[reverseOf(id)]
	entry := e.table[int(a)*s.vars[e.to].domainSize+int(b)]
	return entry - s.movedOut(e, a) - s.movedOut(reverse, b)
}

// mover moves costs between one function and its variables.
type mover struct{ state }

// propagator keeps the network consistent.
type propagator struct {
	mover
	pairCosts [3][]int64 // scratch of eliminations
}

// eliminator eliminates variables of few neighbours while it propagates.
type eliminator struct {
	propagator
	eliminations         []elimination // as many as the cell states are in force
	eliminatedFunctions  []int32       // numbers of arcs and wide functions, as in elimination
	eliminationCountCell int
	termBuffer           []term
	values               []int // assignment under way, by variable
}

// finder keeps the best assignments, and looks for better ones near them.
type finder struct {
	eliminator
	networkUnary [][]int64 // unary costs of the network, units

	bestNats    float64 // cost of best, nats
	best        []int
	bestCost    int64              // least cost of an assignment so far, units; of a full list the cost of its last one
	wantedCount int                // number of assignments looked for; 0 or 1: one
	bestList    []listedAssignment // of several the best ones by cost
}

// solver is the state of a search.
type solver struct {
	finder

	openBytesLimit int64
	open           openNodes
	openBytes      int64          // of the open nodes
	serial         int64          // of the last open node
	leafFloor      int64          // least bound of a leaf whose assignment costs more than the bound
	path           []decision     // buffer of searchDepthFirst
	openDecisions  []openDecision // buffer of searchDepthFirst
	lastConflict   int32          // variable of the last conflict; −1: none yet
	backtrackLimit int64          // of the next dive
	exploredWork   int64          // work when it explored last
	exploreShare   int64          // of the work, as a divisor, that exploring takes next
	freeCount      int            // variables that are free in the next neighbourhood

	decomposition *decomposition // nil: not tried yet
	isNodewise    bool           // it does not search along separators
	provenBound   int64          // no assignment costs less, by the search along separators

	stats Stats
}

// Stats count the work done.
type Stats struct {
	Nodes      int64 // decisions propagated
	Backtracks int64
	Restored   int64 // decisions propagated again for an open node
	Leaves     int64
	Decomposed int64 // nodes of the search along separators
	Work       int64 // entries of tables looked at
	Open       int   // largest number of open nodes
}

// queue is a set of variables by rank.
type queue struct {
	words []uint64
	count int
}

// newQueue returns an empty queue for ranks below n.
func newQueue(n int) queue { return queue{words: make([]uint64, (n+63)/64)} }

// newSolver returns a solver for the network before any decision. Costs are integers, in units (merged.unit), rounded down. initBounds and
// addFunctions put the numbers that decisions change into s.cells, so that pop can restore them. isPossible is false if a table forbids
// all combinations.
func newSolver(ctx context.Context, n *Network) (s *solver, isPossible bool) {
	m, isPossible := n.merge()
	if !isPossible {
		return nil, false
	}
	s = &solver{lastConflict: -1} // none yet
	s.exploreShare = firstShare   // the first search for better assignments near the best one takes 1/firstShare of the work
	s.freeCount = firstFreed      // variables that are not fixed in the first neighbourhood of the best assignment
	s.ctx, s.net = ctx, n
	s.initBounds(m)
	s.addFunctions(m)
	s.makeBuffers()
	s.numberVariables()
	return s, true
}

// initBounds sets the unit of costs and s.base, the cost of every assignment beside the tables in nats. It makes the cells of the whole
// network: its bound and its counts.
func (s *solver) initBounds(m *merged) {
	s.unit, s.forbidden = m.unit()
	constant := m.constant.Value()
	// Bounds are to stay below the true costs. So bounds of the rounding errors are subtracted, in units of 2^-50: m.roundingError for the
	// tables, and |constant| for the constant.
	s.base = constant - (m.roundingError+math.Abs(constant))*0x1p-50
	s.bestNats = math.Inf(1)
	s.upperBound, s.bestCost = s.forbidden, s.forbidden
	s.boundCell = s.newCells(1)
	s.openCountCell = s.newCells(1)
	s.eliminationCountCell = s.newCells(1)
	s.highestCell = s.newCells(1)
	s.cells[s.highestCell] = math.MaxInt64 // not known yet
	s.cells[s.openCountCell] = int64(len(s.net.Domains))
}

// addFunctions makes the variables of the network with their unary costs, and its functions. Each function starts with a weight of 1, which
// conflicts raise.
func (s *solver) addFunctions(m *merged) {
	s.vars = make([]variable, len(s.net.Domains))
	for x, d := range s.net.Domains {
		s.initVariable(x, d, m.unary[x])
	}
	for k := range m.pairs {
		f := &m.pairs[k]
		s.addPair(int32(f.Scope[0]), int32(f.Scope[1]), roundDown(f.Costs, s.unit, s.forbidden))
	}
	s.networkPairs = len(s.arcs) / 2
	for k := range m.wide {
		s.addWide(&m.wide[k])
	}
	s.networkWides = len(s.wides)
	s.weights = slices.Repeat([]int64{1}, s.networkPairs+s.networkWides+1) // the last one is for functions that the search makes
}

// makeBuffers makes the queues of propagation, s.values with a place for each variable, and buffers with a place for each value of a
// variable: s.gains, s.losses, s.valueCosts and s.gaining.
func (s *solver) makeBuffers() {
	for _, q := range []*queue{&s.lostValues, &s.raisedCosts, &s.doubtfulSupport, &s.maybeEliminable} {
		*q = newQueue(len(s.vars))
	}
	largest := 1 // domain
	for _, d := range s.net.Domains {
		largest = max(largest, d)
	}
	s.gains, s.losses, s.valueCosts = make([]int64, largest), make([]int64, largest), make([]int64, largest)
	s.gaining = make([]int32, largest)
	s.values = make([]int, len(s.vars))
}

// initVariable makes variable x with d values, all of them live, and its unary costs, which are given in nats.
func (s *finder) initVariable(x, d int, unary []float64) {
	v := &s.vars[x]
	*v = variable{domainSize: d, unaryCell: s.newCells(d), liveCountCell: s.newCells(1), stateCell: s.newCells(1)}
	v.live, v.position = make([]int32, d), make([]int32, d)
	s.networkUnary = append(s.networkUnary, roundDown(unary, s.unit, s.forbidden))
	copy(s.cells[v.unaryCell:], s.networkUnary[x])
	s.cells[v.liveCountCell] = int64(d)
	for a := range d {
		v.live[a], v.position[a] = int32(a), int32(a)
	}
}

// addWide adds a factor of three or more variables to the functions of the network, with integer costs (roundDown). The last variable of
// its scope has stride 1. For each value of each variable it has a support, 0 at first, and a cell for the cost that was moved to the
// value.
func (s *state) addWide(f *Factor) {
	w := wide{table: roundDown(f.Costs, s.unit, s.forbidden), openCountCell: s.newCells(1), activeCell: s.newCells(1)}
	s.cells[w.openCountCell], s.cells[w.activeCell] = int64(len(f.Scope)), 1
	stride := 1
	w.strides = make([]int32, len(f.Scope))
	for i := len(f.Scope) - 1; i >= 0; i-- {
		w.strides[i] = int32(stride)
		stride *= s.net.Domains[f.Scope[i]]
	}
	for _, v := range f.Scope {
		w.scope = append(w.scope, int32(v))
		w.movedCells = append(w.movedCells, s.newCells(s.net.Domains[v]))
		w.supports = append(w.supports, make([]int32, s.net.Domains[v]))
		s.vars[v].wides = append(s.vars[v].wides, int32(len(s.wides)))
	}
	s.wides = append(s.wides, w)
}

// newCells appends n cells of value 0 to s.cells, the numbers that pop restores, and returns the index of the first one.
func (s *state) newCells(n int) int {
	first := len(s.cells)
	if cap(s.cells)-first < n {
		s.cells = slices.Grow(s.cells, max(n, len(s.cells)))
	}
	s.cells = s.cells[:first+n]
	clear(s.cells[first:])
	return first
}

// addPair adds a function of two open variables, as an arc from x and the reverse arc from y. table has a row for each value of x and a
// column for each value of y.
func (s *state) addPair(x, y int32, table []int64) {
	id := s.newPair(x, y)
	s.arcs[id].table = table
	dx, dy := s.vars[x].domainSize, s.vars[y].domainSize
	transposed := s.arcs[id+1].table
	for a := range dx {
		for b := range dy {
			transposed[b*dx+a] = table[a*dy+b]
		}
	}
}

// newPair adds the two arcs of a function of x and y: the function as it is seen from x, and from y. It returns the number of the arc from
// x. The arc from y has the next number. Each arc has a table, which the caller fills, a support for each value, and a cell for the cost
// that was moved to each value. The entries of s.arcs that pop has cut off are used again, with their buffers.
func (s *state) newPair(x, y int32) int {
	id := len(s.arcs)
	if cap(s.arcs) < id+2 {
		s.arcs = slices.Grow(s.arcs, 2)
	}
	s.arcs = s.arcs[:id+2]
	activeCell := s.newCells(1)
	s.cells[activeCell] = 1
	for k, from := range [2]int32{x, y} {
		to := x + y - from // the other variable
		d := s.vars[from].domainSize
		e := &s.arcs[id+k]
		e.from, e.to, e.activeCell, e.movedCell = from, to, activeCell, s.newCells(d)
		e.table = slices.Grow(e.table[:0], d*s.vars[to].domainSize)[:d*s.vars[to].domainSize]
		e.support = slices.Grow(e.support[:0], d)[:d]
		clear(e.support)
		s.vars[from].arcs = append(s.vars[from].arcs, int32(id+k))
	}
	return id
}

// blamePairOnConflict records that propagation looks at the function of arc id: if that leads to a conflict, the function's weight rises.
// Functions that the search made share the last weight.
func (s *state) blamePairOnConflict(id int32) { s.blamedWeight = s.pairWeightIndex(id) }

// blameWideOnConflict records that propagation looks at wide function id: if that leads to a conflict, the function's weight rises.
// Functions that the search made share the last weight.
func (s *state) blameWideOnConflict(id int32) { s.blamedWeight = s.wideWeightIndex(id) }

// enqueue adds variable x to a queue of variables, which holds their ranks, unless it is there already.
func (s *state) enqueue(q *queue, x int32) { q.insert(s.vars[x].rank) }

// pairWeightIndex returns the index in s.weights of the function of arc id. Functions that the search made share the last weight.
func (s *state) pairWeightIndex(id int32) int {
	if k := int(id / 2); k < s.networkPairs {
		return k
	}
	return len(s.weights) - 1
}

// wideWeightIndex returns the index in s.weights of wide function id. Functions that the search made share the last weight.
func (s *state) wideWeightIndex(id int32) int {
	if int(id) < s.networkWides {
		return s.networkPairs + int(id)
	}
	return len(s.weights) - 1
}

// set changes a cell, and records its old value on the trail for pop.
func (s *state) set(cell int, value int64) {
	s.trail = append(s.trail, undo{cell, s.cells[cell]})
	s.cells[cell] = value
}

// push marks the present state: the next pop returns to it.
func (s *state) push() {
	s.marks = append(s.marks, mark{len(s.trail), len(s.arcs), len(s.wides), len(s.cells)})
}

// pop returns to the state at the last push: it restores the cells along the trail, and removes the functions that were added. It empties
// the queues.
func (s *state) pop() {
	m := s.marks[len(s.marks)-1]
	s.marks = s.marks[:len(s.marks)-1]

	// Cells.
	for k := len(s.trail) - 1; k >= m.trail; k-- {
		s.cells[s.trail[k].cell] = s.trail[k].old
	}
	s.trail = s.trail[:m.trail]

	// Functions that were added: they are the last ones in the lists of their variables.
	for k := len(s.arcs) - 1; k >= m.arcs; k-- {
		v := &s.vars[s.arcs[k].from]
		v.arcs = v.arcs[:len(v.arcs)-1]
	}
	for k := len(s.wides) - 1; k >= m.wides; k-- {
		for _, x := range s.wides[k].scope {
			v := &s.vars[x]
			v.wides = v.wides[:len(v.wides)-1]
		}
	}
	s.arcs, s.wides, s.cells = s.arcs[:m.arcs], s.wides[:m.wides], s.cells[:m.cells]

	s.lostValues.clear()
	s.raisedCosts.clear()
	s.doubtfulSupport.clear()
	s.maybeEliminable.clear()
	s.toAssign = s.toAssign[:0]
}

// liveValues returns the values of x that are not removed. Removing a value reorders the list.
func (s *state) liveValues(x int32) []int32 {
	v := &s.vars[x]
	return v.live[:s.liveCount(v)]
}

// isLive reports whether value a of x is not removed.
func (s *state) isLive(x, a int32) bool {
	v := &s.vars[x]
	return int64(v.position[a]) < s.liveCount(v)
}

// isOpen reports whether x is neither assigned nor eliminated.
func (s *state) isOpen(x int32) bool { return s.cells[s.vars[x].stateCell] == open }

// removeValue removes a live value of x. It returns false if x has none left.
func (s *state) removeValue(x, a int32) bool {
	v := &s.vars[x]
	remaining := int32(s.liveCount(v)) - 1
	// v.live lists all values, the live ones first: a swaps places with the last live value.
	position, last := v.position[a], v.live[remaining]
	v.live[position], v.live[remaining] = last, a
	v.position[last], v.position[a] = position, remaining
	s.set(v.liveCountCell, int64(remaining))
	s.lostValues.insert(v.rank)
	s.doubtfulSupport.insert(v.rank)
	s.maybeEliminable.insert(v.rank)
	if remaining == 1 {
		s.toAssign = append(s.toAssign, x)
	}
	return remaining > 0
}

// makeNodeConsistent moves the least unary cost of x to the bound, and removes the values of x whose unary cost plus the bound reaches
// upperBound. It returns false on a conflict: x has no value left, or the bound has reached upperBound.
func (s *state) makeNodeConsistent(x int32) bool {
	v := &s.vars[x]
	live := v.live[:s.liveCount(v)]
	if len(live) == 0 {
		return false
	}
	s.work += int64(len(live)) + 4 // table entries, the unit of work; the call itself counts as 4
	unary := s.cells[v.unaryCell : v.unaryCell+v.domainSize]

	// Move the least unary cost to the bound.
	leastCost := int64(math.MaxInt64)
	for _, a := range live {
		leastCost = min(leastCost, unary[a])
	}
	if leastCost > 0 {
		for _, a := range live {
			s.set(v.unaryCell+int(a), unary[a]-leastCost)
		}
		s.set(s.boundCell, s.lowerBound()+leastCost)
	}

	// Remove values that cost too much.
	gap := s.gap()
	if gap <= 0 {
		return false
	}
	for k := len(live) - 1; k >= 0; k-- { // backwards, since removeValue reorders the list behind k
		if a := live[k]; unary[a] >= gap && !s.removeValue(x, a) {
			return false
		}
	}
	return true
}

// removeCostlyValues removes the values of all open variables whose unary cost plus the bound reaches upperBound, and records the highest
// unary cost of the other values. It returns false on a conflict: a variable has no value left, or the bound has reached upperBound.
func (s *state) removeCostlyValues() bool {
	gap, highest := s.gap(), int64(0)
	if gap <= 0 {
		return false
	}
	for x := range s.vars {
		v := &s.vars[x]
		if !s.isOpen(int32(x)) {
			continue
		}
		unary := s.cells[v.unaryCell : v.unaryCell+v.domainSize]
		live := v.live[:s.liveCount(v)]
		s.work += int64(len(live))
		for k := len(live) - 1; k >= 0; k-- { // backwards, since removeValue reorders the list behind k
			a := live[k]
			if unary[a] < gap {
				highest = max(highest, unary[a])
			} else if !s.removeValue(int32(x), a) {
				return false
			}
		}
	}
	s.set(s.highestCell, highest)
	return true
}

// raiseUnary adds a cost to the unary cost of value a of x, and updates the highest unary cost. It queues x in raisedCosts if the unary
// cost was 0 before.
func (s *state) raiseUnary(x, a int32, cost int64) {
	v := &s.vars[x]
	cell := v.unaryCell + int(a)
	if s.cells[cell] == 0 {
		s.raisedCosts.insert(v.rank)
	}
	s.set(cell, s.cells[cell]+cost)
	if s.cells[cell] > s.cells[s.highestCell] {
		s.set(s.highestCell, s.cells[cell])
	}
}
