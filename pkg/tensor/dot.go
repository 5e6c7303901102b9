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

// dot returns Σ_i v[i]·w[i·stride+offset] over i < n. A nil v is all ones. It adds in float64; if a product is too large or too small for
// that, it computes the sum again with exponents.
func dot(v, w []float64, n, stride, offset int) scaled.Number {
	sum := 0.0
	for i := range n {
		product := w[i*stride+offset]
		if v != nil {
			if v[i] == 0 || product == 0 {
				continue
			}
			product *= v[i]
		}
		size := math.Abs(product)
		isTiny := size < tinyProduct && (v != nil || size != 0) // a 0 here is no underflow if v is nil
		if size > hugeProduct || isTiny {
			return dotScaled(v, w, n, stride, offset)
		}
		sum += product
	}
	return scaled.FromFloat(sum)
}

// dotScaled returns Σ_i v[i]·w[i·stride+offset] over i < n in numbers with exponents. A nil v is all ones.
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

// linear returns the polynomial row[0] + Σ_{a≥1} row[a] z_a. Its degree is 0 in variables whose coefficient is 0: narrow boxes keep
// products small.
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

// set sets coefficient i of p to v, which is normalised.
func set(p countspace.Poly, i int, v scaled.Number) {
	p.Coef.Mant[i] = v.Mant
	p.Coef.Exp[i] = v.Exp
}

// addAt adds v to coefficient i of p.
func addAt(p countspace.Poly, i int, v scaled.Number) { set(p, i, p.Coef.At(i).Add(v)) }
