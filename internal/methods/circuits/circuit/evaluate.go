package circuit

// The pass up.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// ErrWeights is wrapped by errors about weights that do not fit a circuit.
var ErrWeights = errors.New("circuit: weights")

// Evaluate returns Z(w) = Σ_x C(x) Π_v w_v(x_v), by one pass up. No term is negative, so its relative error is at most one
// rounding per operation of the longest chain. Linear time; 16 bytes a value, kept for the next pass. Errors wrap ErrWeights,
// or are the context's.
func (c *Circuit) Evaluate(ctx context.Context, w Weights) (scaled.Number, error) {
	p, err := c.up(ctx, w, false)
	if err != nil {
		return scaled.Number{}, err
	}
	defer p.done()
	return c.total(p).scaled(), nil
}

// pass is the memory of passes over a circuit.
type pass struct {
	values []number // by number, as of Circuit
	down   []number // ∂root/∂value
	prefix []number // products of children from the left
}

// passes keeps memory for the next pass.
var passes = sync.Pool{New: func() any { return new(pass) }}

// kept is the number of values kept for the next pass: 16 MiB.
const kept = 1 << 20

// done gives the memory back.
func (p *pass) done() {
	if cap(p.values) <= kept {
		passes.Put(p)
	}
}

// up returns the values of all nodes, maxima in the place of sums if so asked.
func (c *Circuit) up(ctx context.Context, w Weights, maxima bool) (*pass, error) {
	if err := c.fits(w); err != nil {
		return nil, err
	}
	p := passes.Get().(*pass)
	p.values = slices.Grow(p.values[:0], c.values())[:c.values()]
	for i, x := range w {
		p.values[i] = numberOf(x)
	}
	for k, x := range c.numbers {
		p.values[c.leaves()+k] = numberOf(x)
	}

	own := p.values[c.first():]
	look := pace.New(ctx)
	from := int32(0)
	for i, to := range c.ends {
		children := c.children[from:to]
		from = to
		if look.Over(int64(len(children))) {
			p.done()
			return nil, look.Err()
		}
		x := p.values[children[0]]
		switch {
		case c.products[i]:
			for _, n := range children[1:] {
				x = x.times(p.values[n])
			}
		case maxima:
			for _, n := range children[1:] {
				if x.less(p.values[n]) {
					x = p.values[n]
				}
			}
		default:
			for _, n := range children[1:] {
				x = x.plus(p.values[n])
			}
		}
		own[i] = x
	}
	return p, nil
}

// total is the value of the root.
func (c *Circuit) total(p *pass) number {
	if c.root < 0 {
		return number{}
	}
	return p.values[c.root]
}

// fits checks weights.
func (c *Circuit) fits(w Weights) error {
	if len(w) != c.leaves() {
		return fmt.Errorf("%w: there are %d, the circuit has %d", ErrWeights, len(w), c.leaves())
	}
	for i, x := range w {
		if !(x.Mant >= 0) || !x.IsFinite() || x.Exp > maxExponent || x.Exp < -maxExponent {
			return fmt.Errorf("%w: number %d is %v·2^%d", ErrWeights, i, x.Mant, x.Exp)
		}
	}
	return nil
}
