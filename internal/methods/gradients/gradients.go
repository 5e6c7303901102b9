// Package gradients is the family of derivatives of Z by the numbers of the cores: one elimination and one pass back over it, slice by
// slice where the tables do not fit the memory. It joins packages lower, einsum and wide.
package gradients

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// EntryBytes is the memory of one derivative: a number with an exponent, its place, its copy in float64.
const EntryBytes = 48

// Prepared is a conditioned network, written with its own numbers.
type Prepared struct {
	net     *btn.Network
	given   *lower.Parametric
	floats  *sumproduct.Expression // given in float64
	divided []int64                // by table: exponent of the power of two taken out of it
	wanted  []bool                 // by table: it has parameters
	entries int                    // parameters of all cores
}

// Entries counts the parameters of a network. Errors: fault.OverBudget for more than query.MaxGradients.
func Entries(net *btn.Network) (int, error) {
	total := 0
	for _, n := range lower.ParameterSizes(net) {
		if total += n; total > query.MaxGradients {
			return 0, fault.New(fault.OverBudget,
				"gradients: the model has more than %d parameters (entries of its factors)", query.MaxGradients)
		}
	}
	return total, nil
}

// Prepare writes a network, conditioned on its query's evidence, as an expression of its parameters.
// The same network gives the same bits. Errors: from lower.BuildParameters; fault.OverBudget for
// more than query.MaxGradients parameters.
func Prepare(ctx context.Context, net *btn.Network) (*Prepared, error) {
	p := &Prepared{net: net}
	var err error
	if p.entries, err = Entries(net); err != nil {
		return nil, err
	}
	if p.given, err = lower.BuildParameters(ctx, net); err != nil {
		return nil, err
	}
	p.floats, p.divided = p.given.Floats()
	p.wanted = make([]bool, len(p.given.Sources))
	for t, from := range p.given.Sources {
		p.wanted[t] = from.Core >= 0
	}
	return p, nil
}

// Hypergraph returns the shape of the contracted tables.
func (p *Prepared) Hypergraph() contractionorder.Hypergraph { return p.floats.Hypergraph() }

// Sizes counts the parameters of every core.
func (p *Prepared) Sizes() []int { return p.given.Sizes }

// bytes is the memory of derivatives beside the tables.
func (p *Prepared) bytes() float64 { return EntryBytes * float64(p.entries) }

// fits says whether a plan's order and slices are those of the network under this evidence.
func (p *Prepared) fits(c *AdjointPlan) error {
	count := int64(1)
	seen := map[int]bool{}
	for _, i := range c.Slices {
		if i < 0 || i >= len(p.floats.Dims) || seen[i] {
			return fault.Wrap(fault.Internal, fmt.Errorf("gradients: slices over index %d", i))
		}
		seen[i] = true
		count *= int64(p.floats.Dims[i])
		if count > c.Count {
			break
		}
	}
	if count != c.Count {
		return fault.Wrap(fault.Internal,
			fmt.Errorf("gradients: the plan has %d slices, the network %d: it is another one", c.Count, count))
	}
	return nil
}

// Signed reports whether terms of Z, and so of its derivatives, have both signs.
func (p *Prepared) Signed() bool { return p.given.Signed() }
