// Count polynomials of dense tables:
// legs contracted from the last to the first, partial tables holding polynomials.

package tensor

import (
	"math"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// countPoly contracts leg after leg: new[y](z) = Σ_x (Σ_a w[x,a] z^a) old[y,x](z).
func (t *Dense) countPoly(w []LegWeights, d int, ops *countspace.Ops) (countspace.Poly, error) {
	if err := t.checkPartialTables(w, d); err != nil {
		return countspace.Poly{}, err
	}

	if t.inSafeRange(w) {
		return contractLegs(t, w, d, t.Data, ops, addScaled64, scaled.FromFloat), nil
	}

	data := make([]scaled.Number, len(t.Data))
	for i, x := range t.Data {
		data[i] = scaled.FromFloat(x)
	}
	return contractLegs(t, w, d, data, ops, addScaledNumber,
		func(x scaled.Number) scaled.Number { return x }), nil
}

// addScaled64 adds f·src[c] to dst[at[c]+shift].
func addScaled64(dst, src []float64, at []int, shift int, f float64) {
	dst = dst[shift:]
	for c, x := range src {
		dst[at[c]] += f * x
	}
}

// addScaledNumber is addScaled64 with exponents.
func addScaledNumber(dst, src []scaled.Number, at []int, shift int, f float64) {
	dst = dst[shift:]
	g := scaled.FromFloat(f)
	for c, x := range src {
		if !x.IsZero() {
			dst[at[c]] = dst[at[c]].Add(x.Mul(g))
		}
	}
}

// contractLegs contracts leg after leg, the last first. T is the type of the entries, add adds
// f·src to dst as addScaled64 does. With m legs left the table holds a polynomial, over the box of
// the legs contracted, for every combination y of values of the first m legs:
//
//	fresh[y](z) = Σ_x (Σ_a w[x,a] z^a) old[y,x](z)
func contractLegs[T any](
	t *Dense, w []LegWeights, d int, old []T, ops *countspace.Ops,
	add func(dst, src []T, at []int, shift int, f float64), number func(T) scaled.Number,
) countspace.Poly {
	shape := weightBox(nil, d)
	for leg := len(w) - 1; leg >= 0; leg-- {
		wide := weightBox(w[leg:], d)
		at := embed(shape, wide)
		step := append([]int{0}, strides(wide)...)
		dim := t.Shape[leg]
		was := boxSize(shape)
		size := boxSize(wide)

		fresh := make([]T, len(old)/(was*dim)*size)
		for y := 0; y*size < len(fresh); y++ {
			dst := fresh[y*size : (y+1)*size]
			for x := range dim {
				src := old[(y*dim+x)*was:][:was]
				for a := range d {
					if f := w[leg][x*d+a]; f != 0 {
						add(dst, src, at, step[a], f)
					}
				}
			}
		}

		ops.Add(len(old) * d)
		old, shape = fresh, wide
	}

	p := countspace.New(shape)
	for i, x := range old {
		set(p, i, number(x))
	}
	return p
}

// embed returns where each coefficient of the narrow box lies in the wide one.
func embed(narrow, wide []int) []int {
	at := make([]int, boxSize(narrow))
	c := make([]int, len(narrow))
	step := strides(wide)
	for i := range at {
		for a, s := range step {
			at[i] += c[a] * s
		}
		advance(c, narrow)
	}
	return at
}

// boxSize is Size for boxes already known to fit.
func boxSize(shape []int) int {
	size := 1
	for _, s := range shape {
		size *= s
	}
	return size
}

// checkPartialTables bounds the largest partial table before anything is allocated.
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

// inSafeRange reports whether no product of an entry
// and one weight per leg can leave the range of float64.
func (t *Dense) inSafeRange(w []LegWeights) bool {
	low, high := exponents(t.Data)
	for _, list := range w {
		l, h := exponents(list)
		low += l
		high += h
	}
	return low > -900 && high+int(math.Log2(float64(len(t.Data)))) < 900
}

// exponents returns bounds on the exponents of the non-zero entries: (≤ 0, ≥ 0).
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
