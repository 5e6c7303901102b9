package structured

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestTrapezoidalRuleIsRightEntryByEntry: the sum over the nodes beside e^{½ λ s²} at random assignments. For λ > 0 the error is relative
// and the same whatever s, for λ < 0 it is absolute.
func TestTrapezoidalRuleIsRightEntryByEntry(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 8))
	for range 200 {
		n := 12 + rng.IntN(200)
		f := &Fit{Lambda: []float64{4 * rng.NormFloat64() / float64(n)}}
		for range n {
			d := 2 + rng.IntN(3)
			f.Domains = append(f.Domains, d)
			for range d {
				f.Field = append(f.Field, 0)
				f.Vectors = append(f.Vectors, 2*rng.NormFloat64())
			}
		}
		a, lambda := f.axes()[0], f.Lambda[0]
		for _, high := range []bool{false, true} { // the largest |s|, too
			s, at := 0.0, 0
			for _, d := range f.Domains {
				v := f.Vectors[at+rng.IntN(d)]
				if high {
					for _, other := range f.Vectors[at : at+d] {
						v = max(v, other)
					}
				}
				s, at = s+v, at+d
			}
			exponent, sum := lambda/2*s*s, 0.0
			for m := a.first; m <= a.last; m++ {
				turn := a.sqrtLambda * a.step * float64(m) * s
				if a.isNegative {
					sum += math.Exp(a.lnWeight(m)) * math.Cos(turn)
				} else {
					sum += math.Exp(a.lnWeight(m) + turn - exponent)
				}
			}
			want := 1.0
			if a.isNegative {
				want = math.Exp(exponent)
			}
			if off, most := math.Abs(sum-want), 1e-15*(8+math.Abs(exponent)); off > most {
				t.Errorf("n = %d, λ = %v, s = %v: off by %.2g, at most %.2g is expected", n, lambda, s, off, most)
			}
		}
	}
}

// TestErrorOfEntriesBoundsZ: the sum over all nodes is right within the error of the worst entry, because all entries are positive.
func TestErrorOfEntriesBoundsZ(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 8))
	const n = 12
	f := &Fit{Lambda: []float64{0.7}, Domains: make([]int, n), Field: make([]float64, 2*n), Vectors: make([]float64, 2*n)}
	for x := range f.Vectors {
		f.Domains[x/2], f.Field[x], f.Vectors[x] = 2, rng.NormFloat64(), rng.NormFloat64()
	}
	for _, coarse := range []float64{1, 2, 2.5} {
		a := f.axes()[0]
		a.step *= coarse // of h = 0.72: errors that can be seen
		worst, z, rule := 0.0, 0.0, 0.0
		for x := range 1 << n {
			field, s := 0.0, 0.0
			for v := range n {
				at := 2*v + x>>v&1
				field, s = field+f.Field[at], s+f.Vectors[at]
			}
			sum := 0.0
			for m := a.first; m <= a.last; m++ {
				sum += math.Exp(a.lnWeight(m) + a.sqrtLambda*a.step*float64(m)*s)
			}
			entry := math.Exp(f.Lambda[0] / 2 * s * s)
			worst = max(worst, math.Abs(sum/entry-1))
			z, rule = z+math.Exp(field)*entry, rule+math.Exp(field)*sum
		}
		stated := 2.2*math.Exp(-2*math.Pi*math.Pi/(a.step*a.step)) + 1e-14
		if worst > stated || math.Abs(rule/z-1) > worst+1e-14 {
			t.Errorf("h = %v: entries off by %.2g, stated %.2g; Z off by %.2g", a.step, worst, stated, math.Abs(rule/z-1))
		}
	}
}
