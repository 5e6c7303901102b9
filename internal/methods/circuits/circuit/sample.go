package circuit

// Draws: down through the sums, by their shares.

import (
	"context"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Sample returns Z and draws n assignments of all variables with the probabilities C(x) Π w(x) / Z: the values one assignment after the
// other, nil where Z is 0. Draw i has the stream that it is given, so that draws do not depend on their number. One pass up, and
// for each draw the nodes on its way. Errors as of Evaluate.
func (c *Circuit) Sample(ctx context.Context, w Weights, n int, stream func(i int) *rand.Rand) (scaled.Number, []int, error) {
	p, err := c.up(ctx, w, false)
	if err != nil {
		return scaled.Number{}, nil, err
	}
	defer p.done()
	z := c.total(p)
	if z.m == 0 {
		return scaled.Number{}, nil, nil
	}
	look := pace.New(ctx)
	values := make([]int, n*len(c.domains))
	var todo []int32
	for i := range n {
		own := values[i*len(c.domains):][:len(c.domains)]
		if todo = c.draw(p, stream(i), own, look, todo[:0]); look.Err() != nil {
			return scaled.Number{}, nil, look.Err()
		}
	}
	return z.scaled(), values, nil
}

// draw draws one assignment. It returns the memory of todo.
func (c *Circuit) draw(p *pass, rng *rand.Rand, values []int, look *pace.Pace, todo []int32) []int32 {
	todo = append(todo, c.root)
	for len(todo) > 0 {
		n := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		if int(n) < c.leaves() {
			v := c.variable(n)
			values[v] = int(n - c.offsets[v])
			continue
		}
		i := int(n) - c.first()
		if i < 0 {
			continue
		}
		children := c.of(i)
		if look.Over(int64(len(children))) {
			return todo
		}
		if c.products[i] {
			todo = append(todo, children...)
			continue
		}
		todo = append(todo, chooseChild(p, children, p.values[n], rng.Float64()))
	}
	return todo
}

// chooseChild returns the child of a sum that u in [0, 1) falls on.
func chooseChild(p *pass, children []int32, sum number, u float64) int32 {
	last := children[0]
	for _, n := range children {
		share := p.values[n].over(sum)
		if share == 0 {
			continue
		}
		if last = n; u < share {
			break
		}
		u -= share
	}
	return last
}
