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
// changed (id^1), with the transposed table. With d values of to, the function's cost at (a, b) is
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
	blamed       int     // index in weights of the function that is looked at, which a conflict is blamed on

	shrunk      queue   // variables that lost values
	raised      queue   // variables whose unary costs were raised from 0
	doubtful    queue   // variables whose existential support is in doubt
	eliminable  queue   // variables that lost values, functions or neighbours, and so may be eliminable
	fixed       []int32 // variables with one value left, to be assigned
	smallRise   int64   // rises of the bound up to this are not worth the work
	highestCell int     // no live value of an open variable has a higher unary cost
	work        int64   // entries of tables looked at
	nextLook    int64   // work at which to look at the context again
	workLimit   int64   // 0: none
	stopped     bool    // work or context has ended

	gains      []int64 // scratch: what values of the variable that gets support gain; by value, or by place in gaining
	losses     []int64 // scratch by value: unary cost moved into a function
	valueCosts []int64 // scratch by value
	gaining    []int32 // scratch: values that gain
}

// lowerBound returns the bound of this node: no assignment below it costs less.
func (s *state) lowerBound() int64 { return s.cells[s.boundCell] }

// slack returns the cost above the bound from which on an assignment is of no interest.
func (s *state) slack() int64 { return s.upperBound - s.cells[s.boundCell] }

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

	bestReal float64 // cost of best, nats
	best     []int
	bestCost int64              // least cost of an assignment so far, units; of a full list the cost of its last one
	count    int                // number of assignments looked for; 0 or 1: one
	bestList []listedAssignment // of several the best ones by cost
}

// solver is the state of a search.
type solver struct {
	finder

	openBytesLimit int64
	open           openNodes
	openBytes      int64 // of the open nodes
	serial         int64 // of the last open node
	leafFloor      int64 // least bound of a leaf whose assignment costs more than the bound
	path           []step
	frames         []frame
	lastConflict   int32 // variable of the last conflict; −1: none yet
	backtrackLimit int64 // of the next dive
	exploredWork   int64 // work when it explored last
	exploreShare   int64 // of the work, as a divisor, that exploring takes next
	freeCount      int   // variables that are free in the next neighbourhood

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

// newSolver returns a solver for the network in units, without decisions. possible is false if a table forbids everything.
func newSolver(ctx context.Context, n *Network) (s *solver, possible bool) {
	m, possible := n.merge()
	if !possible {
		return nil, false
	}
	s = &solver{lastConflict: -1, exploreShare: firstShare, freeCount: firstFreed}
	s.bestReal = math.Inf(1)
	s.ctx, s.net = ctx, n
	s.unit, s.forbidden = m.unit()
	constant := m.constant.Value()
	s.base = constant - (m.roundingError+math.Abs(constant))*0x1p-50
	s.upperBound, s.bestCost = s.forbidden, s.forbidden
	s.boundCell = s.newCells(1)
	s.openCountCell = s.newCells(1)
	s.eliminationCountCell = s.newCells(1)
	s.highestCell = s.newCells(1)
	s.cells[s.highestCell] = math.MaxInt64
	s.cells[s.openCountCell] = int64(len(n.Domains))

	s.vars = make([]variable, len(n.Domains))
	for x, d := range n.Domains {
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
	s.weights = make([]int64, s.networkPairs+s.networkWides+1)
	for k := range s.weights {
		s.weights[k] = 1
	}
	for _, q := range []*queue{&s.shrunk, &s.raised, &s.doubtful, &s.eliminable} {
		*q = newQueue(len(s.vars))
	}
	largest := 1
	for _, d := range n.Domains {
		largest = max(largest, d)
	}
	s.gains, s.losses, s.valueCosts = make([]int64, largest), make([]int64, largest), make([]int64, largest)
	s.gaining = make([]int32, largest)
	s.values = make([]int, len(s.vars))
	s.numberVariables()
	return s, true
}

// initVariable sets variable x of d values, all of them live, with its unary costs in nats.
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

// addWide adds a function of three or more variables.
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

// newCells appends n cells of value 0 and returns the index of the first one.
func (s *state) newCells(n int) int {
	first := len(s.cells)
	if cap(s.cells)-first < n {
		s.cells = slices.Grow(s.cells, max(n, len(s.cells)))
	}
	s.cells = s.cells[:first+n]
	clear(s.cells[first:])
	return first
}

// addPair adds a function of two open variables. The table has a row for each value of x.
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

// newPair adds the two arcs of a function of x and y, and returns the number of the arc from x. The arc from y is the next one. Their
// tables are to be filled. It reuses the buffers of arcs that were taken back by pop.
func (s *state) newPair(x, y int32) int {
	id := len(s.arcs)
	if cap(s.arcs) < id+2 {
		s.arcs = slices.Grow(s.arcs, 2)
	}
	s.arcs = s.arcs[:id+2]
	activeCell := s.newCells(1)
	s.cells[activeCell] = 1
	for k, from := range [2]int32{x, y} {
		to := x + y - from
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

// pairWeight returns the index in weights of the function of an arc. Functions made on the way share the last one.
func (s *state) pairWeight(id int32) int {
	if k := int(id / 2); k < s.networkPairs {
		return k
	}
	return len(s.weights) - 1
}

// wideWeight returns the index in weights of a wide function. Functions made on the way share the last one.
func (s *state) wideWeight(id int32) int {
	if int(id) < s.networkWides {
		return s.networkPairs + int(id)
	}
	return len(s.weights) - 1
}

// set writes a cell and records its old value on the trail.
func (s *state) set(cell int, v int64) {
	s.trail = append(s.trail, undo{cell, s.cells[cell]})
	s.cells[cell] = v
}

// push begins a node: pop takes back all that is done from here on.
func (s *state) push() {
	s.marks = append(s.marks, mark{len(s.trail), len(s.arcs), len(s.wides), len(s.cells)})
}

// pop takes back all that was done since the last push: cells, and functions that were added. It empties the queues.
func (s *state) pop() {
	m := s.marks[len(s.marks)-1]
	s.marks = s.marks[:len(s.marks)-1]
	for k := len(s.trail) - 1; k >= m.trail; k-- {
		s.cells[s.trail[k].cell] = s.trail[k].old
	}
	s.trail = s.trail[:m.trail]
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
	s.shrunk.clear()
	s.raised.clear()
	s.doubtful.clear()
	s.eliminable.clear()
	s.fixed = s.fixed[:0]
}

// liveValues returns the values of x that are not removed. Removing a value reorders the list.
func (s *state) liveValues(x int32) []int32 {
	v := &s.vars[x]
	return v.live[:s.cells[v.liveCountCell]]
}

// isLive reports whether value a of x is not removed.
func (s *state) isLive(x, a int32) bool {
	v := &s.vars[x]
	return int64(v.position[a]) < s.cells[v.liveCountCell]
}

// isOpen reports whether x is neither assigned nor eliminated.
func (s *state) isOpen(x int32) bool { return s.cells[s.vars[x].stateCell] == open }

// removeValue removes a live value of x. It returns false if x has none left.
func (s *state) removeValue(x, a int32) bool {
	v := &s.vars[x]
	remaining := int32(s.cells[v.liveCountCell]) - 1
	// The value swaps places with the last live one. So it is the first one behind the live values then.
	place, last := v.position[a], v.live[remaining]
	v.live[place], v.live[remaining] = last, a
	v.position[last], v.position[a] = place, remaining
	s.set(v.liveCountCell, int64(remaining))
	s.shrunk.insert(v.rank)
	s.doubtful.insert(v.rank)
	s.eliminable.insert(v.rank)
	if remaining == 1 {
		s.fixed = append(s.fixed, x)
	}
	return remaining > 0
}

// makeNodeConsistent moves the least unary cost of x to the bound and removes values that no assignment of interest has. It returns false
// on a conflict: x has no value left, or the bound has reached upperBound.
func (s *state) makeNodeConsistent(x int32) bool {
	v := &s.vars[x]
	live := v.live[:s.cells[v.liveCountCell]]
	if len(live) == 0 {
		return false
	}
	s.work += int64(len(live)) + 4
	unary := s.cells[v.unaryCell : v.unaryCell+v.domainSize]
	least := int64(math.MaxInt64)
	for _, a := range live {
		least = min(least, unary[a])
	}
	if least > 0 {
		for _, a := range live {
			s.set(v.unaryCell+int(a), unary[a]-least)
		}
		s.set(s.boundCell, s.lowerBound()+least)
	}
	slack := s.slack()
	if slack <= 0 {
		return false
	}
	for k := len(live) - 1; k >= 0; k-- {
		if a := live[k]; unary[a] >= slack && !s.removeValue(x, a) {
			return false
		}
	}
	return true
}

// removeCostlyValues removes the values of all open variables whose unary cost the bound has left no room for, and updates the highest
// unary cost. It returns false on a conflict.
func (s *state) removeCostlyValues() bool {
	slack, highest := s.slack(), int64(0)
	if slack <= 0 {
		return false
	}
	for x := range s.vars {
		v := &s.vars[x]
		if s.cells[v.stateCell] != open {
			continue
		}
		unary := s.cells[v.unaryCell : v.unaryCell+v.domainSize]
		live := v.live[:s.cells[v.liveCountCell]]
		s.work += int64(len(live))
		for k := len(live) - 1; k >= 0; k-- {
			a := live[k]
			if unary[a] < slack {
				highest = max(highest, unary[a])
			} else if !s.removeValue(int32(x), a) {
				return false
			}
		}
	}
	s.set(s.highestCell, highest)
	return true
}

// raiseUnary adds a cost to the unary cost of value a of x. It queues x if that was 0 before.
func (s *state) raiseUnary(x, a int32, cost int64) {
	v := &s.vars[x]
	cell := v.unaryCell + int(a)
	if s.cells[cell] == 0 {
		s.raised.insert(v.rank)
	}
	s.set(cell, s.cells[cell]+cost)
	if s.cells[cell] > s.cells[s.highestCell] {
		s.set(s.highestCell, s.cells[cell])
	}
}
