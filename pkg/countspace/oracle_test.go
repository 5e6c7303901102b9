package countspace

import (
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// The oracle: polynomials as maps from exponents to exact big floats.
// It shares no index arithmetic with the package.

// holds every product of two coefficients with exponents within ±oracleSpan exactly, and their sums
const oracleBits = 6000

const oracleSpan = 700

type monomial [3]int

type bigPoly map[monomial]*big.Float

func toBig(a scaled.Number) *big.Float {
	f := new(big.Float).SetPrec(oracleBits).SetFloat64(a.Mant)
	return f.SetMantExp(f, int(a.Exp))
}

// bigOf reads p coefficient by coefficient, the last variable fastest.
func bigOf(p Poly) bigPoly {
	out := bigPoly{}
	side := func(a int) int {
		if a < len(p.Shape) {
			return p.Shape[a]
		}
		return 1
	}
	i := 0
	for x := range side(0) {
		for y := range side(1) {
			for z := range side(2) {
				out[monomial{x, y, z}] = toBig(p.Coef.At(i))
				i++
			}
		}
	}
	return out
}

func (p bigPoly) at(m monomial) *big.Float {
	if f, ok := p[m]; ok {
		return f
	}
	return new(big.Float).SetPrec(oracleBits)
}

func (p bigPoly) addTo(m monomial, f *big.Float) {
	p[m] = new(big.Float).SetPrec(oracleBits).Add(p.at(m), f)
}

func times(a, b *big.Float) *big.Float { return new(big.Float).SetPrec(oracleBits).Mul(a, b) }

// bigMul returns p·q and, for the tolerance, |p|·|q|.
func bigMul(p, q bigPoly) (sum, size bigPoly) {
	sum, size = bigPoly{}, bigPoly{}
	for i, a := range p {
		for j, b := range q {
			m, ab := monomial{i[0] + j[0], i[1] + j[1], i[2] + j[2]}, times(a, b)
			sum.addTo(m, ab)
			size.addTo(m, new(big.Float).Abs(ab))
		}
	}
	return sum, size
}

// bigCorrelate returns Σ_c s[c+shift]·f[c] and the sum of the terms' sizes.
func bigCorrelate(s, f bigPoly, shift []int) (sum, size *big.Float) {
	var k monomial
	copy(k[:], shift)
	sum, size = new(big.Float).SetPrec(oracleBits), new(big.Float).SetPrec(oracleBits)
	for c, b := range f {
		a, ok := s[monomial{c[0] + k[0], c[1] + k[1], c[2] + k[2]}]
		if ok {
			ab := times(a, b)
			sum.Add(sum, ab)
			size.Add(size, new(big.Float).Abs(ab))
		}
	}
	return sum, size
}

// within reports whether got differs from want by at most terms·2^-52 of size,
// the sum of the sizes of the terms: the bound of any order of summation.
func within(got scaled.Number, want, size *big.Float, terms int) bool {
	diff := toBig(got)
	diff.Abs(diff.Sub(diff, want))
	bound := times(size, big.NewFloat(float64(terms+2)*0x1p-52))
	return diff.Cmp(bound) <= 0
}

// checkPoly compares every coefficient of got with the oracle,
// and that got has nothing else and is canonical.
func checkPoly(t *testing.T, what string, got Poly, want, size bigPoly, terms int) {
	t.Helper()
	if !isCanonical(got.Coef) {
		t.Fatalf("%s: not canonical: %v", what, got)
	}
	have := bigOf(got)
	for m, f := range want {
		if _, inside := have[m]; !inside && f.Sign() != 0 {
			t.Fatalf("%s: coefficient %v = %v is outside the box %v", what, m, f, got.Shape)
		}
	}
	c := make([]int, len(got.Shape))
	for i := range got.Coef.Mant {
		var m monomial
		copy(m[:], c)
		if !within(got.Coef.At(i), want.at(m), size.at(m), terms) {
			t.Fatalf("%s: coefficient %v is %v, want %.20g", what, m, got.Coef.At(i), want.at(m))
		}
		next(c, got.Shape)
	}
}

// anyPoly returns a polynomial with sides up to 5, zeros, both signs and, for span > 0, exponents
// within ±span; for span 0 its coefficients are small integers, on which all arithmetic is exact.
func anyPoly(rng *rand.Rand, vars, span int) Poly {
	shape := make([]int, vars)
	for a := range shape {
		shape[a] = 1 + rng.IntN(5)
		if vars == 1 && rng.IntN(2) == 0 {
			shape[a] = 1 + rng.IntN(40)
		}
	}
	p := New(shape)
	for i := range p.Coef.Mant {
		switch {
		case rng.IntN(6) == 0:
		case span == 0:
			p.put(i, scaled.FromFloat(float64(rng.IntN(19)-9)))
		default:
			p.put(i, scaled.Make(2*rng.Float64()-1, int64(rng.IntN(2*span)-span)))
		}
	}
	return p
}

// sameNumbers reports whether p and q are the same polynomial, bit by bit, in boxes of any size.
func sameNumbers(p, q Poly) bool {
	shape := slices.Clone(p.Shape)
	for a := range shape {
		shape[a] = max(shape[a], q.Shape[a])
	}
	p, q = Crop(p, shape), Crop(q, shape)
	return slices.Equal(p.Coef.Mant, q.Coef.Mant) && slices.Equal(p.Coef.Exp, q.Coef.Exp)
}

// relativeError returns |got−want|/|want| for want ≠ 0.
func relativeError(got scaled.Number, want *big.Float) float64 {
	diff := new(big.Float).SetPrec(300).SetFloat64(got.Mant)
	diff.SetMantExp(diff, int(got.Exp))
	diff.Quo(diff.Sub(diff, want), want)
	r, _ := diff.Float64()
	return math.Abs(r)
}
