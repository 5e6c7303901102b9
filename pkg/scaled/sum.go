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

// products returns numbers whose sum is exactly Σ a[i]·b[i]: every product, rounded, and its rounding error.
func products(a, b []Number) []Number {
	terms := make([]Number, 0, 2*len(a))
	for i, x := range a {
		x, y := Make(x.Mant, x.Exp), Make(b[i].Mant, b[i].Exp)
		high := float64(x.Mant * y.Mant)
		terms = append(terms, Make(high, x.Exp+y.Exp))
		isFinite := high-high == 0
		if isFinite { // an infinite product has no rounding error
			terms = append(terms, Make(math.FMA(x.Mant, y.Mant, -high), x.Exp+y.Exp))
		}
	}
	return terms
}

// exactSum returns the sum of xs, correctly rounded from the exact sum. It destroys the list.
func exactSum(xs []Number) Number {
	nonFinite := 0.0 // the sum of the terms that are not finite
	n := 0
	for _, x := range xs {
		switch x = Make(x.Mant, x.Exp); {
		case !x.IsFinite():
			nonFinite += x.Mant
		case x.Mant != 0:
			xs[n] = x
			n++
		}
	}

	if nonFinite != 0 { // NaN is not 0 either
		return Number{Mant: nonFinite}
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

// sumDescending returns the correctly rounded sum of finite numbers other than 0, in descending order of their exponents. The partial sum
// is the integer partial, in units of 2^unit. It ends as soon as the terms that are left cannot change the result (roundEarly), so that a
// gap of a million bits between terms costs nothing.
func sumDescending(xs []Number) Number {
	var partial, term big.Int
	var unit int64
	for i, x := range xs {
		if partial.Sign() != 0 {
			if sum, ok := roundEarly(&partial, unit, xs[i:]); ok {
				return sum
			}
		}

		termUnit := x.Exp - mantissaBits
		if partial.Sign() != 0 {
			// termUnit ≤ unit in descending order, and not far below, or the sum would have ended
			partial.Lsh(&partial, uint(unit-termUnit))
		}

		unit = termUnit
		term.SetInt64(int64(math.Ldexp(x.Mant, mantissaBits)))
		partial.Add(&partial, &term)
	}
	return rounded(&partial, unit)
}

// roundEarly returns the rounded sum of partial·2^unit and the remaining terms, which are in descending order, if it is the same for all
// values that these terms may have: they add up to less than 2^bound in size. Their sign is known. ok is false if the sum may depend on
// more.
func roundEarly(partial *big.Int, unit int64, remaining []Number) (sum Number, ok bool) {
	length := int64(partial.BitLen())
	bound := remaining[0].Exp + 1 + int64(bits.Len(uint(len(remaining)))) // the remaining terms add up to less than 2^bound

	// The partial sum is a multiple of 2^low, and so are, with guardBits, all numbers and midpoints that it could be rounded at. If the
	// remaining terms are smaller than 2^low, they decide only on which side of such a number the sum is: 2^(low−1) with their sign stands
	// for them.
	if low := unit - max(0, guardBits-length); bound <= low {
		var withSign big.Int
		withSign.Lsh(partial, uint(unit-low)+1)
		withSign.Add(&withSign, big.NewInt(int64(sumDescending(remaining).Sign())))
		return rounded(&withSign, low-1), true
	}

	// A long partial sum with small remaining terms: it may round to the same number with their smallest and with their largest sum.
	if top := unit + length; length >= longBits && bound < top-guardBits {
		var margin, smallest, largest big.Int
		margin.Lsh(big.NewInt(1), uint(max(0, bound-unit)))
		sum = rounded(smallest.Sub(partial, &margin), unit)
		return sum, sum == rounded(largest.Add(partial, &margin), unit)
	}
	return Number{}, false
}

// rounded returns a·2^unit, rounded to nearest, ties to even.
func rounded(a *big.Int, unit int64) Number {
	var mant big.Float
	exp := new(big.Float).SetPrec(mantissaBits + 1).SetInt(a).MantExp(&mant)
	m, _ := mant.Float64()
	return Make(m, unit+int64(exp))
}
