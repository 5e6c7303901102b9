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
	coefficients []int64 // exponents b of 2: the node's coefficients are below 2^b
	multipliers  []int64 // exponents b of 2: the numbers that they are multiplied by in the rest of the contraction are below 2^b
	wanted       []span  // coefficients that matter; nil: all
}

// isLarge reports whether a node has so many coefficients that they are bounded and dropped block by block.
func (n *node) isLarge() bool { return n.degree >= largeDegree }

// blockBounds returns, for each block of blockSize coefficients, an exponent b with all coefficients below 2^b, or noBound if all are 0.
// Coefficient i is mant[i] · 2^exp[i].
func blockBounds(mant []float64, exp []int64) []int64 {
	bounds := slices.Repeat([]int64{noBound}, (len(mant)+blockSize-1)/blockSize)
	for i, m := range mant {
		if m != 0 {
			bounds[i/blockSize] = max(bounds[i/blockSize], exp[i]+1) // mant is below 2
		}
	}
	return bounds
}

// log2 returns the logarithm of n ≥ 1 to the base 2, rounded up.
func log2(n int) int64 { return int64(bits.Len(uint(n - 1))) }

// boundUp bounds the coefficients of a node and of all large nodes below it, with one bound for each block of blockSize coefficients.
// Leaves and small nodes are computed for that. A coefficient of a larger product is a sum over pairs of coefficients of its factors, so
// it is at most the largest product of a pair times the number of pairs.
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

	bounds, err := productBounds(l.ctx, n.left.bounds.coefficients, n.right.bounds.coefficients, n.degree/blockSize+1)
	if err != nil {
		return err
	}
	log2Pairs := log2(min(n.left.degree, n.right.degree) + 1)
	for k := range bounds {
		bounds[k] = max(noBound, bounds[k]+log2Pairs)
	}
	n.bounds.coefficients = bounds
	return nil
}

// productBounds bounds the products of a coefficient of the left factor and one of the right factor, by block of the product. Bounds are
// logarithms, so that products are sums. Coefficients of block i of the left factor and of block j of the right factor contribute to
// coefficients of block i+j or i+j+1 of the product. The first loop enters a bound at i+j, the second one copies it to the next block. The
// error is the context's.
func productBounds(ctx context.Context, left, right []int64, blocks int) ([]int64, error) {
	bounds := slices.Repeat([]int64{noBound}, blocks)
	look := pace.New(ctx) // counts operations, and is over once the context has ended
	for i, x := range left {
		if x == noBound { // the coefficients of the block are 0
			continue
		}
		if look.Over(int64(len(right))) {
			return nil, look.Err()
		}
		row := bounds[i:]
		for j, y := range right {
			row[j] = max(row[j], x+y)
		}
	}
	for k := len(bounds) - 1; k > 0; k-- {
		bounds[k] = max(bounds[k], bounds[k-1])
	}
	return bounds, nil
}

// boundDown bounds the multipliers of the large nodes below a node, given those of the node. The multiplier of a coefficient is the number
// that it is multiplied by in the rest of the contraction: for coefficient i of one child it is Σ_j sibling[j] · multiplier[i+j], over the
// coefficients j of the other child, its sibling. There is one bound for each block of blockSize coefficients. Bounds are exponents of 2,
// so that a product has the sum of its factors' bounds; noBound is that of 0.
func (n *node) boundDown(ctx context.Context) error {
	if n.left == nil || !n.isLarge() {
		return nil
	}
	for _, side := range [][2]*node{{n.left, n.right}, {n.right, n.left}} {
		child, sibling := side[0], side[1]
		if !child.isLarge() {
			continue
		}
		multipliers := make([]int64, child.degree/blockSize+1)
		look := pace.New(ctx) // counts operations, and is over once the context has ended
		for i := range multipliers {
			if look.Over(int64(len(sibling.bounds.coefficients))) {
				return look.Err()
			}
			multipliers[i] = noBound
			for j, y := range sibling.bounds.coefficients {
				// Coefficients of blocks i and j meet multipliers of block i+j and of the next one.
				x := n.bounds.multipliers[min(i+j, len(n.bounds.multipliers)-1)]
				if i+j+1 < len(n.bounds.multipliers) {
					x = max(x, n.bounds.multipliers[i+j+1])
				}
				multipliers[i] = max(multipliers[i], x+y)
			}
			multipliers[i] = max(noBound, multipliers[i]+log2(sibling.degree+1)) // the sum over j has degree+1 terms
		}
		child.bounds.multipliers = multipliers
		if err := child.boundDown(ctx); err != nil {
			return err
		}
	}
	return nil
}

// chooseWindows chooses the wanted coefficients of a node and of the large nodes below it. The multiplier of a coefficient is what it is
// multiplied by in the rest of the contraction. Both have one bound for each block of blockSize coefficients, as an exponent of 2. A block
// is wanted if coefficients times multipliers may reach 2^minExponent. It returns the number of all other coefficients, which are dropped.
func (n *node) chooseWindows(minExponent int64) (dropped int) {
	if !n.isLarge() {
		return 0
	}
	n.bounds.wanted = []span{}
	for k := range n.bounds.coefficients {
		from, to := k*blockSize, min((k+1)*blockSize, n.degree+1)
		coefficient, multiplier := n.bounds.coefficients[k], n.bounds.multipliers[k]
		if coefficient == noBound || multiplier == noBound || coefficient+multiplier < minExponent {
			dropped += to - from
			continue
		}
		if spans := n.bounds.wanted; len(spans) > 0 && spans[len(spans)-1].to == from { // it continues the last span
			spans[len(spans)-1].to = to
		} else {
			n.bounds.wanted = append(spans, span{from, to})
		}
	}
	if n.left != nil {
		dropped += n.left.chooseWindows(minExponent) + n.right.chooseWindows(minExponent)
	}
	return dropped
}

// totalBound returns an exponent b with the total below 2^b. The total is the sum over the root's coefficients of each times its
// multiplier.
func (n *node) totalBound() int64 {
	bound := int64(noBound)
	for k, x := range n.bounds.coefficients {
		bound = max(bound, x+n.bounds.multipliers[k])
	}
	return max(noBound, bound+log2(n.degree+1))
}

// windowedCost returns the multiply-adds of a node of the product tree and of all nodes below it, if only the coefficients in the spans
// that chooseWindows chose are computed.
func (n *node) windowedCost() float64 {
	if n.left == nil || !n.isLarge() {
		return n.cost()
	}
	wantedCount := func(n *node) (count float64) {
		for _, s := range n.wantedSpans() {
			count += float64(s.to - s.from)
		}
		return count
	}
	return n.left.windowedCost() + n.right.windowedCost() + wantedCount(n.left)*wantedCount(n.right)
}
