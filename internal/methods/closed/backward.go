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

// backward is one pass forth and back over polynomials ps.
type backward struct {
	form
	counts.Product
	visit func(k int, h countspace.Poly) error
}

// bytesPerCoefficient is a float64 and an int64.
const bytesPerCoefficient = 16

// run is Sum, with the bits of counts.Multiply and Dot. The way back needs every partial product. Where they are too many for the
// budget, every ⌈√k⌉th is kept and the others are computed again, run by run: four times the cost of Z in all, where it is three.
func (b backward) run() (scaled.Number, error) {
	order := make([]int, len(b.Polys))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(i, k int) int { return cmp.Compare(b.Polys[k].Size(), b.Polys[i].Size()) })
	stride, err := b.stride(order)
	if err != nil {
		return scaled.Number{}, err
	}

	kept := make([]countspace.Poly, len(order)) // partial products, those in reach
	kept[0] = b.Polys[order[0]]

	// forth multiplies from one kept product on; all: every partial product on the way is kept.
	forth := func(from, to int, all bool) error {
		p := kept[from]
		for i := from + 1; i < to; i++ {
			if err := b.Ctx.Err(); err != nil {
				return err
			}
			p = p.Mul(b.Polys[order[i]], b.Ops)
			if all || i%stride == 0 || i == len(order)-1 {
				kept[i] = p
			}
		}
		return nil
	}

	if err := forth(0, len(order), false); err != nil {
		return scaled.Number{}, err
	}

	last := len(order) - 1
	z := countspace.Dot(b.S, kept[last], b.Ops)
	h := countspace.Crop(b.S, kept[last].Shape)

	least := 0 // nothing before it is wanted
	for least < last && !b.Wanted(order[least]) {
		least++
	}
	for i := last; i > 0; i-- {
		if i < least {
			return z, nil
		}

		if err := b.Ctx.Err(); err != nil {
			return scaled.Number{}, err
		}

		// Partial products between two kept ones are computed again.
		if kept[i-1].Shape == nil {
			if err := forth((i-1)/stride*stride, i, true); err != nil {
				return scaled.Number{}, err
			}
		}

		if b.Wanted(order[i]) {
			if err := b.visit(order[i], countspace.Correlate(h, kept[i-1], b.Ops)); err != nil {
				return scaled.Number{}, err
			}
		}

		kept[i] = countspace.Poly{}
		if i > least {
			h = countspace.Correlate(h, b.Polys[order[i]], b.Ops)
		}
	}

	if b.Wanted(order[0]) {
		return z, b.visit(order[0], h)
	}
	return z, nil
}

// stride returns 1 when all partial products fit the budget,
// else ⌈√k⌉ when those kept and one run between them do.
func (b backward) stride(order []int) (int, error) {
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
