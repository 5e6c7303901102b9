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

// variable of the network. Fields that change with the node are cells of solver.mem.
type variable struct {
	d     int
	unary int     // cell of the first unary cost
	size  int     // cell of the number of live values
	state int     // cell
	rank  int     // place in the order of directional consistency
	live  []int32 // all values, the live ones first
	place []int32 // of a value in live
	arcs  []int32 // from this variable, those made last at the end
	wide  []int32 // wide functions over it
	best  int32   // value that had existential support last
}

// arc is a function of two variables, seen from one of them; the one seen from the other is at the position with the last bit changed.
// cost(a, b) = table[a·d + b] − mem[moved+a] − mem[other's moved + b].
type arc struct {
	from, to int32
	moved    int // cell of the first cost moved to from
	on       int // cell: 1 while both variables are open
	table    []int64
	support  []int32 // by value of from: where it had support last
}

// wide is a function of three or more variables.
// cost(t) = table[t] − Σ_i mem[moved[i] + t_i].
type wide struct {
	scope   []int32
	stride  []int32
	moved   []int
	left    int // cell: number of variables not assigned
	on      int // cell
	table   []int64
	support [][]int32
}

type undo struct {
	cell int
	old  int64
}

type mark struct{ trail, arcs, wides, cells int }

// state is a network under the decisions of a node, and what undoes them.
type state struct {
	ctx  context.Context
	net  *Network
	unit float64
	base float64 // cost of nothing, nats: a lower bound is base + unit·cost

	mem   []int64
	trail []undo
	marks []mark
	vars  []variable
	arcs  []arc
	wides []wide
	order []int32 // variables by rank

	forbidden int64
	ub        int64 // assignments of this cost or more are of no interest
	openVars  int   // cell: number of open variables
	bound     int   // cell: the lower bound of this node

	weight []int64 // of arcs by pair, and of wide functions: conflicts
	wideAt int     // index in weight of the first wide function
	nWide  int     // wide functions of the network
	blame  int

	lost, raised, check queue // values lost; unary costs raised; existential support in doubt
	loose               queue // values, functions or neighbours lost: variables that may be eliminated
	fixed               []int32
	small               int64 // rises of the bound up to this are not worth the work
	high                int   // cell: no live value of an open variable costs more
	work, look          int64 // entries of tables looked at; when to look at the context
	most                int64 // of work
	stopped             bool

	p, e, u []int64 // scratch by value
	hit     []int32
}

// mover moves costs between one function and its variables.
type mover struct{ state }

// propagator keeps the network consistent.
type propagator struct {
	mover
	joins [3][]int64
}

// eliminator takes variables of few neighbours out while it propagates.
type eliminator struct {
	propagator
	gone   []elimination // as far as mem[goneCount]
	refs   []int32
	nGone  int // cell
	list   []term
	values []int
}

// finder keeps the best assignments, and looks for better ones near them.
type finder struct {
	eliminator
	given [][]int64 // unary costs of the network

	bestReal float64
	best     []int
	bestCost int64
	count    int      // assignments looked for
	top      []listed // of several the best ones by cost: where so many are there ub is the cost of the last
}

// solver is the state of a search.
type solver struct {
	finder

	room         int64 // bytes of open nodes
	open         openNodes
	used, serial int64
	floor        int64 // least bound of a leaf that costs more
	path         []step
	frames       []frame
	last         int32 // variable of the last conflict
	limit        int64 // of the next dive, in backtracks
	explored     int64 // work when it explored last
	share        int64 // of the work, as a divisor, that exploring takes next
	freed        int   // variables of the next neighbourhood

	parts      *decomposition // nil: not tried yet
	isNodewise bool           // it does not go along separators
	below      int64          // no assignment costs less

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

func newQueue(n int) queue { return queue{words: make([]uint64, (n+63)/64)} }

// newSolver writes the network in units. possible is false where a table forbids everything.
func newSolver(ctx context.Context, n *Network) (s *solver, possible bool) {
	m, possible := n.merge()
	if !possible {
		return nil, false
	}
	s = &solver{last: -1, share: firstShare, freed: firstFreed}
	s.bestReal = math.Inf(1)
	s.ctx, s.net = ctx, n
	s.unit, s.forbidden = m.unit()
	constant := m.constant.Value()
	s.base = constant - (m.size+math.Abs(constant))*0x1p-50
	s.ub, s.bestCost = s.forbidden, s.forbidden
	s.bound = s.cells(1)
	s.openVars = s.cells(1)
	s.nGone = s.cells(1)
	s.high = s.cells(1)
	s.mem[s.high] = math.MaxInt64
	s.mem[s.openVars] = int64(len(n.Domains))

	widest := 1
	s.vars = make([]variable, len(n.Domains))
	for x, d := range n.Domains {
		widest = max(widest, d)
		v := &s.vars[x]
		*v = variable{d: d, unary: s.cells(d), size: s.cells(1), state: s.cells(1), live: make([]int32, d), place: make([]int32, d)}
		s.given = append(s.given, rounded(m.unary[x], s.unit, s.forbidden))
		copy(s.mem[v.unary:], s.given[x])
		s.mem[v.size] = int64(d)
		for a := range d {
			v.live[a], v.place[a] = int32(a), int32(a)
		}
	}
	for k := range m.pairs {
		f := &m.pairs[k]
		s.addArc(int32(f.Scope[0]), int32(f.Scope[1]), rounded(f.Costs, s.unit, s.forbidden))
	}
	s.wideAt = len(s.arcs) / 2
	for k := range m.wide {
		f := &m.wide[k]
		w := wide{table: rounded(f.Costs, s.unit, s.forbidden), left: s.cells(1), on: s.cells(1)}
		s.mem[w.left], s.mem[w.on] = int64(len(f.Scope)), 1
		step := 1
		w.stride = make([]int32, len(f.Scope))
		for i := len(f.Scope) - 1; i >= 0; i-- {
			w.stride[i] = int32(step)
			step *= n.Domains[f.Scope[i]]
		}
		for _, v := range f.Scope {
			w.scope = append(w.scope, int32(v))
			w.moved = append(w.moved, s.cells(n.Domains[v]))
			w.support = append(w.support, make([]int32, n.Domains[v]))
			s.vars[v].wide = append(s.vars[v].wide, int32(len(s.wides)))
		}
		s.wides = append(s.wides, w)
	}
	s.nWide = len(s.wides)
	s.weight = make([]int64, s.wideAt+s.nWide+1)
	for k := range s.weight {
		s.weight[k] = 1
	}
	for _, q := range []*queue{&s.lost, &s.raised, &s.check, &s.loose} {
		*q = newQueue(len(s.vars))
	}
	s.p, s.e, s.u = make([]int64, widest), make([]int64, widest), make([]int64, widest)
	s.hit = make([]int32, widest)
	s.values = make([]int, len(s.vars))
	s.rank()
	return s, true
}

// cells makes n cells of value 0.
func (s *state) cells(n int) int {
	at := len(s.mem)
	if cap(s.mem)-at < n {
		s.mem = slices.Grow(s.mem, max(n, len(s.mem)))
	}
	s.mem = s.mem[:at+n]
	clear(s.mem[at:])
	return at
}

// addArc adds a function of two open variables, its table by x first.
func (s *state) addArc(x, y int32, table []int64) {
	at := s.newPair(x, y)
	s.arcs[at].table = table
	dx, dy := s.vars[x].d, s.vars[y].d
	back := s.arcs[at+1].table
	for a := range dx {
		for b := range dy {
			back[b*dx+a] = table[a*dy+b]
		}
	}
}

// newPair adds two arcs whose tables are to be filled, with the buffers of earlier ones that are gone.
func (s *state) newPair(x, y int32) int {
	at := len(s.arcs)
	if cap(s.arcs) < at+2 {
		s.arcs = slices.Grow(s.arcs, 2)
	}
	s.arcs = s.arcs[:at+2]
	on := s.cells(1)
	s.mem[on] = 1
	for k, v := range [2]int32{x, y} {
		to := x + y - v
		d := s.vars[v].d
		a := &s.arcs[at+k]
		a.from, a.to, a.on, a.moved = v, to, on, s.cells(d)
		a.table = slices.Grow(a.table[:0], d*s.vars[to].d)[:d*s.vars[to].d]
		a.support = slices.Grow(a.support[:0], d)[:d]
		clear(a.support)
		s.vars[v].arcs = append(s.vars[v].arcs, int32(at+k))
	}
	return at
}

// pair is the index in weight of an arc.
func (s *state) pair(a int32) int {
	if k := int(a / 2); k < s.wideAt {
		return k
	}
	return len(s.weight) - 1 // of all arcs made on the way
}

// group is the index in weight of a wide function.
func (s *state) group(id int32) int {
	if int(id) < s.nWide {
		return s.wideAt + int(id)
	}
	return len(s.weight) - 1
}

func (s *state) set(cell int, v int64) {
	s.trail = append(s.trail, undo{cell, s.mem[cell]})
	s.mem[cell] = v
}

func (s *state) push() {
	s.marks = append(s.marks, mark{len(s.trail), len(s.arcs), len(s.wides), len(s.mem)})
}

// pop takes back all that was done since the last push.
func (s *state) pop() {
	m := s.marks[len(s.marks)-1]
	s.marks = s.marks[:len(s.marks)-1]
	for k := len(s.trail) - 1; k >= m.trail; k-- {
		s.mem[s.trail[k].cell] = s.trail[k].old
	}
	s.trail = s.trail[:m.trail]
	for k := len(s.arcs) - 1; k >= m.arcs; k-- {
		v := &s.vars[s.arcs[k].from]
		v.arcs = v.arcs[:len(v.arcs)-1]
	}
	for k := len(s.wides) - 1; k >= m.wides; k-- {
		for _, x := range s.wides[k].scope {
			v := &s.vars[x]
			v.wide = v.wide[:len(v.wide)-1]
		}
	}
	s.arcs, s.wides, s.mem = s.arcs[:m.arcs], s.wides[:m.wides], s.mem[:m.cells]
	s.lost.empty()
	s.raised.empty()
	s.check.empty()
	s.loose.empty()
	s.fixed = s.fixed[:0]
}

// alive are the live values of x.
func (s *state) alive(x int32) []int32 {
	v := &s.vars[x]
	return v.live[:s.mem[v.size]]
}

func (s *state) isLive(x, a int32) bool {
	v := &s.vars[x]
	return int64(v.place[a]) < s.mem[v.size]
}

func (s *state) isOpen(x int32) bool { return s.mem[s.vars[x].state] == open }

// remove takes a value out. It reports false where none is left.
func (s *state) remove(x, a int32) bool {
	v := &s.vars[x]
	n := int32(s.mem[v.size]) - 1
	at := v.place[a]
	last := v.live[n]
	v.live[at], v.live[n] = last, a
	v.place[last], v.place[a] = at, n
	s.set(v.size, int64(n))
	s.lost.add(v.rank)
	s.check.add(v.rank)
	s.loose.add(v.rank)
	if n == 1 {
		s.fixed = append(s.fixed, x)
	}
	return n > 0
}

// settle takes the least unary cost of x to the bound and removes values that cost too much. It reports false for a conflict.
func (s *state) settle(x int32) bool {
	v := &s.vars[x]
	live := v.live[:s.mem[v.size]]
	if len(live) == 0 {
		return false
	}
	s.work += int64(len(live)) + 4
	unary := s.mem[v.unary : v.unary+v.d]
	least := int64(math.MaxInt64)
	for _, a := range live {
		least = min(least, unary[a])
	}
	if least > 0 {
		for _, a := range live {
			s.set(v.unary+int(a), unary[a]-least)
		}
		s.set(s.bound, s.mem[s.bound]+least)
	}
	room := s.ub - s.mem[s.bound]
	if room <= 0 {
		return false
	}
	for k := len(live) - 1; k >= 0; k-- {
		if a := live[k]; unary[a] >= room && !s.remove(x, a) {
			return false
		}
	}
	return true
}

// sweep removes values that cost too much since the bound has risen.
func (s *state) sweep() bool {
	room, high := s.ub-s.mem[s.bound], int64(0)
	if room <= 0 {
		return false
	}
	for x := range s.vars {
		v := &s.vars[x]
		if s.mem[v.state] != open {
			continue
		}
		unary := s.mem[v.unary : v.unary+v.d]
		live := v.live[:s.mem[v.size]]
		s.work += int64(len(live))
		for k := len(live) - 1; k >= 0; k-- {
			a := live[k]
			if unary[a] < room {
				high = max(high, unary[a])
			} else if !s.remove(int32(x), a) {
				return false
			}
		}
	}
	s.set(s.high, high)
	return true
}

// raise adds to a unary cost, and says that x was raised where it was 0.
func (s *state) raise(x, a int32, by int64) {
	v := &s.vars[x]
	cell := v.unary + int(a)
	if s.mem[cell] == 0 {
		s.raised.add(v.rank)
	}
	s.set(cell, s.mem[cell]+by)
	if s.mem[cell] > s.mem[s.high] {
		s.set(s.high, s.mem[cell])
	}
}
