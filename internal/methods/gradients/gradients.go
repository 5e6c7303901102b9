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

// ParameterBytes is the memory of one derivative: a number with an exponent, its place, its copy in float64.
const ParameterBytes = 48

// Prepared is a network, conditioned on its query's evidence, as tables whose entries are the numbers of its factors.
type Prepared struct {
	net            *btn.Network
	parametric     *lower.Parametric      // the tables, and which parameters their entries are
	floats         *sumproduct.Expression // parametric in float64
	tableExponents []int64                // by table: the power of two that was taken out of it in floats
	hasParameters  []bool                 // by table: its entries are parameters
	parameterCount int                    // of all cores
}

// ParameterCount returns the number of parameters of a network: the numbers of its factors. Errors: fault.OverBudget for more than
// query.MaxGradients.
func ParameterCount(net *btn.Network) (int, error) {
	total := 0
	for _, n := range lower.ParameterSizes(net) {
		if total += n; total > query.MaxGradients {
			return 0, fault.New(fault.OverBudget,
				"gradients: the model has more than %d parameters (entries of its factors)", query.MaxGradients)
		}
	}
	return total, nil
}

// Prepare returns a network, which is conditioned on its query's evidence, as tables of its parameters, the numbers of its factors. A table
// that comes from a core has its number as source. p.floats are the tables in float64: entries of table t times 2^tableExponents[t] are
// those of p.parametric. The same network gives the same bits. Errors: from lower.BuildParameters; fault.OverBudget for more than
// query.MaxGradients parameters.
func Prepare(ctx context.Context, net *btn.Network) (*Prepared, error) {
	p := &Prepared{net: net}
	var err error
	if p.parameterCount, err = ParameterCount(net); err != nil {
		return nil, err
	}
	if p.parametric, err = lower.BuildParameters(ctx, net); err != nil {
		return nil, err
	}
	p.floats, p.tableExponents = p.parametric.WithoutExponents()
	p.hasParameters = make([]bool, len(p.parametric.Sources))
	for t, source := range p.parametric.Sources {
		p.hasParameters[t] = source.Core >= 0
	}
	return p, nil
}

// Hypergraph returns the shape of the contracted tables.
func (p *Prepared) Hypergraph() contractionorder.Hypergraph { return p.floats.Hypergraph() }

// ParameterCounts returns the number of parameters of every core.
func (p *Prepared) ParameterCounts() []int { return p.parametric.Sizes }

// bytes returns the memory of the derivatives by all parameters, without the tables of a contraction.
func (p *Prepared) bytes() float64 { return ParameterBytes * float64(p.parameterCount) }

// checkPlan returns an error if a plan slices indices that the tables do not have, or if its number of slices is not the product of their
// dimensions.
func (p *Prepared) checkPlan(c *AdjointPlan) error {
	count := int64(1)
	isSliced := map[int]bool{}
	for _, i := range c.Slices {
		if i < 0 || i >= len(p.floats.Dims) || isSliced[i] {
			return fault.Wrap(fault.Internal, fmt.Errorf("gradients: slices over index %d", i))
		}
		isSliced[i] = true
		count *= int64(p.floats.Dims[i])
		if count > c.Count { // too many already; further factors might overflow
			break
		}
	}
	if count != c.Count {
		return fault.Wrap(fault.Internal,
			fmt.Errorf("gradients: the plan has %d slices, the network %d: it is another one", c.Count, count))
	}
	return nil
}

// HasNegativeEntries reports whether an entry of the tables, or their scale, is below 0, so that terms of Z and of its derivatives may
// cancel.
func (p *Prepared) HasNegativeEntries() bool { return p.parametric.Signed() }
