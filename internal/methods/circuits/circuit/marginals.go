package circuit

// The pass down: derivatives, and marginals from them.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Marginals returns Z and, by number of the weights, w·∂Z/∂w: for every variable they add up to Z, and are its values' shares of it.
// One pass up and one down; linear time, 32 bytes a value. Errors as of Evaluate.
func (c *Circuit) Marginals(ctx context.Context, w Weights) (scaled.Number, []scaled.Number, error) {
	p, err := c.upAndDown(ctx, w)
	if err != nil {
		return scaled.Number{}, nil, err
	}
	defer p.done()
	shares := make([]scaled.Number, c.leaves())
	for i := range shares {
		shares[i] = p.values[i].times(p.down[i]).scaled()
	}
	return c.total(p).scaled(), shares, nil
}

// Derivatives returns Z and ∂Z/∂w, by number of the weights: also by weights that are 0, as nothing is divided by. Cost and
// errors as of Marginals.
func (c *Circuit) Derivatives(ctx context.Context, w Weights) (scaled.Number, []scaled.Number, error) {
	p, err := c.upAndDown(ctx, w)
	if err != nil {
		return scaled.Number{}, nil, err
	}
	defer p.done()
	by := make([]scaled.Number, c.leaves())
	for i := range by {
		by[i] = p.down[i].scaled()
	}
	return c.total(p).scaled(), by, nil
}

// upAndDown makes both passes: down[i] = ∂root/∂values[i].
//
// A sum hands its derivative to every child, a product its derivative times the product of the other children. The latter is a
// product of a prefix and a suffix: values may be 0, so nothing is divided by.
func (c *Circuit) upAndDown(ctx context.Context, w Weights) (*pass, error) {
	p, err := c.up(ctx, w, false)
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
	for i := len(c.ends) - 1; i >= 0; i-- {
		children := c.of(i)
		if look.Over(int64(2 * len(children))) {
			p.done()
			return nil, look.Err()
		}
		d := p.down[c.first()+i]
		switch {
		case d.m == 0:
		case c.products[i]:
			p.siblings(children, d)
		default:
			for _, n := range children {
				p.down[n] = p.down[n].plus(d)
			}
		}
	}
	return p, nil
}

// siblings hands d, the derivative of a product, to each of its children times the others.
func (p *pass) siblings(children []int32, d number) {
	if len(children) == 2 {
		a, b := children[0], children[1]
		p.down[a] = p.down[a].plus(d.times(p.values[b]))
		p.down[b] = p.down[b].plus(d.times(p.values[a]))
		return
	}
	p.prefix = p.prefix[:0]
	for _, n := range children {
		p.prefix = append(p.prefix, d)
		d = d.times(p.values[n])
	}
	suffix := number{m: 1}
	for k := len(children) - 1; k >= 0; k-- {
		n := children[k]
		p.down[n] = p.down[n].plus(p.prefix[k].times(suffix))
		suffix = suffix.times(p.values[n])
	}
}
