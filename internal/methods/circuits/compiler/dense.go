package compiler

// Elimination: a component that is narrow is summed one variable after the other, in tables over
// its neighbours.
//
// Variables follow the order of the tree decomposition. Clauses and tables belong to the first of
// their variables; its table is over all variables of those factors, and the sum over it belongs to
// the next of these variables. Source: R. Dechter, Bucket elimination, Artificial Intelligence 113
// (1999).

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/pkg/scaled"
)

const (
	denseRange = 900 // powers of two that the factors of an entry may span: below it no digit is lost
	denseScope = 24  // variables of a clause or table that is looked at
)

// denseAxes is more than the variables of a table with at most 2^24 entries.
const denseAxes = 32

// eliminator holds the state shared by all eliminations.
type eliminator struct {
	place []int32 // by variable of the formula: in the order; −1 for those that had a value at the root
	own   []int32 // by literal: the number of its implications from the formula itself

	// Of the component at hand, by number in the order: its variables, their open values, their
	// factors.
	vars    []int32
	values  [][]int32
	local   []int32 // by variable of the formula
	buckets []bucket
	price   int64 // steps that it takes to sum them out
	logical bool  // clauses belong to them

	// Scratch memory, reused from one elimination to the next.
	ints   []int32
	floats []float64
	own64  [64]float64
	x      [denseAxes]int
	steps  [denseAxes][]int32
}

// bucket is a variable with its clauses, tables and messages.
type bucket struct {
	scope    []int32 // numbers of variables, ascending; the first one is its own
	pairs    [][2]lit
	clauses  []int32
	tables   []tableSlice
	messages []message
	incoming int64 // messages that will come
	price    int64 // steps
}

// reset empties a bucket and keeps its memory.
func (b *bucket) reset(own int32) {
	b.scope = append(b.scope[:0], own)
	b.pairs = b.pairs[:0]
	b.clauses = b.clauses[:0]
	b.tables = b.tables[:0]
	b.messages = b.messages[:0]
	b.incoming = 0
}

// message is a sum over a variable: a table over the others of its bucket, the first one fastest.
type message struct {
	scope  []int32
	values []float64
	span   float64 // log2 of the largest by the smallest entry above 0

	// Of the circuit that is traced: entry k is nodes[k] times factors[k] times a power of two that all have in common.
	nodes   []circuit.Node
	factors []float64
}

// takeInts returns n zeros.
func (e *eliminator) takeInts(n int) []int32 {
	at := len(e.ints)
	e.ints = slices.Grow(e.ints, n)[:at+n]
	out := e.ints[at : at+n : at+n]
	clear(out)
	return out
}

// takeFloats returns n numbers of arbitrary value.
func (e *eliminator) takeFloats(n int) []float64 {
	at := len(e.floats)
	e.floats = slices.Grow(e.floats, n)[:at+n]
	return e.floats[at : at+n : at+n]
}

// ready takes the order of a decomposition, before anything is learned: from its leaves to the
// middle, since decisions go the other way, and parts that do not meet them enter the circuit once.
func (e *eliminator) ready(p *problem, implies [][]lit, order []int) {
	e.place = make([]int32, len(p.f.Domains))
	e.local = make([]int32, len(p.f.Domains))
	for v := range e.place {
		e.place[v] = -1
	}
	for i, v := range order {
		e.place[v] = int32(i)
	}
	e.own = make([]int32, len(implies))
	for l := range implies {
		e.own[l] = int32(len(implies[l]))
	}
}

// denseLook is the number of steps of looking at a variable or clause of a component. Where less than one of denseShare looks at
// components of a size finds a narrow one, one of denseShare is looked at.
// Measured with splitsShare.
const (
	denseLook  = 8
	denseShare = 16
)

// narrow reports whether c is worth a look: components above it were not too wide by far, and looks at others of its size are not in vain,
// or it is the one of many that is looked at all the same.
func (s *search) narrow(c component) bool {
	if s.trace.isWritten() && s.o.cells == 0 && (c.from.clauses < c.to.clauses || c.from.tables == c.to.tables) {
		return false // it is logical
	}
	return s.o.cells >= 0 && c.wait <= 0 && (!s.looks.poor(c.size(), denseShare) || c.key[0]%denseShare == 0)
}

// denseCells is the maximum number of entries of all tables of an eliminated component: the work
// between two looks at the budget.
// Chosen.
const denseCells = 1 << 16

// cellsMost is the maximum number of entries in a component's tables.
func (s *search) cellsMost() float64 {
	if s.o.cells > 0 {
		return float64(s.o.cells)
	}
	return denseCells
}

// densePrice is the largest ratio of the steps of eliminating a component to a look at it, where
// clauses are left in it.
// Measured in counted work, 10^6 steps of weighted formulas 051, 053, 055, 059 (go test -run
// PublishedCounts ./internal/methods/circuits/compiler -args -simplify -models …): without 35, 11, 227, 246; at 4
// 39, 13, 263, 282; at 16 43, 1, 226, 335; at 64 54, 1, 292, 456; at 256 102, 1, 296, 456. 011, of
// few conflicts, takes 1442 without and 739 at 256.
const densePrice = 16

// eliminate returns the sum of a component, unless its tables are too large or too far from one size, a search is worth more, or it may
// be 0: search finds out why. Otherwise wait is the number of further decisions that cannot change
// the verdict.
//
// Where no clause is left every assignment counts, and search has nothing to leave out: it takes more than elimination does. Clauses are
// for search, but where elimination costs little for the size of the component and no circuit is
// wanted: an elimination's circuit has all entries of its tables, a search's only the entries it
// meets.
func (s *search) eliminate(ctx context.Context, c component) (sum amount, wait int32, ok bool) {
	e := &s.dense
	look := denseLook * int64(c.size()+c.to.clauses-c.from.clauses+c.to.tables-c.from.tables)
	s.solver.Work += look
	defer func() { s.looks.count(c.size(), ok) }()
	if e.place == nil || !s.gather(c) {
		return amount{}, 1 << 20, false
	}
	if excess := e.measure(s.cellsMost(), s.trace.isWritten()); excess > 0 {
		return amount{}, int32(excess), false
	}
	if e.logical && s.o.cells == 0 && (s.trace.isWritten() || e.price > densePrice*look) {
		return amount{}, 0, false
	}
	if sum, ok = s.sumAll(ctx); ok {
		s.stats.Dense++
	}
	return sum, 0, ok
}

// sumAll sums the variables of the buckets out, one after the other.
func (s *search) sumAll(ctx context.Context) (sum amount, ok bool) {
	e := &s.dense
	sum = amount{scaled.One, circuit.One}
	for i := range e.vars {
		s.solver.Work += e.buckets[i].price
		if !s.budget.lasts(ctx) {
			return sum, false
		}
		m, exponent, fine := s.sumOut(i)
		if !fine {
			return sum, false
		}
		if s.trace.stopIfFull(); s.trace.isWritten() && !s.traceOut(i, &m, &sum) {
			return sum, false
		}
		if len(m.scope) == 0 {
			sum.number = sum.number.Mul(scaled.Make(m.values[0], exponent))
			continue
		}
		sum.number = sum.number.Mul(scaled.Make(1, exponent))
		to := &e.buckets[m.scope[0]]
		to.messages = append(to.messages, m)
	}
	return sum, true
}

// gather sets up the buckets of a component. False where a variable has more than 64 open values or a scope is large.
func (s *search) gather(c component) bool {
	e := &s.dense
	if !s.gatherVariables(c) {
		return false
	}
	for _, b := range s.splitter.stack.of(c).vars {
		for _, l := range [2]lit{lit(2 * b), lit(2*b + 1)} {
			for _, m := range s.solver.Implies[l][:e.own[l]] {
				if m > l.Not() && s.residual.value[m] == 0 {
					pair := [2]lit{l.Not(), m}
					at := s.place(pair[:])
					at.pairs = append(at.pairs, pair)
				}
			}
		}
	}
	for _, k := range s.splitter.stack.of(c).clauses {
		if len(s.residual.clauses[k]) > denseScope {
			return false
		}
		at := s.place(s.residual.clauses[k])
		at.clauses = append(at.clauses, k)
	}
	for _, t := range s.splitter.stack.of(c).tables {
		if len(s.residual.problem.tables[t.table].scope) > denseScope {
			return false
		}
		at := s.placeTable(t)
		at.tables = append(at.tables, t)
	}
	return true
}

// gatherVariables lists the variables of a component in the order, with an empty bucket each.
func (s *search) gatherVariables(c component) bool {
	e := &s.dense
	e.vars, e.values, e.ints, e.floats = e.vars[:0], e.values[:0], e.ints[:0], e.floats[:0]
	last := int32(-1)
	for _, b := range s.splitter.stack.of(c).vars {
		if v := s.residual.problem.owner[b]; v != last {
			e.vars = append(e.vars, v)
			last = v
		}
	}
	slices.SortFunc(e.vars, func(u, v int32) int { return int(e.place[u] - e.place[v]) })
	e.vars = slices.Compact(e.vars)
	for len(e.buckets) < len(e.vars) {
		e.buckets = append(e.buckets, bucket{})
	}
	for i, v := range e.vars {
		e.local[v] = int32(i)
		open := s.openValues(v)
		if len(open) > 64 || e.place[v] < 0 {
			return false
		}
		e.values = append(e.values, open)
		e.buckets[i].reset(int32(i))
	}
	return true
}

// both are the values of a variable with two of them.
var both = []int32{0, 1}

// openValues are the values that v may still have.
func (s *search) openValues(v int32) []int32 {
	if s.residual.problem.count(v) == 1 {
		return both
	}
	open := s.dense.takeInts(int(s.residual.problem.count(v)))[:0]
	for a := range s.residual.problem.count(v) {
		if s.residual.value[2*(s.residual.problem.first[v]+a)] == 0 {
			open = append(open, a)
		}
	}
	return open
}

// place adds the scope of a clause to the bucket of its first open variable, and returns that.
func (s *search) place(c []lit) *bucket {
	e := &s.dense
	first := int32(len(e.vars))
	for _, l := range c {
		if s.residual.value[l] == 0 {
			first = min(first, e.local[s.residual.problem.owner[l.Variable()]])
		}
	}
	b := &e.buckets[first]
	for _, l := range c {
		if s.residual.value[l] == 0 {
			b.scope = append(b.scope, e.local[s.residual.problem.owner[l.Variable()]])
		}
	}
	return b
}

// placeTable is place for a table.
func (s *search) placeTable(t tableSlice) *bucket {
	e := &s.dense
	first := int32(len(e.vars))
	scope := s.residual.problem.tables[t.table].scope
	for _, v := range scope {
		if s.residual.valueOf(v) < 0 {
			first = min(first, e.local[v])
		}
	}
	b := &e.buckets[first]
	for _, v := range scope {
		if s.residual.valueOf(v) < 0 {
			b.scope = append(b.scope, e.local[v])
		}
	}
	return b
}

// denseEdges is the number of extra steps of an entry that is written down as a product of a
// circuit.
// Estimated: some 100 ns.
const denseEdges = 8

// measure follows the scopes of all sums, prices them, and returns log2 of the factor by which the
// tables exceed the limit; 0 where they fit.
func (e *eliminator) measure(limit float64, traced bool) float64 {
	total := 0.0
	e.price, e.logical = 0, false
	for i := range e.vars {
		b := &e.buckets[i]
		slices.Sort(b.scope)
		b.scope = slices.Compact(b.scope)
		cells := 1.0
		for _, j := range b.scope {
			cells *= float64(len(e.values[j]))
		}
		if total += cells; cells > limit {
			return max(math.Log2(cells/limit), 1)
		}
		b.price = int64(cells) * (2 + b.incoming + int64(len(b.tables)+len(b.clauses)+len(b.pairs)))
		if traced {
			b.price += int64(cells) * denseEdges
		}
		e.price += b.price
		e.logical = e.logical || len(b.clauses)+len(b.pairs) > 0
		if len(b.scope) > 1 {
			next := &e.buckets[b.scope[1]]
			next.scope = append(next.scope, b.scope[1:]...)
			next.incoming++
		}
	}
	if total > limit {
		return 1
	}
	return 0
}

// sumOut makes the table of bucket i and sums its variable out. The entries of the message are at most 2, times 2^exponent; it is not
// fine where all are 0, or where the factors span too many powers of two.
func (s *search) sumOut(i int) (m message, exponent int64, fine bool) {
	e := &s.dense
	b := &e.buckets[i]
	size, span := 1, 0.0
	for _, j := range b.scope {
		size *= len(e.values[j])
	}
	table := e.takeFloats(size)
	own, spread := s.ownWeights(i)
	span += spread
	for at := range table {
		table[at] = own[at%len(own)]
	}
	for _, in := range b.messages {
		span += in.span
		e.multiply(table, b.scope, e.offsets(b.scope, in.scope), 0, in.values, 1)
	}
	for _, t := range b.tables {
		span += 2 * s.residual.tables[t.table].span // both of the entry and of its divisor
	}
	if span > denseRange {
		return message{}, 0, false
	}
	s.multiplyTables(table, b)
	s.excludeAll(table, b)
	// The sums take the place of the entries: a sum is written behind the entries still to be
	// read.
	m = message{scope: b.scope[1:], values: table[:size/len(own)]}
	for at := range m.values {
		sum := 0.0
		for _, x := range table[at*len(own):][:len(own)] {
			sum += x
		}
		m.values[at] = sum
	}
	e.floats = e.floats[:len(e.floats)-size+len(m.values)]
	exponent, fine = m.normalise()
	return m, exponent, fine
}

// normalise divides a message by the power of two of its largest entry, and returns that; false where all entries are 0.
func (m *message) normalise() (exponent int64, fine bool) {
	largest, smallest := 0.0, math.Inf(1)
	for _, x := range m.values {
		largest = max(largest, x)
		if x > 0 {
			smallest = min(smallest, x)
		}
	}
	if largest == 0 {
		return 0, false
	}
	by := math.Ilogb(largest)
	scale := math.Ldexp(1, -by)
	for at := range m.values {
		m.values[at] *= scale
	}
	m.span = float64(by-math.Ilogb(smallest)) + 1
	return int64(by), true
}

// ownWeights are the weights of the open values of variable i, and log2 of the largest by the smallest of them.
func (s *search) ownWeights(i int) ([]float64, float64) {
	e := &s.dense
	weights := e.own64[:len(e.values[i])]
	low, high := math.Inf(1), 0.0
	for k, a := range e.values[i] {
		w := s.residual.problem.weights[s.residual.problem.is(e.vars[i], int(a))]
		if w.Exp > denseRange || w.Exp < -denseRange {
			return weights, math.Inf(1)
		}
		weights[k] = w.Float64()
		low, high = min(low, weights[k]), max(high, weights[k])
	}
	return weights, math.Abs(math.Log2(low)) + math.Abs(math.Log2(high))
}
