// Package isingbounds bounds ln Z of models of spins: from above by a determinant, and from below, where couplings attract, by Bethe's
// value at any beliefs.
package isingbounds

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/ising"
	"github.com/basetensor/basetensor/internal/linalg"
)

// Determinant returns a bound above ln Z (without Constant), nats, from H(x) ≤ I(x; y) + Σ_i H(x_i | y_i) for spins x seen through Gaussian
// noise (docs/method.md): with A the matrix of couplings, fields in a first row and column, any diagonal d with D − A positive
// definite, and any s > 0,
//
//	ln Z ≤ ½ Σ_{i≥0} d_i + ½ Σ_{i≥1} d_i/s_i − ½ ln det(D − A) − (n+1)/2 + Σ_{i≥1} (½ ln s_i + ln 2 − I(s_i)),
//
// I(s) = s − E ln cosh(s + √s z), z standard normal. d and s are improved in turn, s each by itself and d by Newton's method, until rounds
// are over or a round gains less than 1e-4 nats. Any d and s give a bound: the best is returned, rounding on its side. Cost: some 16 n³
// flops a round, and 48 n² bytes. The error is the context's.
func Determinant(ctx context.Context, m *ising.Model, rounds int) (float64, error) {
	n := m.N
	p := &determinant{n: n, a: make([]float64, (n+1)*(n+1)), d: make([]float64, n+1), s: make([]float64, n)}
	for i := range n {
		p.a[i+1], p.a[(i+1)*(n+1)] = m.H[i], m.H[i]
		for k := m.First[i]; k < m.First[i+1]; k++ {
			p.a[(i+1)*(n+1)+int(m.To[k])+1] = m.J[k]
		}
	}
	for i := range p.d {
		for k := range n + 1 {
			p.d[i] += math.Abs(p.a[i*(n+1)+k])
		}
		p.d[i] = 1.05*p.d[i] + 0.1
	}
	for i := range p.s {
		p.s[i] = 1
	}

	best, ok := p.value(p.d)
	if !ok {
		return math.Inf(1), nil
	}
	for range rounds {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		for i := range p.s {
			p.s[i] = bestNoise(p.d[i+1], p.s[i])
		}
		p.newton()
		value, _ := p.value(p.d)
		gain := best - value
		best = min(best, value)
		if gain < 1e-4 {
			break
		}
	}
	return best + 1e-11*(math.Abs(best)+float64(n)), nil
}

// determinant is the bound at d and s.
type determinant struct {
	n    int
	a    []float64 // (n+1)²
	d, s []float64
}

// noise is D − A.
func (p *determinant) noise(d []float64) []float64 {
	out := make([]float64, len(p.a))
	for k, x := range p.a {
		out[k] = -x
	}
	for i, x := range d {
		out[i*(p.n+2)] = x
	}
	return out
}

// value is the bound at a diagonal, false where there is none.
func (p *determinant) value(d []float64) (float64, bool) {
	c, err := linalg.NewCholesky(p.noise(d), p.n+1)
	if err != nil || c.Condition() > 1e10 {
		return math.Inf(1), false
	}
	v := d[0]/2 - c.LogDet()/2 - float64(p.n+1)/2
	for i, s := range p.s {
		v += d[i+1]/2 + d[i+1]/s/2 + math.Log(s)/2 + math.Ln2 - information(s)
	}
	return v, true
}

// newton takes steps in d that lower the bound, which is convex in it: gradient ½(1 + 1/s_i − M_ii), Hessian ½ M_ik² with M = (D − A)^−1.
func (p *determinant) newton() {
	for range 3 {
		inverse, err := linalg.Inverse(p.noise(p.d), p.n+1)
		if err != nil {
			return
		}
		hessian := make([]float64, len(inverse))
		for k, x := range inverse {
			hessian[k] = x * x / 2
		}
		gradient := make([]float64, p.n+1)
		for i := range gradient {
			gradient[i] = (1 - inverse[i*(p.n+2)]) / 2
			if i > 0 {
				gradient[i] += 1 / p.s[i-1] / 2
			}
		}
		solver, err := linalg.NewCholesky(hessian, p.n+1)
		if err != nil {
			return
		}
		step, err := solver.Solve(gradient)
		if err != nil {
			return
		}
		now, _ := p.value(p.d)
		next := make([]float64, p.n+1)
		length := 1.0
		for ; length > 1e-6; length /= 2 {
			for i := range next {
				next[i] = p.d[i] - length*step[i]
			}
			if v, ok := p.value(next); ok && v < now {
				break
			}
		}
		if length <= 1e-6 {
			return
		}
		p.d = next
	}
}

// bestNoise is the s at which d/(2s) + ½ ln s − I(s) is least, from ½ s0 to 2 s0: its derivative −d/(2s²) + 1/(2s) − I'(s), by bisection.
func bestNoise(d, s0 float64) float64 {
	slope := func(s float64) float64 { return -d/(2*s*s) + 1/(2*s) - information1(s) }
	low, high := math.Log(max(s0/2, leastNoise)), math.Log(min(2*s0, mostNoise))
	for range 24 {
		mid := (low + high) / 2
		if slope(math.Exp(mid)) < 0 {
			low = mid
		} else {
			high = mid
		}
	}
	return math.Exp((low + high) / 2)
}

// The signal-to-noise ratios looked at: up to mostNoise the sums below are right to 1e-11.
const (
	leastNoise = 1e-4
	mostNoise  = 300
)

// information is I(s) = s − E ln cosh(s + √s z), nats: that of a spin seen through noise.
func information(s float64) float64 {
	return s - normal(s, func(x float64) float64 {
		x = math.Abs(x)
		return x + math.Log1p(math.Exp(-2*x)) - math.Ln2
	})
}

// information1 is its derivative, half of the error of the best guess: ½ (1 − E tanh(s + √s z)).
func information1(s float64) float64 { return (1 - normal(s, math.Tanh)) / 2 }

// normal is E f(s + √s z) of a function that is analytic within π/2 of the real line: a sum over equal steps, whose error falls with
// e^{−π²/(step √s)} and e^{−2π²/step²}.
func normal(s float64, f func(x float64) float64) float64 {
	root := math.Sqrt(s)
	h := min(0.6, 0.33/root)
	n := int(math.Ceil(8 / h))
	sum, weight := 0.0, 0.0
	for k := -n; k <= n; k++ {
		z := float64(k) * h
		w := math.Exp(-z * z / 2)
		sum += w * f(s+root*z)
		weight += w
	}
	return sum / weight
}
