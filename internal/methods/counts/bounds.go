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
	blockSize = 128 // coefficients with one bound
	// largeDegree is the degree from which on products are treated block by block; smaller ones are done whole.
	largeDegree = 1 << 12
	// noBound is the bound of zeros.
	noBound = math.MinInt64 / 8
)

// nodeBounds are the bounds of a node, by block of blockSize coefficients.
type nodeBounds struct {
	coefficients []int64 // exponents of 2: the node's coefficients lie below
	multipliers  []int64 // exponents of 2: what they are multiplied by in the rest of the contraction lies below
	wanted       []span  // coefficients that matter; nil: all
}

// isLarge reports whether a node is treated block by block.
func (n *node) isLarge() bool { return n.degree >= largeDegree }

// blockBounds returns the bounds of coefficients: by block, an exponent of 2 that all lie below.
func blockBounds(mant []float64, exp []int64) []int64 {
	out := slices.Repeat([]int64{noBound}, (len(mant)+blockSize-1)/blockSize)
	for i, m := range mant {
		if m != 0 {
			out[i/blockSize] = max(out[i/blockSize], exp[i]+1)
		}
	}
	return out
}

// log2 returns the smallest integer that is at least log2 n, for n ≥ 1.
func log2(n int) int64 { return int64(bits.Len(uint(n - 1))) }

// boundUp bounds the coefficients of a node and of the large ones below it. Leaves and small nodes are computed.
func (l *line) boundUp(n *node) error {
	if n.left == nil || !n.isLarge() {
		if err := l.multiplyUp(n); err != nil {
			return err
		}
		c := n.windows[0].p.Coef
		n.bounds.coefficients = blockBounds(c.Mant, c.Exp)
		return nil
	}
	if err := l.boundUp(n.left); err != nil {
		return err
	}
	if err := l.boundUp(n.right); err != nil {
		return err
	}

	// Coefficients i of block I and j of block J meet in blocks I+J and I+J+1.
	left, right := n.left.bounds.coefficients, n.right.bounds.coefficients
	bounds := slices.Repeat([]int64{noBound}, n.degree/blockSize+1)
	p := pace.New(l.ctx)
	for i, x := range left {
		if x == noBound {
			continue
		}
		if p.Over(int64(len(right))) {
			return p.Err()
		}
		row := bounds[i:]
		for j, y := range right {
			row[j] = max(row[j], x+y)
		}
	}
	for k := len(bounds) - 1; k > 0; k-- {
		bounds[k] = max(bounds[k], bounds[k-1])
	}
	pairs := log2(min(n.left.degree, n.right.degree) + 1)
	for k := range bounds {
		bounds[k] = max(noBound, bounds[k]+pairs)
	}
	n.bounds.coefficients = bounds
	return nil
}

// boundDown bounds the multipliers of the large nodes below a node, given those of the node.
func (n *node) boundDown(ctx context.Context) error {
	if n.left == nil || !n.isLarge() {
		return nil
	}
	for _, side := range [][2]*node{{n.left, n.right}, {n.right, n.left}} {
		child, other := side[0], side[1]
		if !child.isLarge() {
			continue
		}
		out := make([]int64, child.degree/blockSize+1)
		p := pace.New(ctx)
		for i := range out {
			if p.Over(int64(len(other.bounds.coefficients))) {
				return p.Err()
			}
			out[i] = noBound
			for j, y := range other.bounds.coefficients {
				// Σ_j other[j] rest[i+j]: i+j is in block I+J or the next.
				x := n.bounds.multipliers[min(i+j, len(n.bounds.multipliers)-1)]
				if i+j+1 < len(n.bounds.multipliers) {
					x = max(x, n.bounds.multipliers[i+j+1])
				}
				out[i] = max(out[i], x+y)
			}
			out[i] = max(noBound, out[i]+log2(other.degree+1))
		}
		child.bounds.multipliers = out
		if err := child.boundDown(ctx); err != nil {
			return err
		}
	}
	return nil
}

// chooseWindows sets the wanted coefficients of a node and of the large ones below it: the blocks whose bound, times that of the
// multipliers, is 2^least or more. It returns the number of all other coefficients.
func (n *node) chooseWindows(least int64) (dropped int) {
	if !n.isLarge() {
		return 0
	}
	n.bounds.wanted = []span{}
	for k := range n.bounds.coefficients {
		from, to := k*blockSize, min((k+1)*blockSize, n.degree+1)
		if n.bounds.coefficients[k] == noBound || n.bounds.multipliers[k] == noBound || n.bounds.coefficients[k]+n.bounds.multipliers[k] < least {
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
		dropped += n.left.chooseWindows(least) + n.right.chooseWindows(least)
	}
	return dropped
}

// totalBound returns an exponent of 2 that the total lies below, for a root whose multipliers are bounded.
func (n *node) totalBound() int64 {
	top := int64(noBound)
	for k, x := range n.bounds.coefficients {
		top = max(top, x+n.bounds.multipliers[k])
	}
	return max(noBound, top+log2(n.degree+1))
}

// windowedCost returns the multiply-adds of all products below a node in the windows that are chosen.
func (n *node) windowedCost() float64 {
	if n.left == nil || !n.isLarge() {
		return n.cost()
	}
	width := func(n *node) (w float64) {
		for _, s := range n.wantedSpans() {
			w += float64(s.to - s.from)
		}
		return w
	}
	return n.left.windowedCost() + n.right.windowedCost() + width(n.left)*width(n.right)
}
