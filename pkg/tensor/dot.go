// Short sums of products whose factors may have any magnitude a float64 has.

package tensor

import (
	"math"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// A product of magnitude in [tinyProduct, hugeProduct] has lost nothing to the range of float64,
// and n ≤ 2^60 of them add up without overflow.
const (
	tinyProduct = 0x1p-960
	hugeProduct = 0x1p+960
)

// dot returns Σ_i v[i]·w[i·stride+offset]; a nil v is all ones.
// Plain float64 where no product leaves the safe range, carried exponents otherwise.
func dot(v, w []float64, n, stride, offset int) scaled.Number {
	sum := 0.0
	for i := range n {
		p := w[i*stride+offset]
		if v != nil {
			if v[i] == 0 || p == 0 {
				continue
			}
			p *= v[i]
		}
		if m := math.Abs(p); m > hugeProduct || m < tinyProduct && (v != nil || m != 0) {
			return dotScaled(v, w, n, stride, offset)
		}
		sum += p
	}
	return scaled.FromFloat(sum)
}

// dotScaled is dot with carried exponents.
func dotScaled(v, w []float64, n, stride, offset int) scaled.Number {
	var sum scaled.Number
	for i := range n {
		p := scaled.FromFloat(w[i*stride+offset])
		if v != nil {
			p = p.Mul(scaled.FromFloat(v[i]))
		}
		sum = sum.Add(p)
	}
	return sum
}

// linear returns Σ_a row[a] z^a as a polynomial of degree at most 1 in every variable,
// and of degree 0 in those whose coefficient is zero: narrow boxes keep products small.
func linear(row []scaled.Number) countspace.Poly {
	shape := make([]int, len(row)-1)
	for a := range shape {
		shape[a] = 1
		if !row[a+1].IsZero() {
			shape[a] = 2
		}
	}

	p := countspace.New(shape)
	set(p, 0, row[0])
	for a, step := range strides(shape) {
		if shape[a] == 2 {
			set(p, step, row[a+1])
		}
	}
	return p
}

// set makes v, which is normalised, coefficient i.
func set(p countspace.Poly, i int, v scaled.Number) {
	p.Coef.Mant[i] = v.Mant
	p.Coef.Exp[i] = v.Exp
}

// addAt adds v to coefficient i.
func addAt(p countspace.Poly, i int, v scaled.Number) { set(p, i, p.Coef.At(i).Add(v)) }
