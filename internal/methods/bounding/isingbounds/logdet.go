// Package isingbounds bounds ln Z of models of spins: from above by a determinant, and from below, where couplings attract, by Bethe's
// value at any beliefs.
package isingbounds

import (
	"context"
	"math"
	"slices"
	"sync"

	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/internal/network/ising"
)

// Determinant returns a bound above ln Z (without Constant), nats, from H(x) ≤ I(x; y) + Σ_i H(x_i | y_i) for spins x seen through Gaussian
// noise (docs/explanation/estimates.md): with A the matrix of couplings, fields in a first row and column, any diagonal d with D − A
// positive definite, and any s > 0,
//
//	ln Z ≤ ½ Σ_{i≥0} d_i + ½ Σ_{i≥1} d_i/s_i − ½ ln det(D − A) − (n+1)/2 + Σ_{i≥1} (½ ln s_i + ln 2 − I(s_i)),
//
// I(s) = s − E ln cosh(s + √s z), z standard normal. d and s are improved in turn, s each by itself and d by a step of Newton's
// method, until rounds are over or a round gains less than 1e-4 nats. Any d and s give a bound: the best is returned, rounding on its side.
// Few rounds, or none, begin with d just above A's largest eigenvalue. The bounds of at most so many slices are added up, see branch.
// Cost: DeterminantCost. The error is the context's.
func Determinant(ctx context.Context, m *ising.Model, rounds, most int) (float64, error) {
	p := newDeterminant(m)
	if rounds < fewRounds {
		p.spectral(ctx)
	}
	root := &slice{above: p.improve(ctx, rounds), d: p.d, s: p.s, field: m.H}
	for i := range m.N {
		root.left = append(root.left, int32(i))
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := branch(ctx, m, root, most); err != nil {
		return 0, err
	}
	total := root.total()
	return total + 1e-12*(math.Abs(total)+1), nil
}

// DeterminantCost bounds the cost of Determinant for n spins: its time in flops at 3e9 a second, and bytes.
func DeterminantCost(n, rounds, most int) (flops, bytes float64) {
	x := float64(n) + 1
	flops = (5*x*x*x + spinWork*x) * (float64(rounds) + sliceRounds*float64(most-1))
	if rounds < fewRounds {
		flops += 1.5*x*x*x + 2*(powerSteps+100)*x*x
	}
	return flops, 48*x*x + 2*float64(most)*(40*x+200)
}

// fewRounds is the number of rounds from which on the beginning does not matter. Measured on dense models of 100 and 300 spins, whose
// bounds with one round were 108 and 511 for 92 and 261 in the end; above the largest eigenvalue they begin at 94 and 266.
const fewRounds = 8

// powerSteps is the number of products with A for its largest eigenvalue.
const powerSteps = 80

// spectral begins with one number on the diagonal, from just above the largest eigenvalue up to where the bound rises, and the best s for
// it, where that is better.
func (p *determinant) spectral(ctx context.Context) {
	p.see()
	best, _ := p.value(p.d)
	before := math.Inf(1)
	for x := 1.01 * p.largest(); x > 0 && ctx.Err() == nil; x *= 1.1 {
		s := 1.0
		for range 12 {
			s = bestNoise(x, s)
		}
		q := &determinant{n: p.n, a: p.a, d: slices.Repeat([]float64{x}, p.n+1), s: slices.Repeat([]float64{s}, p.n)}
		q.see()
		v, ok := q.value(q.d)
		if ok && v >= before || x > p.d[0]+p.d[p.n] && !ok {
			return
		}
		if before = v; v < best {
			best, p.d, p.s = v, q.d, q.s
		}
	}
}

// largest is about the largest eigenvalue of A, from below: a Rayleigh quotient by power iteration, A shifted by half of its spectral
// radius.
func (p *determinant) largest() float64 {
	n := p.n + 1
	v, w := make([]float64, n), make([]float64, n)
	for i := range v {
		v[i] = 1 + float64(i*37%101)/101
	}
	shift, quotient := 0.0, 0.0
	for k := range powerSteps {
		dot, square := 0.0, 0.0
		for i := range n {
			x := shift * v[i]
			for j, a := range p.a[i*n:][:n] {
				x += a * v[j]
			}
			w[i] = x
			dot, square = dot+x*v[i], square+x*x
		}
		norm := 0.0
		for _, x := range v {
			norm += x * x
		}
		if quotient = dot/norm - shift; square == 0 {
			return 0
		}
		if k == powerSteps/4 {
			shift = math.Sqrt(square/norm) / 2
		}
		for i := range v {
			v[i] = w[i] / math.Sqrt(square)
		}
	}
	return quotient
}

// see sets what the s alone add to the bound.
func (p *determinant) see() {
	p.seen = 0
	last, of := math.NaN(), 0.0
	for _, s := range p.s {
		if s != last {
			last, of = s, math.Log(s)/2+math.Ln2-information(s)
		}
		p.seen += of
	}
}

// spinWork is the work of a round per spin by itself, flops. Measured.
const spinWork = 5e4

// determinant is the bound at d and s.
type determinant struct {
	n    int
	a    []float64 // (n+1)²
	d, s []float64
	seen float64 // Σ (½ ln s_i + ln 2 − I(s_i))
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

// newDeterminant begins with a diagonal that dominates its rows.
func newDeterminant(m *ising.Model) *determinant {
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
	return p
}

// improve returns the best bound of so many rounds, or of fewer where the context ends or they gain little; +Inf for none.
func (p *determinant) improve(ctx context.Context, rounds int) float64 {
	best := math.Inf(1)
	for k := 0; k <= rounds && ctx.Err() == nil; k++ {
		if k > 0 {
			for i := range p.s {
				p.s[i] = bestNoise(p.d[i+1], p.s[i])
			}
		}
		p.see()
		if k > 0 {
			p.newton()
		}
		value, _ := p.value(p.d)
		gain := best - value
		best = min(best, value)
		if gain < 1e-4 {
			break
		}
	}
	return best + 1e-11*(math.Abs(best)+float64(p.n))
}

// value is the bound at a diagonal, false where there is none.
func (p *determinant) value(d []float64) (float64, bool) {
	c, err := linalg.NewCholesky(p.noise(d), p.n+1)
	if err != nil || c.Condition() > 1e10 {
		return math.Inf(1), false
	}
	v := d[0]/2 - c.LogDet()/2 - float64(p.n+1)/2 + p.seen
	for i, s := range p.s {
		v += d[i+1]/2 + d[i+1]/s/2
	}
	return v, true
}

// newton takes a step in d that lowers the bound, which is convex in it: gradient ½(1 + 1/s_i − M_ii), Hessian ½ M_ik² with M = (D − A)^−1.
func (p *determinant) newton() {
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
	for length := 1.0; length > 1e-6; length /= 2 {
		for i := range next {
			next[i] = p.d[i] - length*step[i]
		}
		if v, ok := p.value(next); ok && v < now {
			p.d = next
			return
		}
	}
}

// bestNoise is about the s at which d/(2s) + ½ ln s − I(s) is least, from ½ s0 to 2 s0: its derivative −d/(2s²) + 1/(2s) − I'(s), by
// bisection, with I' between its values at steps of ln s. Any s is as right.
func bestNoise(d, s0 float64) float64 {
	slopes := steps()
	low, high := math.Log(max(s0/2, leastNoise)), math.Log(min(2*s0, mostNoise))
	for range 24 {
		mid := (low + high) / 2
		at := (mid - math.Log(leastNoise)) / noiseStep
		k := min(int(at), len(slopes)-2)
		slope := slopes[k] + (at-float64(k))*(slopes[k+1]-slopes[k])
		if s := math.Exp(mid); -d/(2*s*s)+1/(2*s)-slope < 0 {
			low = mid
		} else {
			high = mid
		}
	}
	return math.Exp((low + high) / 2)
}

// steps are I'(s) at steps of ln s from leastNoise to mostNoise.
var steps = sync.OnceValue(func() (list []float64) {
	for ln := math.Log(leastNoise); ln < math.Log(mostNoise)+noiseStep; ln += noiseStep {
		list = append(list, information1(math.Exp(ln)))
	}
	return list
})

const noiseStep = 1.0 / 64

// The signal-to-noise ratios looked at: up to mostNoise the sums below are right to 1e-11.
const (
	leastNoise = 1e-4
	mostNoise  = 300
)

// information is I(s) = s − E ln cosh(s + √s z), nats: the information of a spin seen through noise.
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
