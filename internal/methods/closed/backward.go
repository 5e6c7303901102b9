package closed

// The way back over the product of the links' count polynomials in two and more variables:
// ∂Z/∂p_j for every link that has a variable's weights.

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

// sumAndVisit is counts.Product.Sum in several variables, with the bits of counts.Multiply and Dot. The way back needs every partial
// product. If they are too many for the memory, every ⌈√k⌉th is kept and the others are computed again, run by run: four times the cost of
// Z in all, where it is three.
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

	partials := make([]countspace.Poly, len(order)) // by place in order: the product up to it, if it is kept
	partials[0] = b.Polys[order[0]]

	// multiplyFrom computes the partial products after a kept one, up to place end. It keeps all of them, or every stride'th and the last.
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
	if err := multiplyFrom(0, len(order), false); err != nil {
		return scaled.Number{}, err
	}

	last := len(order) - 1
	z := countspace.Dot(b.S, partials[last], b.Ops)
	h := countspace.Crop(b.S, partials[last].Shape) // derivative of Z by the product up to place i

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
			if err := multiplyFrom((i-1)/stride*stride, i, true); err != nil {
				return scaled.Number{}, err
			}
		}
		if b.Wanted(order[i]) {
			if err := b.visit(order[i], countspace.Correlate(h, partials[i-1], b.Ops)); err != nil {
				return scaled.Number{}, err
			}
		}
		partials[i] = countspace.Poly{}
		if i > firstWanted {
			h = countspace.Correlate(h, b.Polys[order[i]], b.Ops)
		}
	}

	if b.Wanted(order[0]) {
		return z, b.visit(order[0], h)
	}
	return z, nil
}

// chooseStride returns 1 if all partial products fit the memory, and ⌈√k⌉ if every ⌈√k⌉th and one run between two of them do. Otherwise it
// returns an error over budget. order is the sequence of the polynomials.
func (b derivativePass) chooseStride(order []int) (int, error) {
	sizes := make([]float64, len(order))

	// The box of a partial product: its sides add up, less one for every factor after the first.
	shape := make([]float64, len(b.S.Shape))
	for i, k := range order {
		sizes[i] = 1
		for a, s := range b.Polys[k].Shape {
			shape[a] += float64(s)
			if i > 0 {
				shape[a]--
			}
			sizes[i] *= shape[a]
		}
	}

	need := 0.0
	for _, stride := range []int{1, int(math.Ceil(math.Sqrt(float64(len(order)))))} {
		kept := 0.0
		run := 0.0 // since the last one kept
		longest := 0.0
		for i, size := range sizes {
			if i%stride == 0 {
				kept += size
				run = 0
			} else {
				run += size
			}
			longest = max(longest, run)
		}

		need = bytesPerCoefficient * (kept + longest + 4*sizes[len(sizes)-1])
		if need <= float64(b.Memory) {
			return stride, nil
		}
	}
	return 0, counts.OverBudget(need, b.Memory)
}
