package compiler

// Tracing: the sums and products that the search goes through, written down as a circuit.

import (
	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// amount is a number, and the node of a circuit that it is the value of. Without tracing the node means nothing.
type amount struct {
	number scaled.Number
	node   circuit.Node
}

// tracer writes the circuit, while the builder has room. A product is a suffix of factors until it is made.
type tracer struct {
	builder *circuit.Builder // nil: nothing is written
	of      func(v, a int) circuit.Node
	leaves  []circuit.Node // by literal: λ of its value times the tables of its variable alone; noNode until it is asked for
	factors []circuit.Node
}

const noNode circuit.Node = -1

func newTracer(p *problem, o Options) tracer {
	t := tracer{builder: o.Builder, of: o.Leaf}
	if o.Builder != nil {
		if t.of == nil {
			t.of = o.Builder.Leaf
		}
		t.leaves = make([]circuit.Node, 2*p.booleans())
		for l := range t.leaves {
			t.leaves[l] = noNode
		}
	}
	return t
}

// tracing reports whether the circuit is written; once its builder is full it is not any more.
func (s *search) tracing() bool {
	if s.builder != nil && s.builder.Full() {
		s.builder = nil
	}
	return s.builder != nil
}

// times multiplies the product under way by a node.
func (s *search) times(n circuit.Node) {
	if s.builder != nil {
		s.factors = append(s.factors, n)
	}
}

// timesNumber multiplies the product under way by a number.
func (s *search) timesNumber(x scaled.Number) {
	if s.builder != nil && x != scaled.One {
		s.factors = append(s.factors, s.builder.Number(x))
	}
}

// leaf is the factor that a true literal brings. That a value of many is not taken brings none.
func (s *search) leaf(l lit) circuit.Node {
	v := l.Variable()
	if s.p.many[v] && !l.Positive() {
		return circuit.One
	}
	if s.leaves[l] == noNode {
		owner := s.p.owner[v]
		a := int(v - s.p.first[owner])
		if !s.p.many[v] {
			a = int(1 - l&1)
		}
		s.leaves[l] = s.builder.Product(s.of(int(owner), a), s.builder.Number(s.p.unary[l]))
	}
	return s.leaves[l]
}

// multiplied ends the product that began at a length of factors.
func (s *search) multiplied(from int) circuit.Node {
	if s.builder == nil {
		return circuit.Zero
	}
	n := s.builder.Product(s.factors[from:]...)
	s.factors = s.factors[:from]
	return n
}

// added is the sum of two nodes.
func (s *search) added(a, b circuit.Node) circuit.Node {
	if s.builder == nil {
		return circuit.Zero
	}
	return s.builder.Sum(a, b)
}

// timesConstants multiplies by the factors common to all assignments: the scale, tables without
// variables, and variables of one value.
func (s *search) timesConstants() {
	if s.builder == nil {
		return
	}
	s.timesNumber(s.p.f.Scale.Mul(s.p.constant))
	for v, d := range s.p.f.Domains {
		if d == 1 {
			s.times(s.of(v, 0))
		}
	}
}
