package compiler

// The trace: the sums and products that the search goes through, written down as a circuit.

import (
	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// amount is a number, and the node of a circuit that it is the value of. The node means nothing if no circuit is written.
type amount struct {
	number scaled.Number
	node   circuit.Node
}

// trace writes a circuit while its builder has room.
type trace struct {
	problem *problem
	builder *circuit.Builder // nil: no circuit is written
	leafOf  func(v, a int) circuit.Node
	leaves  []circuit.Node // by literal: λ of its value times the tables of its variable alone; noNode until it is asked for
	factors []circuit.Node // of all products under way: those of the last one are a suffix
}

// noNode stands for a leaf that is not made yet.
const noNode circuit.Node = -1

// newTrace returns the trace that writes the circuit of the search to the builder of the options. Without a builder it writes nothing.
// o.Leaf returns the circuit's node of a literal; by default it is the builder's Leaf. The nodes of literals are kept in t.leaves, and
// begin as noNode: not asked for yet.
func newTrace(p *problem, o Options) *trace {
	t := &trace{problem: p, builder: o.Builder, leafOf: o.Leaf}
	if o.Builder == nil {
		return t
	}
	if t.leafOf == nil {
		t.leafOf = o.Builder.Leaf
	}
	t.leaves = make([]circuit.Node, 2*p.booleans()) // by literal
	for l := range t.leaves {
		t.leaves[l] = noNode
	}
	return t
}

// isWritten reports whether a circuit is written.
func (t *trace) isWritten() bool { return t.builder != nil }

// stopIfFull ends the writing of the circuit if its builder is full.
func (t *trace) stopIfFull() {
	if t.isWritten() && t.builder.IsFull() {
		t.builder = nil
	}
}

// weight returns the weight of a true literal as a number and as a node of the circuit.
func (t *trace) weight(l lit) amount {
	result := amount{number: t.problem.weights[l]}
	if t.isWritten() {
		result.node = t.leaf(l)
	}
	return result
}

// leaf returns the node of a true literal. If the literal states that a variable of the formula has a value, the node is the leaf of that
// value times the unary weight, the entries of the tables over the variable alone. If it states that a variable of more than two values
// has not a certain value, the node is One: the variable's leaf comes with the literal of the value that it has. A node is made once and
// kept in t.leaves.
func (t *trace) leaf(l lit) circuit.Node {
	v := l.Variable()
	if t.problem.isOneOfMany[v] && !l.IsPositive() {
		return circuit.One
	}
	if t.leaves[l] == noNode {
		owner := t.problem.formulaVariable[v]
		a := int(v - t.problem.firstBoolean[owner])
		if !t.problem.isOneOfMany[v] { // two values: value 1 is the positive literal, which is even
			a = int(1 - l&1)
		}
		t.leaves[l] = t.builder.Product(t.leafOf(int(owner), a), t.builder.Number(t.problem.unary[l]))
	}
	return t.leaves[l]
}

// sum returns a + b, as a number and as a node.
func (t *trace) sum(a, b amount) amount {
	result := amount{number: a.number.Add(b.number)}
	if t.isWritten() {
		result.node = t.builder.Sum(a.node, b.node)
	}
	return result
}

// product is a product to which factors are added. Others may begin after it and end before it does.
type product struct {
	trace       *trace
	number      scaled.Number
	firstFactor int // its index in trace.factors
}

// product begins a product, which is 1.
func (t *trace) product() product { return product{t, scaled.One, len(t.factors)} }

// times multiplies the product by an amount.
func (p *product) times(a amount) {
	p.number = p.number.Mul(a.number)
	if p.trace.isWritten() {
		p.trace.factors = append(p.trace.factors, a.node)
	}
}

// timesNumber multiplies the product by a number.
func (p *product) timesNumber(x scaled.Number) {
	p.number = p.number.Mul(x)
	p.trace.pushNumber(x)
}

// pushNumber multiplies the node of the product that began last by a number. Its number does not change.
func (t *trace) pushNumber(x scaled.Number) {
	if t.isWritten() && x != scaled.One {
		t.factors = append(t.factors, t.builder.Number(x))
	}
}

// end ends the product and returns it, as a number and as a node.
func (p *product) end() amount {
	result := amount{number: p.number}
	if p.trace.isWritten() {
		result.node = p.trace.builder.Product(p.trace.factors[p.firstFactor:]...)
		p.drop()
	}
	return result
}

// drop ends the product without a value: it takes its factors back.
func (p *product) drop() { p.trace.factors = p.trace.factors[:p.firstFactor] }

// pushConstants multiplies the node of the product that began last by the factors that all assignments share: the scale, the tables
// without variables, and the leaves of variables of one value. The factors of products wait in t.factors until a product ends.
func (t *trace) pushConstants() {
	if !t.isWritten() {
		return
	}
	t.pushNumber(t.problem.f.Scale.Mul(t.problem.constant))
	for v, d := range t.problem.f.Domains {
		if d == 1 {
			t.factors = append(t.factors, t.leafOf(v, 0))
		}
	}
}
