package compiler

// Elimination: a component that is narrow is summed one variable after the other, in tables over
// its neighbours.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// eliminator sums components that are narrow.
type eliminator struct {
	residual *residual
	buckets  buckets   // of the component at hand
	tables   tabulator // of the buckets
	trace    *trace
	budget   *budget
	stats    *Stats
	looks    odds // that the tables of a component are small enough

	cells       float64 // entries of all tables of a component, at most; 0: none is eliminated
	price       float64 // the largest ratio of the steps of eliminating a component to a look at it, if clauses are left in it
	tracedPrice float64 // the same while a circuit is written
}

// denseLook is the number of steps of looking at a variable or clause of a component. If less than one of denseShare looks at
// components of a size finds a narrow one, one of denseShare is looked at.
// Measured with splitsShare.
const (
	denseLook  = 8
	denseShare = 16
)

// denseCells is the maximum number of entries of all tables of an eliminated component: the work
// between two looks at the budget.
// Chosen.
const denseCells = 1 << 16

// densePrice is the largest ratio of the steps of eliminating a component to a look at it, if
// clauses are left in it.
// Measured in counted work, 10^6 steps of weighted formulas 051, 053, 055, 059 (go test -run
// PublishedCounts ./internal/methods/circuits/compiler -args -simplify -models …): without 35, 11, 227, 246; at 4
// 39, 13, 263, 282; at 16 43, 1, 226, 335; at 64 54, 1, 292, 456; at 256 102, 1, 296, 456. 011, of
// few conflicts, takes 1442 without and 739 at 256.
const densePrice = 16

// denseNever is the number of decisions without a look after one at a variable or a scope that is too large.
const denseNever = 1 << 21

// denseEdges is the number of extra steps of an entry that is written down as a product of a
// circuit.
// Estimated: some 100 ns.
const denseEdges = 8

// newEliminator returns an eliminator along an order of the formula's variables, before anything is learned. The cells are Options'.
func newEliminator(r *residual, t *trace, b *budget, stats *Stats, order []int, cells int) *eliminator {
	e := &eliminator{
		residual: r, buckets: newBuckets(r, order), trace: t, budget: b, stats: stats, cells: denseCells, price: densePrice,
	}
	e.tables = tabulator{residual: r, buckets: &e.buckets}
	if cells != 0 {
		e.cells, e.price, e.tracedPrice = float64(max(cells, 0)), math.Inf(1), math.Inf(1)
	}
	return e
}

// highestPrice returns the price at present.
//
// If no clause is left every assignment counts, and search has nothing to leave out: it takes more than elimination does. Clauses are
// for search, unless elimination costs little for the size of the component and no circuit is
// wanted: an elimination's circuit has all entries of its tables, a search's only the entries it
// meets.
func (e *eliminator) highestPrice() float64 {
	if e.trace.isWritten() {
		return e.tracedPrice
	}
	return e.price
}

// isWorthLook reports whether a look at c may find that it is narrow: components above it were not too wide by far, and looks at others of
// its size are not in vain, or it is the one of many that is looked at all the same.
func (e *eliminator) isWorthLook(c component) bool {
	if c.stale || c.wait > 0 || e.cells == 0 || c.hasClauses() && e.highestPrice() == 0 {
		return false
	}
	return !e.looks.poor(c.size(), denseShare) || c.key[0]%denseShare == 0
}

// sum returns the sum of a component, unless its tables are too large or too far from one size, a search is worth more, or it may
// be 0: search finds out why. Otherwise wait is the number of further decisions that cannot change
// the verdict.
func (e *eliminator) sum(ctx context.Context, c content) (sum amount, wait int32, ok bool) {
	look := int64(denseLook * (len(c.vars) + len(c.clauses) + len(c.tables)))
	e.residual.solver.Work += look
	defer func() { e.looks.count(int32(len(c.vars)), ok) }()
	if !e.buckets.gather(c) {
		return amount{}, denseNever, false
	}
	extra := int64(0)
	if e.trace.isWritten() {
		extra = denseEdges
	}
	if excess := e.buckets.measure(e.cells, extra); excess > 0 {
		return amount{}, 2 * int32(excess), false
	}
	if e.buckets.logical && float64(e.buckets.steps) > e.highestPrice()*float64(look) {
		return amount{}, 0, false
	}
	e.tables.reset()
	if sum, ok = e.sumAll(ctx); ok {
		e.stats.Dense++
	}
	return sum, 0, ok
}

// sumAll sums the variables of the buckets out, one after the other.
func (e *eliminator) sumAll(ctx context.Context) (sum amount, ok bool) {
	sum = amount{scaled.One, circuit.One}
	for i := range e.buckets.vars {
		e.residual.solver.Work += e.buckets.list[i].steps
		if !e.budget.lasts(ctx) {
			return sum, false
		}
		m, exponent, ok := e.tables.sumOut(i)
		if !ok {
			return sum, false
		}
		if e.trace.stopIfFull(); e.trace.isWritten() && !e.traceOut(i, &m, &sum) {
			return sum, false
		}
		if len(m.scope) == 0 {
			sum.number = sum.number.Mul(scaled.Make(m.values[0], exponent))
			continue
		}
		sum.number = sum.number.Mul(scaled.Make(1, exponent))
		next := &e.buckets.list[m.scope[0]]
		next.messages = append(next.messages, m)
	}
	return sum, true
}
