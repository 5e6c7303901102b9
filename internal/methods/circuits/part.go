// Package circuits is the family of exact answers by logic: a network with many zeros as an arithmetic circuit, which serves any
// evidence in time linear in its edges, or as one search that sums Z. Circuits are compiled by package logic.
package circuits

import (
	"context"

	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/internal/network/btn"
)

// Circuit is B as an arithmetic circuit over the values of the variables, with the query's weights: one pass gives Z, one
// more all marginals.
type Circuit struct {
	Of *circuit.Compiled `msgpack:"-"`
	// Ask is empty for a part that Z is the sum of. Otherwise it says which assignments are to be found, MPE or samples, and the part's
	// Z is 0.
	Ask btn.Ask `msgpack:"ask,omitempty"`
}

// Class implements btn.Part.
func (*Circuit) Class() btn.Class { return btn.ClassCircuit }

// About implements btn.Part. The part finds assignments if Ask is set, and differentiates if the numbers of the cores are weights.
func (p *Circuit) About() btn.About {
	return btn.About{Finds: p.Ask, KeepsRange: true, Differentiates: p.Of != nil && p.Of.Parametric, Shared: &p.Of}
}

// Fits implements btn.Part: it returns an error if the circuit cannot be decoded, or if its first variables do not have the domains of the
// network's variables.
func (p *Circuit) Fits(n *btn.Network) error {
	switch {
	case p.Of == nil:
		return btn.Misfit("it has no circuit")
	case n.Variables == nil:
		return btn.Misfit("the network has no variables whose values have weights")
	case p.Ask != "" && p.Ask != btn.AskMPE && p.Ask != btn.AskSamples:
		return btn.Misfit("it asks for %.40q", p.Ask)
	}
	c, err := p.Of.Circuit(context.Background()) // decodes it; btn.Part gives no context
	if err != nil {
		return btn.Misfit("%w", err)
	}
	if c.Variables() < len(n.Variables) {
		return btn.Misfit("the circuit has %d variables, the network %d", c.Variables(), len(n.Variables))
	}
	for v, variable := range n.Variables {
		if d := c.FirstWeight(v+1) - c.FirstWeight(v); d != variable.Domain {
			return btn.Misfit("variable %d has %d values in the circuit, %d in the network", v, d, variable.Domain)
		}
	}
	return nil
}
