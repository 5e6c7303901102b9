// Count polynomials of dense tables:
// legs contracted from the last to the first, partial tables holding polynomials.

package tensor

import (
	"math"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// countPoly returns the count polynomial of a table over d levels, contracted leg after leg (contractLegs): in float64 if no product can
// leave its range, else with exponents.
func (t *Dense) countPoly(w []LegWeights, d int, ops *countspace.Ops) (countspace.Poly, error) {
	if err := t.checkPartialTables(w, d); err != nil {
		return countspace.Poly{}, err
	}

	if t.isInSafeRange(w) {
		return contractLegs(t, w, d, t.Data, ops, addMultiple64, scaled.FromFloat), nil
	}

	data := make([]scaled.Number, len(t.Data))
	for i, x := range t.Data {
		data[i] = scaled.FromFloat(x)
	}
	asIs := func(x scaled.Number) scaled.Number { return x }
	return contractLegs(t, w, d, data, ops, addMultiple, asIs), nil
}

// addMultiple64 adds f·src[c] to dst[positions[c]+shift] for every c.
func addMultiple64(dst, src []float64, positions []int, shift int, f float64) {
	dst = dst[shift:]
	for c, x := range src {
		dst[positions[c]] += f * x
	}
}

// addMultiple adds f·src[c] to dst[positions[c]+shift] for every c, in numbers with exponents.
func addMultiple(dst, src []scaled.Number, positions []int, shift int, f float64) {
	dst = dst[shift:]
	factor := scaled.FromFloat(f)
	for c, x := range src {
		if !x.IsZero() {
			dst[positions[c]] = dst[positions[c]].Add(x.Mul(factor))
		}
	}
}

// contractLegs returns the count polynomial of t over d levels. It contracts leg after leg, the last first. With m legs left, polys has a
// polynomial for every combination y of values of these m legs, whose exponents count the contracted legs by level. Contracting the last
// of the m legs gives
//
//	contracted[y](z) = Σ_x (Σ_a w[x,a] z^a) polys[y,x](z).
//
// polys is t's data at first. T is the type of its entries, float64 or scaled.Number. add adds f times the coefficients src to dst,
// coefficient i at positions[i] + shift, and number converts a coefficient.
func contractLegs[T any](
	t *Dense, w []LegWeights, d int, polys []T, ops *countspace.Ops,
	add func(dst, src []T, positions []int, shift int, f float64), number func(T) scaled.Number,
) countspace.Poly {
	shape := weightBox(nil, d) // the shape of the polynomials: at first each is one number
	for leg := len(w) - 1; leg >= 0; leg-- {
		newShape := weightBox(w[leg:], d)
		positions := embed(shape, newShape)
		step := append([]int{0}, strides(newShape)...) // by how much one leg at a level moves a coefficient; level 0 is not counted
		dim := t.Shape[leg]
		size, newSize := boxSize(shape), boxSize(newShape)

		contracted := make([]T, len(polys)/(size*dim)*newSize)
		for y := 0; y*newSize < len(contracted); y++ {
			dst := contracted[y*newSize : (y+1)*newSize]
			for x := range dim {
				src := polys[(y*dim+x)*size:][:size]
				for a := range d {
					if f := w[leg][x*d+a]; f != 0 {
						add(dst, src, positions, step[a], f)
					}
				}
			}
		}

		ops.Add(len(polys) * d)
		polys, shape = contracted, newShape
	}

	p := countspace.New(shape)
	for i, x := range polys {
		set(p, i, number(x))
	}
	return p
}

// embed returns, for each coefficient of a polynomial of shape narrow, its position in the row-major list of one of shape wide. The
// coefficient keeps its exponents c, 0 ≤ c[a] < narrow[a] ≤ wide[a].
func embed(narrow, wide []int) []int {
	positions := make([]int, boxSize(narrow))
	c := make([]int, len(narrow))
	stride := strides(wide)
	for i := range positions {
		for a, s := range stride {
			positions[i] += c[a] * s
		}
		advance(c, narrow)
	}
	return positions
}

// boxSize returns the number of coefficients of a box that is known to fit: the product of its sides.
func boxSize(shape []int) int {
	size := 1
	for _, s := range shape {
		size *= s
	}
	return size
}

// checkPartialTables returns ErrTooLarge if contractLegs would make a table with too many coefficients. That function contracts the last
// leg first: after leg, a polynomial over the weights of the legs from leg on is left for each combination of values of the legs before.
func (t *Dense) checkPartialTables(w []LegWeights, d int) error {
	limit := max(MaxCoefficients, len(t.Data))
	for leg := range t.Shape {
		box := append(weightBox(w[leg:], d), t.Shape[:leg]...)
		if _, err := sizeWithin(box, limit); err != nil {
			return err
		}
	}
	return nil
}

// isInSafeRange reports whether no product of an entry and one weight of each leg, and no sum of them, can leave the range of float64.
func (t *Dense) isInSafeRange(w []LegWeights) bool {
	low, high := exponents(t.Data)
	for _, list := range w {
		weightLow, weightHigh := exponents(list)
		low += weightLow
		high += weightHigh
	}
	return low > -900 && high+int(math.Log2(float64(len(t.Data)))) < 900 // float64s reach from 2^−1022 to 2^1023, with some bits to spare
}

// exponents returns bounds on the binary exponents of the entries that are not 0. low is at most 0 and high at least 0.
func exponents(list []float64) (low, high int) {
	smallest, largest := 1.0, 1.0
	for _, x := range list {
		if m := math.Abs(x); m != 0 {
			smallest = min(smallest, m)
			largest = max(largest, m)
		}
	}
	return math.Ilogb(smallest), math.Ilogb(largest) + 1
}
