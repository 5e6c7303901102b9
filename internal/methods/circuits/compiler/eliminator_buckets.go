package compiler

// Buckets: which factors of a component meet which variable, and how large the tables over them are.
//
// Variables follow the order of the tree decomposition. Clauses and tables belong to the first of
// their variables; its table is over all variables of those factors, and the sum over it belongs to
// the next of these variables. Source: R. Dechter, Bucket elimination, Artificial Intelligence 113
// (1999).

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
)

// buckets are the buckets of a component. Its variables are numbered in the order.
type buckets struct {
	residual *residual
	position []int32 // by variable of the formula: in the order; −1 if it had a value at the root
	implied  []int32 // by literal: the number of its implications from the formula itself

	vars    []int32   // by number: the variable of the formula
	values  [][]int32 // by number: the open values
	number  []int32   // by variable of the formula
	list    []bucket  // by number
	steps   int64     // that it takes to sum them all out
	logical bool      // clauses belong to some of them

	// Scratch memory, reused from one component to the next.
	open  []int32 // the open values of all variables
	scope []int32
}

// bucket is a variable with its clauses, tables and messages.
type bucket struct {
	scope    []int32 // numbers of variables, ascending; the first one is its own
	pairs    [][2]lit
	clauses  []int32
	tables   []tableSlice
	messages []message
	incoming int64 // messages that will come
	steps    int64 // that its table takes
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

const (
	denseValues = 64 // open values of a variable, at most
	denseScope  = 24 // variables of a clause or table, at most
)

// newBuckets returns the buckets of eliminations along an order of the formula's variables: by variable, the factors that are multiplied
// before it is summed out. They have no factors yet. It must be called before clauses are learned: b.implied counts the implications of the
// formula itself, which come first in the solver's lists. The order goes from the leaves of the tree decomposition to its middle. Decisions
// go the other way, so that the parts of an elimination that they do not touch stay the same and enter the circuit once.
func newBuckets(r *residual, order []int) buckets {
	n := len(r.problem.f.Domains)
	b := buckets{
		residual: r, position: slices.Repeat([]int32{-1}, n), implied: make([]int32, len(r.solver.Implies)), number: make([]int32, n),
	}
	for i, v := range order {
		b.position[v] = int32(i)
	}
	for l, list := range r.solver.Implies {
		b.implied[l] = int32(len(list))
	}
	return b
}

// reset makes a bucket that of variable number, without factors. It keeps the memory of its lists.
func (b *bucket) reset(number int32) {
	b.scope = append(b.scope[:0], number)
	b.pairs = b.pairs[:0]
	b.clauses = b.clauses[:0]
	b.tables = b.tables[:0]
	b.messages = b.messages[:0]
	b.incoming = 0
}

// gather puts the clauses and tables of a component into buckets. A bucket is a variable with the factors that are multiplied before it is
// summed out; a clause or table goes into the bucket of its variable that is summed out first. ok is false if a variable has more than
// denseValues open values, or a clause or table has more than denseScope variables.
func (b *buckets) gather(c content) (ok bool) {
	if !b.gatherVariables(c.vars) {
		return false
	}
	b.gatherPairs(c.vars)
	r := b.residual
	for _, k := range c.clauses { // of three literals and more
		if len(r.clauses[k]) > denseScope {
			return false
		}
		target := b.placeClause(r.clauses[k])
		target.clauses = append(target.clauses, k)
	}
	for _, t := range c.tables {
		if len(r.tables[t.table].table.scope) > denseScope {
			return false
		}
		target := b.placeTable(t.table)
		target.tables = append(target.tables, t)
	}
	return true
}

// gatherPairs puts the formula's clauses of two literals about the Boolean variables vars into buckets, each clause once. A bucket is a
// variable with the factors that are multiplied before it is summed out. The solver keeps a clause ¬l ∨ m as two implications: m is in
// Implies[l], and ¬l in Implies[¬m]. The first implied[l] literals of Implies[l] are of the formula, learned ones follow.
func (b *buckets) gatherPairs(vars []int32) {
	r := b.residual
	for _, v := range vars {
		for _, l := range [2]lit{positive(v), negative(v)} {
			for _, m := range r.solver.Implies[l][:b.implied[l]] {
				if m > l.Not() && r.value[m] == 0 { // the first of the two implications, with m open
					pair := [2]lit{l.Not(), m}
					target := b.placeClause(pair[:])
					target.pairs = append(target.pairs, pair)
				}
			}
		}
	}
}

// gatherVariables finds the variables of the formula that the Boolean variables vars encode. It numbers them in the order of elimination,
// and gives each its open values and an empty bucket, a list of the factors to multiply before it is summed out. ok is false if a variable
// has more than denseValues open values, or is not in the order.
func (b *buckets) gatherVariables(vars []int32) (ok bool) {
	b.vars, b.values, b.open = b.vars[:0], b.values[:0], b.open[:0]
	last := int32(-1) // Boolean variables of one variable mostly follow each other
	for _, v := range vars {
		if owner := b.residual.problem.formulaVariable[v]; owner != last {
			b.vars = append(b.vars, owner)
			last = owner
		}
	}
	slices.SortFunc(b.vars, func(u, v int32) int { return int(b.position[u] - b.position[v]) })
	b.vars = slices.Compact(b.vars)

	for len(b.list) < len(b.vars) {
		b.list = append(b.list, bucket{})
	}
	for i, v := range b.vars {
		b.number[v] = int32(i)
		open := b.openValues(v)
		if len(open) > denseValues || b.position[v] < 0 {
			return false
		}
		b.values = append(b.values, open)
		b.list[i].reset(int32(i))
	}
	return true
}

// twoValues are the values of a variable with two of them.
var twoValues = []int32{0, 1}

// openValues returns the values that variable v of the formula, which is open, may still have. The list is in the memory of b.open. A
// variable of two values has one Boolean variable; one of more values has a Boolean variable for each value, which is false for an
// excluded value.
func (b *buckets) openValues(v int32) []int32 {
	p := b.residual.problem
	if p.booleanCount(v) == 1 {
		return twoValues
	}
	start := len(b.open)
	for a := range p.booleanCount(v) {
		if b.residual.value[positive(p.firstBoolean[v]+a)] == 0 {
			b.open = append(b.open, a)
		}
	}
	return b.open[start:len(b.open):len(b.open)]
}

// placeClause returns the bucket of a clause: the list of factors of the clause's open variable that is eliminated first. It writes the
// numbers of the clause's open variables to b.scope, which placeScope adds to the scope of the bucket.
func (b *buckets) placeClause(c []lit) *bucket {
	b.scope = b.scope[:0]
	for _, l := range c {
		if b.residual.value[l] == 0 {
			b.scope = append(b.scope, b.number[b.residual.problem.formulaVariable[l.Variable()]])
		}
	}
	return b.placeScope()
}

// placeTable returns the bucket of table t: the list of factors of the table's open variable that is eliminated first. It writes the
// numbers of the table's open variables to b.scope, which placeScope adds to the scope of the bucket.
func (b *buckets) placeTable(t int32) *bucket {
	b.scope = b.scope[:0]
	for _, v := range b.residual.tables[t].table.scope {
		if b.residual.valueOf(v) < 0 {
			b.scope = append(b.scope, b.number[v])
		}
	}
	return b.placeScope()
}

// placeScope returns the bucket of the first variable in b.scope, whose numbers follow the order of elimination, and adds b.scope to its
// scope.
func (b *buckets) placeScope() *bucket {
	first := &b.list[slices.Min(b.scope)]
	first.scope = append(first.scope, b.scope...)
	return first
}

// measure passes the scope of each bucket's sum on to the bucket that gets it as a message, and counts the steps of all sums. A bucket is a
// variable with the factors that are multiplied to a table before it is summed out. An entry of the table takes a step for each of its
// factors, and 2 + extraSteps more: for the variable's weight and the sum, and for what the caller does with the entry.
//
// excess is 0 if all tables together have at most limit entries. If a single table has more, excess is log2(entries of the table / limit),
// at least 1, and the count is incomplete. If only all tables together have more, it is 1. b.logical tells whether any bucket has a clause.
func (b *buckets) measure(limit float64, extraSteps int64) (excess float64) {
	total := 0.0 // entries of all tables
	b.steps, b.logical = 0, false
	for i := range b.vars {
		current := &b.list[i]
		slices.Sort(current.scope) // complete: the buckets before have passed theirs on
		current.scope = slices.Compact(current.scope)
		cells := 1.0 // entries of the bucket's table
		for _, j := range current.scope {
			cells *= float64(len(b.values[j]))
		}
		if total += cells; cells > limit {
			return max(math.Log2(cells/limit), 1)
		}

		factors := int64(len(current.tables) + len(current.clauses) + len(current.pairs))
		current.steps = int64(cells) * (2 + current.incoming + factors + extraSteps)
		b.steps += current.steps
		b.logical = b.logical || len(current.clauses)+len(current.pairs) > 0

		if len(current.scope) > 1 { // scope[0] is summed out here; the sum goes to the bucket of scope[1]
			next := &b.list[current.scope[1]]
			next.scope = append(next.scope, current.scope[1:]...)
			next.incoming++ // a message more to multiply by
		}
	}
	if total > limit {
		return 1
	}
	return 0
}
