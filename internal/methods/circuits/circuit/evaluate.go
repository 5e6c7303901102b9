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
// rounding per operation of the longest chain. Linear time; 16 bytes a node, kept for the next pass. Errors wrap ErrWeights,
// or are the context's.
func (c *Circuit) Evaluate(ctx context.Context, w Weights) (scaled.Number, error) {
	p, err := c.passUp(ctx, w, sumChildren)
	if err != nil {
		return scaled.Number{}, err
	}
	defer p.release()
	return c.rootValue(p).scaled(), nil
}

// pass is the values of a pass over a circuit, up and down.
type pass struct {
	values []number // by number of a value, as Circuit counts them
	down   []number // by number of a value: ∂root/∂value
	prefix []number // working space of passToFactors
}

// passes keeps memory for the next pass.
var passes = sync.Pool{New: func() any { return new(pass) }}

// mostKept is the largest number of values that are kept for the next pass: 16 MiB.
const mostKept = 1 << 20

// release makes the memory of a pass available to later passes, unless it is more than mostKept values.
func (p *pass) release() {
	if cap(p.values) <= mostKept {
		passes.Put(p)
	}
}

// sumRule tells what the value of a sum is in a pass.
type sumRule bool

const (
	sumChildren     sumRule = false // the sum of its children's values
	maximumChildren sumRule = true  // the largest of its children's values
)

// passUp returns the values of all nodes under weights w, in a pass that the caller releases. Children have values before their parents.
// With the rule maximumChildren the value of a sum is the largest value of its children. Nodes are numbered: leaves, then numbers, then
// sums and products.
func (c *Circuit) passUp(ctx context.Context, w Weights, rule sumRule) (*pass, error) {
	if err := c.checkWeights(w); err != nil {
		return nil, err
	}

	// Leaves have their weights, and numbers themselves as values.
	p := passes.Get().(*pass) // with memory of earlier passes
	p.values = slices.Grow(p.values[:0], c.values())[:c.values()]
	for i, x := range w {
		p.values[i] = numberOf(x)
	}
	for k, x := range c.numbers {
		p.values[c.leaves()+k] = numberOf(x)
	}

	// Sums and products.
	results := p.values[c.firstNode():] // by sum or product
	look := pace.New(ctx)
	start := int32(0) // of the node's children
	for i, end := range c.ends {
		children := c.children[start:end]
		start = end
		if look.Over(int64(len(children))) {
			p.release()
			return nil, look.Err()
		}
		result := p.values[children[0]]
		switch {
		case c.products[i]:
			for _, n := range children[1:] {
				result = result.times(p.values[n])
			}
		case rule == maximumChildren:
			for _, n := range children[1:] {
				if result.less(p.values[n]) {
					result = p.values[n]
				}
			}
		default:
			for _, n := range children[1:] {
				result = result.plus(p.values[n])
			}
		}
		results[i] = result
	}
	return p, nil
}

// rootValue returns the value of the root after a pass up. It is 0 if the circuit has no nodes.
func (c *Circuit) rootValue(p *pass) number {
	if c.root < 0 {
		return number{}
	}
	return p.values[c.root]
}

// checkWeights returns an error if the weights do not fit the circuit: their number is wrong, or one is negative or out of range.
func (c *Circuit) checkWeights(w Weights) error {
	if len(w) != c.leaves() {
		return fmt.Errorf("%w: there are %d, the circuit has %d", ErrWeights, len(w), c.leaves())
	}
	for i, x := range w {
		isNegativeOrNaN := !(x.Mant >= 0)
		if isNegativeOrNaN || !x.IsFinite() || x.Exp > maxExponent || x.Exp < -maxExponent {
			return fmt.Errorf("%w: number %d is %v·2^%d", ErrWeights, i, x.Mant, x.Exp)
		}
	}
	return nil
}
