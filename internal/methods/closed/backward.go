package closed

// The way back over the product of the links' count polynomials in two and more count variables: ∂Z/∂p_j for every link that has a
// variable's weights.

import (
	"cmp"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/counts"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// derivativePass is one pass forth and back over the product of the polynomials of the links.
type derivativePass struct {
	form
	counts.Product
	visit func(k int, h countspace.Poly) error // takes the derivative h by polynomial k
}

// bytesPerCoefficient is a float64 and an int64.
const bytesPerCoefficient = 16

// sumAndVisit returns Z = Σ_c S_c [z^c] Π_k p_k for the polynomials p_k = b.Polys[k], where [z^c] is the coefficient of the monomial z^c.
// Then it calls visit with the derivative ∂Z/∂p_k for every k with b.Wanted(k). It is counts.Product.Sum for polynomials in several
// variables z, and gives the bits of counts.MultiplyPolys and Dot.
//
// The derivatives need the partial products p_0, p_0 p_1, …, the largest polynomial first. If the memory does not hold all n of them, only
// every ⌈√n⌉th is kept. The products between two kept ones are computed again when the way back comes to them. The cost in all is then four
// times that of Z, otherwise three times.
func (b derivativePass) sumAndVisit() (scaled.Number, error) {
	order := make([]int, len(b.Polys)) // the largest first
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, k int) int { return cmp.Compare(b.Polys[k].Size(), b.Polys[i].Size()) })
	stride, err := b.chooseStride(order)
	if err != nil {
		return scaled.Number{}, err
	}
	p := partialProducts{derivativePass: b, order: order, stride: stride, product: make([]countspace.Poly, len(order))}
	p.product[0] = b.Polys[order[0]]
	const keepsAll = true
	if err := p.multiply(0, len(order), !keepsAll); err != nil { // keeps every stride-th
		return scaled.Number{}, err
	}
	last := len(order) - 1
	z := countspace.Dot(b.S, p.product[last], b.Ops)
	return z, p.visitBackward()
}

// partialProducts are the products of a pass's polynomials, in a sequence.
type partialProducts struct {
	derivativePass
	order   []int             // the polynomials in the sequence in which they are multiplied
	stride  int               // every stride'th product is kept, and the last one
	product []countspace.Poly // product[i] is that of the polynomials order[0] … order[i]; without a Shape if it is not kept
}

// multiply computes the products between first, which is kept, and end, without these two. It keeps all of them, or every stride'th and the
// last one of the sequence.
func (p partialProducts) multiply(first, end int, keepsAll bool) error {
	product := p.product[first]
	for i := first + 1; i < end; i++ {
		if err := p.Ctx.Err(); err != nil {
			return err
		}
		product = product.Mul(p.Polys[p.order[i]], p.Ops)
		if keepsAll || i%p.stride == 0 || i == len(p.order)-1 {
			p.product[i] = product
		}
	}
	return nil
}

// visitBackward goes back over the polynomials in their order, from the last one to the first one with a wanted derivative, and calls visit
// for each wanted derivative. Let D be the derivative of Z by product[i]; for the last product it is S. The derivative by polynomial
// order[i] is D, contracted with product[i−1]. The derivative by product[i−1] is D, contracted with the polynomial.
func (p partialProducts) visitBackward() error {
	last := len(p.order) - 1
	firstWanted := 0
	for firstWanted < last && !p.Wanted(p.order[firstWanted]) {
		firstWanted++
	}
	derivative := countspace.Crop(p.S, p.product[last].Shape) // by product[i]
	for i := last; i > 0 && i >= firstWanted; i-- {
		if err := p.Ctx.Err(); err != nil {
			return err
		}
		if p.product[i-1].Shape == nil { // not kept: compute all products of its run again
			const keepsAll = true
			if err := p.multiply((i-1)/p.stride*p.stride, i, keepsAll); err != nil {
				return err
			}
		}
		if p.Wanted(p.order[i]) {
			if err := p.visit(p.order[i], countspace.Correlate(derivative, p.product[i-1], p.Ops)); err != nil {
				return err
			}
		}
		p.product[i] = countspace.Poly{} // not needed any more: the memory may be used again
		if i > firstWanted {
			derivative = countspace.Correlate(derivative, p.Polys[p.order[i]], p.Ops)
		}
	}
	if firstWanted == 0 && p.Wanted(p.order[0]) { // product[0] is the polynomial itself
		return p.visit(p.order[0], derivative)
	}
	return nil
}

// chooseStride returns the stride with which sumAndVisit keeps partial products: every stride'th of them. It is 1 if all n partial products
// fit the memory. Otherwise it is ⌈√n⌉ if every ⌈√n⌉th product fits together with one run, the products between two kept ones. If these do
// not fit either, the error is over budget. order is the sequence in which the polynomials are multiplied.
func (b derivativePass) chooseStride(order []int) (int, error) {
	// The sizes of the partial products. The sides of their boxes add up, less one for every factor after the first.
	partialSizes := make([]float64, len(order))
	shape := make([]float64, len(b.S.Shape))
	for i, polynomial := range order {
		partialSizes[i] = 1
		for a, side := range b.Polys[polynomial].Shape {
			shape[a] += float64(side)
			if i > 0 {
				shape[a]--
			}
			partialSizes[i] *= shape[a]
		}
	}

	bytes := 0.0
	for _, stride := range []int{1, int(math.Ceil(math.Sqrt(float64(len(order)))))} {
		keptSize, runSize, largestRun := 0.0, 0.0, 0.0 // coefficients: of the kept products, of a run, and of the largest run
		for i, size := range partialSizes {
			if i%stride == 0 {
				keptSize += size
				runSize = 0
			} else {
				runSize += size
			}
			largestRun = max(largestRun, runSize)
		}

		// 4 more polynomials of up to the size of the last partial product: S, the derivative, and two on the way, such as the next
		// derivative and a product that is not kept.
		bytes = bytesPerCoefficient * (keptSize + largestRun + 4*partialSizes[len(partialSizes)-1])
		if bytes <= float64(b.Memory) {
			return stride, nil
		}
	}
	return 0, counts.OverBudget(bytes, b.Memory)
}
