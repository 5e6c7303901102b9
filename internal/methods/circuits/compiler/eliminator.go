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
	looks    hitRates // that the tables of a component are small enough

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

// newEliminator returns an eliminator of components along an order of the formula's variables. It must be made before clauses are learned,
// since the buckets count the solver's implications, which must be those of the formula. A component is eliminated if all its tables
// together have at most cells entries. If cells is 0, they may have denseCells entries, and a component with clauses is eliminated only if
// its price, the ratio of the steps of the elimination to those of a look at it, is at most densePrice, and never while a circuit is
// written. If cells is below 0, no component is eliminated.
func newEliminator(r *residual, t *trace, b *budget, stats *Stats, order []int, cells int) *eliminator {
	e := &eliminator{
		residual: r, buckets: newBuckets(r, order), trace: t, budget: b, stats: stats, cells: denseCells, price: densePrice,
	}
	e.tables = tabulator{residual: r, buckets: &e.buckets}
	if cells != 0 { // 0 cells if it is below 0: no table is that small
		e.cells, e.price, e.tracedPrice = float64(max(cells, 0)), math.Inf(1), math.Inf(1)
	}
	return e
}

// highestPrice returns the limit of the price of an elimination of a component with clauses. The price is the ratio of the elimination's
// steps to those of a look at the component. While a circuit is written the limit is 0 by default.
//
// Without clauses every assignment counts, so a search can leave out nothing, and takes more than an elimination. Clauses are for a
// search, unless an elimination costs little for the size of the component and no circuit is wanted: the circuit of an elimination has
// all entries of its tables, that of a search only those that the search meets.
func (e *eliminator) highestPrice() float64 {
	if e.trace.isWritten() {
		return e.tracedPrice
	}
	return e.price
}

// isWorthLook reports whether to look whether component c can be eliminated. It is false if the components before it were much too wide
// (c.wait), if c's list of variables is stale, or if components with clauses are not eliminated. If looks at components of its size are
// mostly in vain, one in denseShare is looked at all the same, by its digest.
func (e *eliminator) isWorthLook(c component) bool {
	areExcluded := e.cells == 0 || c.hasClauses() && e.highestPrice() == 0
	if c.stale || c.wait > 0 || areExcluded {
		return false
	}
	return !e.looks.areLow(c.size(), denseShare) || c.key[0]%denseShare == 0
}

// sum returns the sum of a component by elimination, along buckets: a bucket is a variable with the factors that are multiplied before it
// is summed out. ok is false if the tables are too large or their numbers too far apart, if a search is cheaper, or if the sum is 0, of
// which a search finds the reason. Then wait is the number of further decisions before the next look: with fewer the tables will still be
// too large.
func (e *eliminator) sum(ctx context.Context, c content) (sum amount, wait int32, ok bool) {
	look := int64(denseLook * (len(c.vars) + len(c.clauses) + len(c.tables))) // steps that a look at the component takes
	e.residual.solver.Work += look
	defer func() { e.looks.count(int32(len(c.vars)), ok) }()

	// Is the elimination worth it?
	if !e.buckets.gather(c) { // a variable or a scope is too large
		return amount{}, denseNever, false // wait so long that no look follows
	}
	extraSteps := int64(0) // for each entry
	if e.trace.isWritten() {
		extraSteps = denseEdges // to write it to the circuit
	}
	if excess := e.buckets.measure(e.cells, extraSteps); excess > 0 {
		return amount{}, 2 * int32(excess), false // 2 decisions for each power of two that a table is too large
	}
	if e.buckets.logical && float64(e.buckets.steps) > e.highestPrice()*float64(look) { // it has clauses, and a search is cheaper
		return amount{}, 0, false
	}

	e.tables.reset()
	if sum, ok = e.sumAll(ctx); ok {
		e.stats.Dense++
	}
	return sum, 0, ok
}

// sumAll sums the variables of the buckets out, one after the other. Bucket i belongs to variable i, since a component's variables are
// numbered in the order of their elimination; scopes have these numbers, too. The sum over a bucket's variable is a message m times
// 2^exponent. The message goes to the bucket of its first variable, which is summed out later; without variables it is a factor of the
// result. The powers of two are factors of the result in any case. If a circuit is written, traceOut does the same with nodes. ok is false
// if the search has to end, if the sum is 0, or if numbers are too far apart.
func (e *eliminator) sumAll(ctx context.Context) (sum amount, ok bool) {
	sum = amount{scaled.One, circuit.One}
	for i := range e.buckets.vars {
		e.residual.solver.Work += e.buckets.list[i].steps
		if !e.budget.mayGoOn(ctx) {
			return sum, false
		}
		m, exponent, ok := e.tables.sumOut(i)
		if !ok {
			return sum, false
		}
		e.trace.stopIfFull() // a circuit that is full is given up: isWritten is false from then on
		if e.trace.isWritten() && !e.traceOut(i, &m, &sum) {
			return sum, false
		}
		if len(m.scope) == 0 {
			sum.number = sum.number.Mul(scaled.Make(m.values[0], exponent))
			continue
		}
		sum.number = sum.number.Mul(scaled.Make(1, exponent))
		next := &e.buckets.list[m.scope[0]] // scopes ascend: m.scope[0] is the variable of m that is summed out first
		next.messages = append(next.messages, m)
	}
	return sum, true
}
