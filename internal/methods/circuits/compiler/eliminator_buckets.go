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

// newBuckets takes the order of a decomposition, before anything is learned: from its leaves to the
// middle, since decisions go the other way, and parts that do not meet them enter the circuit once.
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

// reset empties a bucket and keeps its memory.
func (b *bucket) reset(number int32) {
	b.scope = append(b.scope[:0], number)
	b.pairs = b.pairs[:0]
	b.clauses = b.clauses[:0]
	b.tables = b.tables[:0]
	b.messages = b.messages[:0]
	b.incoming = 0
}

// gather sets up the buckets of a component. It is not ok if a variable has too many open values or a scope is too large.
func (b *buckets) gather(c content) (ok bool) {
	if !b.gatherVariables(c.vars) {
		return false
	}
	r := b.residual
	for _, v := range c.vars {
		for _, l := range [2]lit{lit(2 * v), lit(2*v + 1)} {
			for _, m := range r.solver.Implies[l][:b.implied[l]] {
				if m > l.Not() && r.value[m] == 0 {
					pair := [2]lit{l.Not(), m}
					target := b.placeClause(pair[:])
					target.pairs = append(target.pairs, pair)
				}
			}
		}
	}
	for _, k := range c.clauses {
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

// gatherVariables numbers the variables of a component, and gives each an empty bucket.
func (b *buckets) gatherVariables(vars []int32) (ok bool) {
	b.vars, b.values, b.open = b.vars[:0], b.values[:0], b.open[:0]
	last := int32(-1)
	for _, v := range vars {
		if owner := b.residual.problem.owner[v]; owner != last {
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

// both are the values of a variable with two of them.
var both = []int32{0, 1}

// openValues returns the values that v may still have.
func (b *buckets) openValues(v int32) []int32 {
	p := b.residual.problem
	if p.count(v) == 1 {
		return both
	}
	start := len(b.open)
	for a := range p.count(v) {
		if b.residual.value[2*(p.first[v]+a)] == 0 {
			b.open = append(b.open, a)
		}
	}
	return b.open[start:len(b.open):len(b.open)]
}

// placeClause adds the scope of a clause to its bucket, and returns that.
func (b *buckets) placeClause(c []lit) *bucket {
	b.scope = b.scope[:0]
	for _, l := range c {
		if b.residual.value[l] == 0 {
			b.scope = append(b.scope, b.number[b.residual.problem.owner[l.Variable()]])
		}
	}
	return b.placeScope()
}

// placeTable adds the scope of a table to its bucket, and returns that.
func (b *buckets) placeTable(t int32) *bucket {
	b.scope = b.scope[:0]
	for _, v := range b.residual.tables[t].table.scope {
		if b.residual.valueOf(v) < 0 {
			b.scope = append(b.scope, b.number[v])
		}
	}
	return b.placeScope()
}

// placeScope adds a scope to the bucket of its first variable, and returns that.
func (b *buckets) placeScope() *bucket {
	first := &b.list[slices.Min(b.scope)]
	first.scope = append(first.scope, b.scope...)
	return first
}

// measure follows the scopes of all sums and counts their steps. Each entry of a table takes extra steps in addition to those of its
// factors. The excess is 0 if all tables together have at most limit entries. If one table has more, the excess is log2 of the factor by
// which it does, at least 1. If only all together have more, the excess is 1.
func (b *buckets) measure(limit float64, extra int64) (excess float64) {
	total := 0.0
	b.steps, b.logical = 0, false
	for i := range b.vars {
		current := &b.list[i]
		slices.Sort(current.scope)
		current.scope = slices.Compact(current.scope)
		cells := 1.0
		for _, j := range current.scope {
			cells *= float64(len(b.values[j]))
		}
		if total += cells; cells > limit {
			return max(math.Log2(cells/limit), 1)
		}
		factors := int64(len(current.tables) + len(current.clauses) + len(current.pairs))
		current.steps = int64(cells) * (2 + current.incoming + factors + extra)
		b.steps += current.steps
		b.logical = b.logical || len(current.clauses)+len(current.pairs) > 0
		if len(current.scope) > 1 { // scope[0] is summed out here; the sum goes to the bucket of scope[1]
			next := &b.list[current.scope[1]]
			next.scope = append(next.scope, current.scope[1:]...)
			next.incoming++
		}
	}
	if total > limit {
		return 1
	}
	return 0
}
