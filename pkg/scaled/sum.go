package scaled

import (
	"cmp"
	"math"
	"math/big"
	"math/bits"
	"slices"
)

// Exact sums: one rounding at the end, hence the same bits in any order.

// Sum returns Σ xs, correctly rounded (to nearest, ties to even) from the exact sum: the same bits
// in any order. The empty sum is 0. NaN, or infinities of both signs, give NaN; one infinity gives
// itself.
// Cost: about one addition of two words per term where the terms are few and of similar size, else
// a sort and about one big addition of a few words per term, however far apart the exponents are.
func Sum(xs []Number) Number {
	return exactSum(slices.Clone(xs))
}

// SumProducts returns Σ_i a[i]·b[i] over lists of one length, correctly rounded from the exact
// products: one rounding in all, and the same bits in any order of the pairs. NaN and Inf are as in
// Sum.
func SumProducts(a, b []Number) Number {
	if len(a) == 1 {
		return Make(a[0].Mant, a[0].Exp).Mul(Make(b[0].Mant, b[0].Exp))
	}
	return exactSum(products(a, b))
}

// SumAbsProducts returns Σ_i |a[i]·b[i]|, correctly rounded like SumProducts.
func SumAbsProducts(a, b []Number) Number {
	if len(a) == 1 {
		return SumProducts(a, b).Abs()
	}
	abs := make([]Number, len(a))
	for i, x := range a {
		abs[i] = x.Abs()
	}

	terms := make([]Number, len(b))
	for i, x := range b {
		terms[i] = x.Abs()
	}
	return exactSum(products(abs, terms))
}

// products returns twice as many numbers whose sum is Σ a[i]·b[i] exactly:
// every product and its rounding error.
func products(a, b []Number) []Number {
	terms := make([]Number, 0, 2*len(a))
	for i, x := range a {
		x, y := Make(x.Mant, x.Exp), Make(b[i].Mant, b[i].Exp)
		high := float64(x.Mant * y.Mant)
		terms = append(terms, Make(high, x.Exp+y.Exp))
		// an infinite product has no rounding error, and Inf − Inf must not become one
		if high-high == 0 {
			terms = append(terms, Make(math.FMA(x.Mant, y.Mant, -high), x.Exp+y.Exp))
		}
	}
	return terms
}

// exactSum returns the correctly rounded sum of xs and destroys the list.
func exactSum(xs []Number) Number {
	special := 0.0 // sum of the terms that are not finite
	n := 0
	for _, x := range xs {
		switch x = Make(x.Mant, x.Exp); {
		case !x.IsFinite():
			special += x.Mant
		case x.Mant != 0:
			xs[n] = x
			n++
		}
	}

	if special != 0 { // NaN is not 0 either
		return Number{Mant: special}
	}

	xs = xs[:n]
	if sum, ok := sumNear(xs); ok {
		return sum
	}
	slices.SortFunc(xs, func(a, b Number) int { return cmp.Compare(b.Exp, a.Exp) })
	return sumDescending(xs)
}

const (
	mantissaBits = 52 // bits below the leading one: Mant·2^52 is an integer
	// guardBits is the least length of a partial sum before the rest may be reduced to its sign: 53
	// for the result, one for the midpoint, one because the grid halves below a power of two, and
	// some to spare.
	guardBits = 64
	// longBits is the length of a partial sum from which it
	// is worth asking whether the rest can matter at all.
	longBits = 3 * guardBits
)

// sumDescending sums finite non-zero numbers in descending order of exponent. The partial sum is
// the integer a in units of 2^unit. The terms that are left stay below a bound; two things end the
// sum early, so that a gap of a million bits between terms costs nothing.
func sumDescending(xs []Number) Number {
	var a, term big.Int
	var unit int64
	for i, x := range xs {
		if a.Sign() != 0 {
			if r, done := settled(&a, unit, xs[i:]); done {
				return r
			}
		}

		low := x.Exp - mantissaBits
		if a.Sign() != 0 {
			// low ≤ unit in descending order, and not far below, or it would be settled
			a.Lsh(&a, uint(unit-low))
		}

		unit = low
		term.SetInt64(int64(math.Ldexp(x.Mant, mantissaBits)))
		a.Add(&a, &term)
	}
	return rounded(&a, unit)
}

// settled reports whether the terms in rest can no longer change the rounding of a·2^unit,
// or only by their sign, and then returns the rounded sum. Their sum stays below 2^bound in size.
func settled(a *big.Int, unit int64, rest []Number) (Number, bool) {
	length := int64(a.BitLen())
	bound := rest[0].Exp + 1 + int64(bits.Len(uint(len(rest))))

	// Everything on which the rounding could hinge is a multiple of 2^low;
	// a is, and the rest is smaller than that.
	if low := unit - max(0, guardBits-length); bound <= low {
		var sticky big.Int
		sticky.Lsh(a, uint(unit-low)+1)
		sticky.Add(&sticky, big.NewInt(int64(sumDescending(rest).Sign())))
		return rounded(&sticky, low-1), true
	}
	// A long partial sum whose neighbourhood rounds to one number.
	if top := unit + length; length >= longBits && bound < top-guardBits {
		var margin, below, above big.Int
		margin.Lsh(big.NewInt(1), uint(max(0, bound-unit)))
		r := rounded(below.Sub(a, &margin), unit)
		return r, r == rounded(above.Add(a, &margin), unit)
	}
	return Number{}, false
}

// rounded returns a·2^unit, rounded to nearest even.
func rounded(a *big.Int, unit int64) Number {
	var mant big.Float
	exp := new(big.Float).SetPrec(mantissaBits + 1).SetInt(a).MantExp(&mant)
	m, _ := mant.Float64()
	return Make(m, unit+int64(exp))
}
