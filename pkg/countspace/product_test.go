package countspace

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/pkg/scaled"
)

const (
	manyLegs = 10_000
	// A product tree over n legs rounds each coefficient about log2(n) times a sum of n terms
	// without cancellation; the errors of the terms are of random sign. 1e-12 leaves a factor of a
	// hundred.
	treeTolerance = 1e-12
)

// bigBinomial is the power of one leg:
// (a + b z)^n has the coefficients C(n, k) a^(n−k) b^k, here with 300 bits.
func bigBinomial(n int, a, b float64) []*big.Float {
	f := func(x float64) *big.Float { return new(big.Float).SetPrec(300).SetFloat64(x) }
	powers := func(x float64) []*big.Float {
		p := []*big.Float{f(1)}
		for range n {
			p = append(p, new(big.Float).SetPrec(300).Mul(p[len(p)-1], f(x)))
		}
		return p
	}
	pa, pb, choose := powers(a), powers(b), big.NewInt(1)
	out := make([]*big.Float, n+1)
	for k := range out {
		out[k] = new(big.Float).SetPrec(300).SetInt(choose)
		out[k].Mul(out[k], pa[n-k]).Mul(out[k], pb[k])
		choose.Mul(choose, big.NewInt(int64(n-k))).Quo(choose, big.NewInt(int64(k+1)))
	}
	return out
}

func TestTenThousandLegsNeitherOverflowNorUnderflow(t *testing.T) {
	for _, c := range []struct{ a, b float64 }{{1, 1}, {1e-30, 1e20}, {1e300, 1e-300},
		{5e-324, 5e-324}, {-3, 1e-5}} {
		leg, ps := Linear([]float64{c.a, c.b}), make([]Poly, manyLegs)
		for i := range ps {
			ps[i] = leg
		}
		p := Product(1, ps, nil)
		if p.Size() != manyLegs+1 || !isCanonical(p.Coef) {
			t.Fatalf("(%g + %g z)^%d: %d coefficients, canonical %v",
				c.a, c.b, manyLegs, p.Size(), isCanonical(p.Coef))
		}
		worst := 0.0
		for k, want := range bigBinomial(manyLegs, c.a, c.b) {
			worst = max(worst, relativeError(p.Coef.At(k), want))
		}
		if worst > treeTolerance {
			t.Errorf("(%g + %g z)^%d: relative error %.2g, at most %g",
				c.a, c.b, manyLegs, worst, treeTolerance)
		}
	}
}

// Legs 1+z and 1−z in turn: (1−z²)^4096. With a power of two of them the tree pairs them up at its
// leaves, where the odd coefficients cancel exactly; the even ones alternate in sign and no further
// cancellation follows.
func TestMixedSigns(t *testing.T) {
	const n = 8192
	ps := make([]Poly, n)
	for i := range ps {
		ps[i] = Linear([]float64{1, float64(1 - 2*(i%2))})
	}
	p := Product(1, ps, nil)
	want := bigBinomial(n/2, 1, -1)
	for k := range p.Size() {
		switch got := p.Coef.At(k); {
		case k%2 == 1 && !got.IsZero():
			t.Fatalf("coefficient %d is %v, want 0", k, got)
		case k%2 == 0 && relativeError(got, want[k/2]) > treeTolerance:
			t.Fatalf("coefficient %d is %v, want %.20g", k, got, want[k/2])
		}
	}
}

// Random legs of wildly different weights, against 300-bit arithmetic leg after leg.
func TestProductOfRandomLegsAgainstBig(t *testing.T) {
	rng := rand.New(rand.NewPCG(31, 1))
	const n = 300
	ps, want := make([]Poly, n), []*big.Float{big.NewFloat(1).SetPrec(300)}
	for i := range ps {
		row := make([]float64, 2)
		for a := range row {
			row[a] = scaled.Make(0.5+rng.Float64(), int64(rng.IntN(1800)-900)).Float64()
		}
		ps[i] = Linear(row)
		longer := make([]*big.Float, len(want)+1)
		for k := range longer {
			longer[k] = new(big.Float).SetPrec(300)
		}
		for k, f := range want {
			for a, w := range row {
				term := new(big.Float).SetPrec(300).Mul(f, big.NewFloat(w))
				longer[k+a].Add(longer[k+a], term)
			}
		}
		want = longer
	}
	p := Product(1, ps, nil)
	for k, f := range want {
		if e := relativeError(p.Coef.At(k), f); e > treeTolerance {
			t.Fatalf("coefficient %d is %v, want %.20g, relative error %.2g", k, p.Coef.At(k), f, e)
		}
	}
}

// All weights 1: the coefficient of z^c is the number of assignments with counts c,
// found by listing them all.
func TestProductCountsAssignments(t *testing.T) {
	for d := 1; d <= 4; d++ {
		const n = 6
		counts := map[monomial]float64{}
		total := 1
		for range n {
			total *= d
		}
		for x := range total {
			var m monomial
			for rest, leg := x, 0; leg < n; leg, rest = leg+1, rest/d {
				if level := rest % d; level > 0 {
					m[level-1]++
				}
			}
			counts[m]++
		}
		row := make([]float64, d)
		for a := range row {
			row[a] = 1
		}
		ps := make([]Poly, n)
		for i := range ps {
			ps[i] = Linear(row)
		}
		p, c := Product(d-1, ps, nil), make([]int, d-1)
		for i := range p.Coef.Mant {
			var m monomial
			copy(m[:], c)
			if got := p.Coef.At(i); got != scaled.FromFloat(counts[m]) {
				t.Fatalf("%d values: coefficient %v is %v, %v assignments have these counts",
					d, c, got, counts[m])
			}
			next(c, p.Shape)
		}
	}
}

// Two levels: n²/2 multiply-adds up to lower order, and so a factor of four for twice the legs.
func TestProductCostGrowsWithTheSquareOfTheLegs(t *testing.T) {
	cost := func(n int) float64 {
		var ops Ops
		Product(1, legs(n, 1), &ops)
		return float64(ops.MulAdds)
	}
	for n := 128; n <= 2048; n *= 2 {
		square, growth := cost(n)/float64(n*n), cost(2*n)/cost(n)
		if square < 0.5 || square > 0.6 {
			t.Errorf("%d legs take %.3f n² multiply-adds, expected 0.5 to 0.6", n, square)
		}
		if growth < 3.7 || growth > 4.05 {
			t.Errorf("from %d to %d legs the cost grows by %.2f", n, 2*n, growth)
		}
	}
}

func TestProductEdges(t *testing.T) {
	if one := Product(2, nil, nil); one.Vars() != 2 || one.At([]int{0, 0}) != scaled.One ||
		one.Size() != 1 {
		t.Errorf("the empty product is %v", one)
	}
	zero := Product(1, []Poly{Linear([]float64{1, 2}), Linear([]float64{0, 0}),
		Linear([]float64{3, 4})}, nil)
	if !zero.IsZero() || !isCanonical(zero.Coef) {
		t.Errorf("a product with a zero leg is %v", zero)
	}
	numbers := Product(0, []Poly{Linear([]float64{3}), Linear([]float64{-5})}, nil)
	if got := numbers.At(nil); got != scaled.FromFloat(-15) {
		t.Errorf("without variables 3·(−5) is %v", got)
	}
}
