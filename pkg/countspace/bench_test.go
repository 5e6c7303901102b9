package countspace

import (
	"fmt"
	"math/rand/v2"
	"testing"
)

// legs returns n linear polynomials in vars variables, weights in [0.1, 1.1), from a fixed seed.
func legs(n, vars int) []Poly {
	rng := rand.New(rand.NewPCG(uint64(n), uint64(vars)))
	ps := make([]Poly, n)
	for i := range ps {
		row := make([]float64, vars+1)
		for a := range row {
			row[a] = 0.1 + rng.Float64()
		}
		ps[i] = Linear(row)
	}
	return ps
}

func BenchmarkProductTwoLevels(b *testing.B) {
	for _, n := range []int{100, 300, 1000, 3000, 10000} {
		ps := legs(n, 1)
		b.Run(fmt.Sprintf("legs=%d", n), func(b *testing.B) {
			var ops Ops
			for b.Loop() {
				Product(1, ps, &ops)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(ops.MulAdds), "ns/muladd")
		})
	}
}

func BenchmarkProductThreeLevels(b *testing.B) {
	for _, n := range []int{30, 60, 120} {
		ps := legs(n, 2)
		b.Run(fmt.Sprintf("legs=%d", n), func(b *testing.B) {
			var ops Ops
			for b.Loop() {
				Product(2, ps, &ops)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(ops.MulAdds), "ns/muladd")
		})
	}
}

func BenchmarkDot(b *testing.B) {
	p := Product(1, legs(1000, 1), nil)
	for b.Loop() {
		Dot(p, p, nil)
	}
}

// The work of a learning sweep per leg: one leg more, one leg less, one pairing.
func BenchmarkOneLeg(b *testing.B) {
	p, leg := Product(1, legs(1000, 1), nil), legs(1, 1)[0]
	b.Run("mul", func(b *testing.B) {
		for b.Loop() {
			p.Mul(leg, nil)
		}
	})
	b.Run("correlate", func(b *testing.B) {
		for b.Loop() {
			Correlate(p, leg, nil)
		}
	})
}
