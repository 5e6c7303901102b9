package learned

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// randomPoly draws coefficients of exponents up to ±spread, some of them 0.
func randomPoly(rng *rand.Rand, shape []int, spread int64) countspace.Poly {
	p := countspace.New(shape)
	c := make([]int, len(shape))
	for range p.Size() {
		if rng.IntN(5) > 0 {
			p.Set(c, scaled.Make(rng.NormFloat64(), rng.Int64N(2*spread+1)-spread))
		}
		advanceIndex(c, shape)
	}
	return p
}

func exact(x scaled.Number) *big.Float {
	f := new(big.Float).SetPrec(20_000).SetFloat64(x.Mant)
	return f.SetMantExp(f, int(x.Exp))
}

// TestShortPiecesAgainstBigFloats: products and backward contractions in one to three variables,
// coefficient by coefficient; the error is a few units of the largest term of each sum.
func TestShortPiecesAgainstBigFloats(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 8))
		vars := 1 + rng.IntN(3)
		long, short := make([]int, vars), make([]int, vars)
		for a := range long {
			long[a], short[a] = 3+rng.IntN(4), 1+rng.IntN(3)
		}
		p, q := randomPoly(rng, long, 3000), randomPoly(rng, short, 3000)
		compare(t, "product", multiply(copyPoly(p, 0), q, nil), p, q, func(k, j []int) []int {
			return plus(k, j, -1)
		})
		compare(t, "contraction", correlate(copyPoly(p, 0), q, nil), p, q, func(k, j []int) []int {
			return plus(k, j, 1)
		})
	}
}

func plus(k, j []int, sign int) []int {
	out := make([]int, len(k))
	for a := range k {
		out[a] = k[a] + sign*j[a]
	}
	return out
}

// compare checks got[k] = Σ_j q[j]·p[at(k, j)].
func compare(t *testing.T, what string, got, p, q countspace.Poly, at func(k, j []int) []int) {
	t.Helper()
	k := make([]int, len(p.Shape))
	for range got.Size() {
		sum, most := new(big.Float).SetPrec(20_000), new(big.Float).SetPrec(20_000)
		indices(q.Shape, func(j []int) {
			term := new(big.Float).SetPrec(20_000).Mul(exact(p.At(at(k, j))), exact(q.At(j)))
			sum.Add(sum, term)
			if term.Abs(term).Cmp(most) > 0 {
				most.Set(term)
			}
		})
		diff := new(big.Float).SetPrec(20_000).Sub(exact(got.At(k)), sum)
		limit := most.Mul(most, big.NewFloat(30*epsilon))
		if diff.Abs(diff).Cmp(limit) > 0 {
			t.Errorf("%s at %v: off by %v, allowed %v", what, k, diff.Text('g', 5), limit.Text('g', 5))
		}
		x := got.At(k)
		if a := math.Abs(x.Mant); x.Mant != 0 && (a < 1 || a >= 2) {
			t.Errorf("%s at %v is not normalised: %v", what, k, x)
		}
		advanceIndex(k, got.Shape)
	}
}
