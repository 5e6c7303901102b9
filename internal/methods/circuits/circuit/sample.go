package circuit

// Draws: down through the sums, by their shares.

import (
	"context"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Sample returns Z and n assignments of all variables, drawn with the probabilities C(x) Π w(x) / Z: the values of one assignment after the
// other. They are nil if Z is 0. Draw i uses stream(i), so that it does not depend on the number of draws. One pass up, and for each draw
// the nodes on its way down. Errors as of Evaluate.
func (c *Circuit) Sample(ctx context.Context, w Weights, n int, stream func(i int) *rand.Rand) (scaled.Number, []int, error) {
	p, err := c.passUp(ctx, w, sumChildren)
	if err != nil {
		return scaled.Number{}, nil, err
	}
	defer p.release()
	z := c.rootValue(p)
	if z.m == 0 {
		return scaled.Number{}, nil, nil
	}
	look := pace.New(ctx)
	values := make([]int, n*len(c.domains))
	var pending []int32
	for i := range n {
		assignment := values[i*len(c.domains):][:len(c.domains)]
		if pending = c.draw(p, stream(i), assignment, look, pending[:0]); look.Err() != nil {
			return scaled.Number{}, nil, look.Err()
		}
	}
	return z.scaled(), values, nil
}

// draw draws one assignment into values, by variable. From the root down it visits all children of a product, and one child of a sum. The
// child is drawn with its share of the sum as probability. pending is an empty buffer for the nodes still to be visited, which draw returns
// so that its memory is used again. It ends early if the context ends. Nodes are numbered: leaves, then numbers, then sums and products.
func (c *Circuit) draw(p *pass, rng *rand.Rand, values []int, look *pace.Pace, pending []int32) []int32 {
	pending = append(pending, c.root)
	for len(pending) > 0 {
		n := pending[len(pending)-1]
		pending = pending[:len(pending)-1]
		if int(n) < c.leaves() {
			v := c.variable(n)
			values[v] = int(n - c.offsets[v])
			continue
		}
		i := int(n) - c.firstNode() // its position among sums and products
		if i < 0 {                  // a number
			continue
		}
		children := c.childrenOf(i)
		if look.Over(int64(len(children))) {
			return pending
		}
		if c.products[i] {
			pending = append(pending, children...)
			continue
		}
		pending = append(pending, chooseChild(p, children, p.values[n], rng.Float64()))
	}
	return pending
}

// chooseChild returns a child of a sum: child n with probability value(n) / sum if u is uniform in [0, 1). The children's shares value(n)
// / sum are lengths side by side from 0 to 1, and u falls on one of them. If rounding lets u fall behind the last one, chooseChild
// returns the last child of a share above 0.
func chooseChild(p *pass, children []int32, sum number, u float64) int32 {
	chosen := children[0]
	for _, n := range children {
		share := p.values[n].dividedBy(sum)
		if share == 0 {
			continue
		}
		if chosen = n; u < share {
			break
		}
		u -= share
	}
	return chosen
}
