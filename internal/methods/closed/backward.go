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

// sumAndVisit returns Z = Σ_c S_c [z^c] Π_k p_k for the polynomials p_k of the links, and calls visit with the derivative of Z by every
// wanted one. It is counts.Product.Sum in several count variables, with the bits of counts.MultiplyPolys and Dot.
//
// The way back needs the partial products p_0, p_0 p_1, …, the largest polynomial first. If all n of them are too many for the memory,
// every ⌈√n⌉th is kept, and the others are computed again, run by run. The cost in all is then four times that of Z, otherwise three times.
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

	// partials[i] is the product of the polynomials order[0] … order[i], if it is kept. multiplyFrom computes those between first, which is
	// kept, and end. It keeps all of them, or every stride'th and the last.
	partials := make([]countspace.Poly, len(order))
	partials[0] = b.Polys[order[0]]
	multiplyFrom := func(first, end int, keepsAll bool) error {
		p := partials[first]
		for i := first + 1; i < end; i++ {
			if err := b.Ctx.Err(); err != nil {
				return err
			}
			p = p.Mul(b.Polys[order[i]], b.Ops)
			if keepsAll || i%stride == 0 || i == len(order)-1 {
				partials[i] = p
			}
		}
		return nil
	}
	const keepsAll = true
	if err := multiplyFrom(0, len(order), !keepsAll); err != nil {
		return scaled.Number{}, err
	}

	// Back from the last polynomial: derivative is that of Z by partials[i].
	last := len(order) - 1
	z := countspace.Dot(b.S, partials[last], b.Ops)
	derivative := countspace.Crop(b.S, partials[last].Shape)
	firstWanted := 0
	for firstWanted < last && !b.Wanted(order[firstWanted]) {
		firstWanted++
	}
	for i := last; i > 0; i-- {
		if i < firstWanted {
			return z, nil
		}
		if err := b.Ctx.Err(); err != nil {
			return scaled.Number{}, err
		}
		if partials[i-1].Shape == nil { // not kept
			if err := multiplyFrom((i-1)/stride*stride, i, keepsAll); err != nil {
				return scaled.Number{}, err
			}
		}
		if b.Wanted(order[i]) {
			if err := b.visit(order[i], countspace.Correlate(derivative, partials[i-1], b.Ops)); err != nil {
				return scaled.Number{}, err
			}
		}
		partials[i] = countspace.Poly{}
		if i > firstWanted {
			derivative = countspace.Correlate(derivative, b.Polys[order[i]], b.Ops)
		}
	}

	if b.Wanted(order[0]) {
		return z, b.visit(order[0], derivative)
	}
	return z, nil
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
		kept := 0.0       // of the products that are kept
		run := 0.0        // of those since the last kept one
		largestRun := 0.0 // of those between two kept ones
		for i, size := range partialSizes {
			if i%stride == 0 {
				kept += size
				run = 0
			} else {
				run += size
			}
			largestRun = max(largestRun, run)
		}

		// 4 more polynomials of up to the size of the last partial product: S, the derivative, and two on the way, such as the next
		// derivative and a product that is not kept.
		bytes = bytesPerCoefficient * (kept + largestRun + 4*partialSizes[len(partialSizes)-1])
		if bytes <= float64(b.Memory) {
			return stride, nil
		}
	}
	return 0, counts.OverBudget(bytes, b.Memory)
}
