// Package circuits is the family of exact answers by logic: a network with many zeros as an arithmetic circuit, which serves any
// evidence in time linear in its edges, or as cubes, the parts of a search that contract-workers share. Circuits are compiled by package
// logic.
package circuits

import (
	"context"

	"github.com/basetensor/basetensor/internal/logic/circuit"
	"github.com/basetensor/basetensor/internal/network/btn"
)

// Parts that are arithmetic circuits, or searches for them.

// Circuit is B as an arithmetic circuit over the values of the variables, with the query's weights: one pass gives Z, one
// more all marginals.
type Circuit struct {
	Of *circuit.Compiled `msgpack:"-"`
	// Ask is empty for a part that Z is the sum of. Otherwise it says which assignments are to be found, MPE or samples, and the part's
	// Z is 0.
	Ask btn.Ask `msgpack:"ask,omitempty"`
}

// Class implements Part.
func (*Circuit) Class() btn.Class { return btn.ClassCircuit }

// Common implements Sharer.
func (p *Circuit) Common() any { return &p.Of }

// Fits implements Part: the circuit is one, and its first variables are the network's.
func (p *Circuit) Fits(n *btn.Network) error {
	switch {
	case p.Of == nil:
		return btn.Misfit("it has no circuit")
	case n.Variables == nil:
		return btn.Misfit("the network has no variables whose values have weights")
	case p.Ask != "" && p.Ask != btn.AskMPE && p.Ask != btn.AskSamples:
		return btn.Misfit("it asks for %.40q", p.Ask)
	}
	c, err := p.Of.Circuit(context.Background())
	if err != nil {
		return btn.Misfit("%w", err)
	}
	if c.Variables() < len(n.Variables) {
		return btn.Misfit("the circuit has %d variables, the network %d", c.Variables(), len(n.Variables))
	}
	for v, own := range n.Variables {
		if d := c.Offset(v+1) - c.Offset(v); d != own.Domain {
			return btn.Misfit("variable %d has %d values in the circuit, %d in the network", v, d, own.Domain)
		}
	}
	return nil
}

// Class implements Part.
func (*Cube) Class() btn.Class { return btn.ClassCube }

// Common implements Sharer.
func (p *Cube) Common() any { return &p.Of }

// Fits implements Part. Whether the literals are some of the network's formula is for the contraction to say.
func (p *Cube) Fits(n *btn.Network) error {
	switch {
	case p.Of == nil:
		return btn.Misfit("it has no split")
	case n.Variables == nil:
		return btn.Misfit("the network has no variables whose values have weights")
	case p.At < 0 || p.At >= len(p.Of.Cubes):
		return btn.Misfit("it is cube %d of %d", p.At, len(p.Of.Cubes))
	case p.Ask != "" && p.Ask != btn.AskMPE && p.Ask != btn.AskSamples:
		return btn.Misfit("it asks for %.40q", p.Ask)
	case p.Of.Work < 0 || p.Of.Bytes < 0:
		return btn.Misfit("its budgets are %d steps and %d bytes", p.Of.Work, p.Of.Bytes)
	}
	return nil
}

// Cube is B under one of the partial assignments that a search is split into; Z is the sum over the cubes (Lemma 5: they exclude each
// other and leave nothing out). Its worker simplifies the residual formula, and searches.
type Cube struct {
	Of *Split `msgpack:"-"`
	At int    `msgpack:"at"` // which of its cubes
	// Ask is as in Circuit: the answer is the best over all cubes, or drawn from all of them.
	Ask btn.Ask `msgpack:"ask,omitempty"`
}

// Split is the data shared by the cubes of a search.
type Split struct {
	// Cubes are literals (formula.Literal) of the network's formula that hold together.
	Cubes [][]int32 `msgpack:"cubes"`
	// Order is an elimination order of variables of that formula, which guides the search of every cube.
	Order []int32 `msgpack:"order,omitempty"`
	// Given says that the formula is the network's under the query's evidence; else the network's as it is.
	Given bool `msgpack:"given,omitempty"`
	// Functional is as of Compiled: of the circuits of all cubes.
	Functional bool `msgpack:"functional,omitempty"`

	// Counted says that a query for Z alone needs no circuits: it is the first that the model was asked.
	Counted bool  `msgpack:"counted,omitempty"`
	Work    int64 `msgpack:"work"`  // steps of the search of one cube, at most
	Bytes   int64 `msgpack:"bytes"` // of a cube's circuit, at most: a larger one is not kept
}

// KeepsRange implements btn.Ranged.
func (*Circuit) KeepsRange() bool { return true }

// KeepsRange implements btn.Ranged.
func (*Cube) KeepsRange() bool { return true }
