package circuit

// The pass down: derivatives, and marginals from them.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Marginals returns Z and, for each weight w by its number, w·∂Z/∂w. Each weight belongs to one value of a variable, and w·∂Z/∂w is the
// share of Z with that value: the sum of the terms of Z in which the variable has it. The shares of all values of a variable add up to Z.
// One pass up and one down; linear time, 32 bytes for each node of the circuit. Errors as of Evaluate.
func (c *Circuit) Marginals(ctx context.Context, w Weights) (scaled.Number, []scaled.Number, error) {
	p, err := c.passUpAndDown(ctx, w)
	if err != nil {
		return scaled.Number{}, nil, err
	}
	defer p.release()
	shares := make([]scaled.Number, c.leaves())
	for i := range shares {
		shares[i] = p.values[i].times(p.down[i]).scaled()
	}
	return c.rootValue(p).scaled(), shares, nil
}

// Derivatives returns Z and ∂Z/∂w, by number of the weights. Derivatives by weights of 0 are right, too, as nothing is divided by them.
// Cost and errors as of Marginals.
func (c *Circuit) Derivatives(ctx context.Context, w Weights) (scaled.Number, []scaled.Number, error) {
	p, err := c.passUpAndDown(ctx, w)
	if err != nil {
		return scaled.Number{}, nil, err
	}
	defer p.release()
	derivatives := make([]scaled.Number, c.leaves())
	for i := range derivatives {
		derivatives[i] = p.down[i].scaled()
	}
	return c.rootValue(p).scaled(), derivatives, nil
}

// passUpAndDown computes p.values, the values of all nodes, from the leaves up. Then, from the root down, it computes p.down[n], the
// derivative of the root's value by that of node n. A sum adds its derivative to that of each child. A product adds to the derivative of a
// child its own derivative times the product of the other children. Nodes are numbered: leaves, then numbers, then sums and products. The
// caller releases the pass.
func (c *Circuit) passUpAndDown(ctx context.Context, w Weights) (*pass, error) {
	p, err := c.passUp(ctx, w, sumChildren)
	if err != nil {
		return nil, err
	}
	p.down = slices.Grow(p.down[:0], c.values())[:c.values()]
	clear(p.down)
	if c.root < 0 {
		return p, nil
	}
	p.down[c.root] = number{m: 1}

	look := pace.New(ctx)
	for i := len(c.ends) - 1; i >= 0; i-- { // parents before their children
		children := c.childrenOf(i)
		if look.Over(int64(2 * len(children))) {
			p.release()
			return nil, look.Err()
		}
		d := p.down[c.firstNode()+i]
		switch {
		case d.m == 0: // it adds nothing
		case c.products[i]:
			p.passToFactors(children, d)
		default:
			for _, n := range children {
				p.down[n] = p.down[n].plus(d)
			}
		}
	}
	return p, nil
}

// passToFactors adds d times the product of the other children to the derivative of each child of a product; d is the product's derivative.
// The product of the others is that of the children before times that of the children behind: values may be 0, so it cannot divide.
func (p *pass) passToFactors(children []int32, d number) {
	if len(children) == 2 {
		a, b := children[0], children[1]
		p.down[a] = p.down[a].plus(d.times(p.values[b]))
		p.down[b] = p.down[b].plus(d.times(p.values[a]))
		return
	}
	p.prefix = p.prefix[:0] // by child: d times the children before it
	for _, n := range children {
		p.prefix = append(p.prefix, d)
		d = d.times(p.values[n])
	}
	suffix := number{m: 1} // the children behind the present one
	for k := len(children) - 1; k >= 0; k-- {
		n := children[k]
		p.down[n] = p.down[n].plus(p.prefix[k].times(suffix))
		suffix = suffix.times(p.values[n])
	}
}
