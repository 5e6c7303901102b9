package structured

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestFloats: products and sums of numbers of any range beside those with an exponent to each, near the ends of mantissas above all.
func TestFloats(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 9))
	draw := func() scaled.Number {
		exp := int64(rng.IntN(2400) - 1200)
		if rng.IntN(2) > 0 {
			exp = unitBits*int64(rng.IntN(5)-2) + halfUnit*int64(2*rng.IntN(2)-1) + int64(rng.IntN(5)-2)
		}
		return scaled.Make(1+rng.Float64(), exp)
	}
	near := func(x float, want scaled.Number) bool {
		return math.Abs(x.scaledNumber().Div(want).Float64()-1) < 1e-15 && x.mant >= 0x1p-257 && x.mant < 0x1p257
	}
	for range 20_000 {
		a, b := draw(), draw()
		if rng.IntN(3) == 0 { // of one size
			b = scaled.Make(1+rng.Float64(), a.Exp+int64(rng.IntN(9)-4))
		}
		x, y := floatOf(a), floatOf(b)
		if got := x.times(y); !near(got, a.Mul(b)) {
			t.Fatalf("%v · %v = %v", a, b, got)
		}
		if got := x.plus(y); !near(got, a.Add(b)) {
			t.Fatalf("%v + %v = %v", a, b, got)
		}
		if got := x.plus(float{}); got != x || (float{}).plus(x) != x || (float{}).times(x).mant != 0 {
			t.Fatalf("%v + 0 = %v", a, got)
		}
	}
}

// TestLattices: integers in a random basis are found again, up to a basis of their lattice, and reals are not.
func TestLattices(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 10))
		k, n := 1+int(seed%3), 30
		m := &interactions{}
		s := &lowRank{lambda: make([]float64, k), directions: make([]float64, k*n)}
		turn := make([]float64, k*k)
		for x := range turn {
			turn[x] = rng.NormFloat64()
		}
		want := make([][]int64, n)
		for i := range n {
			m.domains, m.firstValue = append(m.domains, 2), append(m.firstValue, 2*i)
			m.firstCoordinate, m.functions = append(m.firstCoordinate, i), append(m.functions, helmert(2))
			m.field = append(m.field, floats.Sum{}, floats.Sum{})
			for c := range k {
				want[i] = append(want[i], rng.Int64N(13)-6)
				for r := range k {
					s.directions[r*n+i] += turn[c*k+r] * float64(want[i][c])
				}
			}
		}
		m.order = n
		for c := range s.lambda {
			s.lambda[c] = math.Copysign(1+rng.Float64(), rng.NormFloat64())
		}
		found := m.findLattice(s)
		if found == nil {
			t.Fatalf("seed %d: %d statistics are no integers", seed, k)
		}
		// Relations between integers hold in every basis.
		for range 200 {
			a, b := rng.IntN(n), rng.IntN(n)
			if k == 1 && want[a][0]*found.Values[2*b+1] != want[b][0]*found.Values[2*a+1] {
				t.Fatalf("seed %d: %d : %d became %d : %d", seed, want[a][0], want[b][0], found.Values[2*a+1], found.Values[2*b+1])
			}
		}
		for x := range s.directions {
			s.directions[x] = rng.NormFloat64()
		}
		if found := m.findLattice(s); found != nil {
			if _, err := found.keys(m.domains); err == nil {
				t.Errorf("seed %d: reals are integers", seed)
			}
		}
	}
}
