package counts

// Windows: which coefficients of a product can matter for a total.
//
// Every coefficient is bounded from above by a power of two, block by block: the leaves' as they
// are, a product's by the largest pair times the number of pairs, and its multiplier in the rest of
// the contraction in the same way from the root down. A coefficient whose bound lies 2^-window below
// the total is left out of its product; the sum of all dropped terms is bounded, and the bound is
// compared with the result. All bounds are integers, so nothing is rounded.

import (
	"context"
	"math"
	"math/bits"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
)

const (
	block = 128 // coefficients with one bound
	// large is the degree above which products are looked at block by block; smaller ones are done whole.
	large = 1 << 12
	// none is the bound of zeros.
	none = math.MinInt64 / 8
)

// bounds of a node: exponents of 2, by block.
type bounds struct {
	of     []int64 // the node's coefficients lie below 2^of
	rest   []int64 // and their multipliers below 2^rest
	wanted []span  // coefficients that count; nil: all
}

// isLarge reports whether a node is looked at block by block.
func (n *node) isLarge() bool { return n.degree >= large }

// blocks returns the bounds of a list of coefficients.
func blocks(mant []float64, exp []int64) []int64 {
	out := slices.Repeat([]int64{none}, (len(mant)+block-1)/block)
	for i, m := range mant {
		if m != 0 {
			out[i/block] = max(out[i/block], exp[i]+1)
		}
	}
	return out
}

// log2 is the least integer at least log2 n, for n ≥ 1.
func log2(n int) int64 { return int64(bits.Len(uint(n - 1))) }

// boundUp fills the bounds of a node and of the large ones below it. Leaves and small nodes are
// computed.
func (l *line) boundUp(n *node) error {
	if n.left == nil || !n.isLarge() {
		if err := l.forth(n); err != nil {
			return err
		}
		c := n.parts[0].p.Coef
		n.bounds.of = blocks(c.Mant, c.Exp)
		return nil
	}
	if err := l.boundUp(n.left); err != nil {
		return err
	}
	if err := l.boundUp(n.right); err != nil {
		return err
	}

	// Coefficients i of block I and j of block J meet in blocks I+J and I+J+1.
	a, b := n.left.bounds.of, n.right.bounds.of
	out := slices.Repeat([]int64{none}, n.degree/block+1)
	p := pace.New(l.ctx)
	for i, x := range a {
		if x == none {
			continue
		}
		if p.Over(int64(len(b))) {
			return p.Err()
		}
		row := out[i:]
		for j, y := range b {
			row[j] = max(row[j], x+y)
		}
	}
	for k := len(out) - 1; k > 0; k-- {
		out[k] = max(out[k], out[k-1])
	}
	pairs := log2(min(n.left.degree, n.right.degree) + 1)
	for k := range out {
		out[k] = max(none, out[k]+pairs)
	}
	n.bounds.of = out
	return nil
}

// boundDown fills the bounds of large nodes' multipliers, from n's.
func (n *node) boundDown(ctx context.Context) error {
	if n.left == nil || !n.isLarge() {
		return nil
	}
	for _, side := range [][2]*node{{n.left, n.right}, {n.right, n.left}} {
		child, other := side[0], side[1]
		if !child.isLarge() {
			continue
		}
		out := make([]int64, child.degree/block+1)
		p := pace.New(ctx)
		for i := range out {
			if p.Over(int64(len(other.bounds.of))) {
				return p.Err()
			}
			out[i] = none
			for j, y := range other.bounds.of {
				// Σ_j other[j] rest[i+j]: i+j is in block I+J or the next.
				x := n.bounds.rest[min(i+j, len(n.bounds.rest)-1)]
				if i+j+1 < len(n.bounds.rest) {
					x = max(x, n.bounds.rest[i+j+1])
				}
				out[i] = max(out[i], x+y)
			}
			out[i] = max(none, out[i]+log2(other.degree+1))
		}
		child.bounds.rest = out
		if err := child.boundDown(ctx); err != nil {
			return err
		}
	}
	return nil
}

// choose marks the coefficients of n and the large nodes below it whose bound is 2^least or more, and
// returns the number of the others.
func (n *node) choose(least int64) (dropped int) {
	if !n.isLarge() {
		return 0
	}
	n.bounds.wanted = []span{}
	for k := range n.bounds.of {
		from, to := k*block, min((k+1)*block, n.degree+1)
		if n.bounds.of[k] == none || n.bounds.rest[k] == none || n.bounds.of[k]+n.bounds.rest[k] < least {
			dropped += to - from
			continue
		}
		if w := n.bounds.wanted; len(w) > 0 && w[len(w)-1].to == from {
			w[len(w)-1].to = to
		} else {
			n.bounds.wanted = append(w, span{from, to})
		}
	}
	if n.left != nil {
		dropped += n.left.choose(least) + n.right.choose(least)
	}
	return dropped
}

// top bounds the total from above: Σ_k root[k] s[k] is below 2^top.
func (n *node) top() int64 {
	top := int64(none)
	for k, x := range n.bounds.of {
		top = max(top, x+n.bounds.rest[k])
	}
	return max(none, top+log2(n.degree+1))
}

// windowed is the multiply-adds of all products below a node in the windows that are chosen.
func (n *node) windowed() float64 {
	if n.left == nil || !n.isLarge() {
		return n.cost()
	}
	width := func(n *node) (w float64) {
		for _, s := range n.spans() {
			w += float64(s.to - s.from)
		}
		return w
	}
	return n.left.windowed() + n.right.windowed() + width(n.left)*width(n.right)
}
