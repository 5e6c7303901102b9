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

// Determinant returns an upper bound of ln Z (without Constant), nats, from H(x) ≤ I(x; y) + Σ_i H(x_i | y_i) for spins x seen through
// Gaussian noise (docs/explanation/estimates.md): with A the matrix of couplings, fields in a first row and column, any diagonal d with D −
// A positive definite, and any s > 0,
//
//	ln Z ≤ ½ Σ_{i≥0} d_i + ½ Σ_{i≥1} d_i/s_i − ½ ln det(D − A) − (n+1)/2 + Σ_{i≥1} (½ ln s_i + ln 2 − I(s_i)),
//
// I(s) = s − E ln cosh(s + √s z), z standard normal. d and s are improved in turn, s each by itself and d by a step of Newton's method,
// until rounds are over or a round gains less than 1e-4 nats. Any d and s give a bound: the best is returned, with a margin for rounding
// added. Few rounds, or none, begin with d just above A's largest eigenvalue. The model is divided into slices, with at most that many
// bounds in all, which are added up (see divideSlices). Cost: DeterminantCost. The error is that of the context.
func Determinant(ctx context.Context, m *ising.Model, rounds, most int) (float64, error) {
	p := newDeterminant(m)
	if rounds < fewRounds {
		p.startSpectrally(ctx)
	}
	root := &slice{upperBound: p.improve(ctx, rounds), d: p.d, s: p.s, fields: m.H}
	for i := range m.N {
		root.open = append(root.open, int32(i))
	}
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := divideSlices(ctx, m, root, most); err != nil {
		return 0, err
	}
	total := root.lnTotal()
	return total + 1e-12*(math.Abs(total)+1), nil
}

// DeterminantCost returns a bound of the cost of Determinant for n spins: its time in flops at 3e9 a second, and bytes.
func DeterminantCost(n, rounds, most int) (flops, bytes float64) {
	x := float64(n) + 1
	flops = (5*x*x*x + spinWork*x) * (float64(rounds) + sliceRounds*float64(most-1))
	if rounds < fewRounds {
		flops += 1.5*x*x*x + 2*(powerSteps+100)*x*x
	}
	return flops, 48*x*x + 2*float64(most)*(40*x+200)
}

// fewRounds is the number of rounds from which on the start does not matter. Measured on dense models of 100 and 300 spins, whose bounds
// with one round were 108 and 511 for 92 and 261 in the end; above the largest eigenvalue they begin at 94 and 266.
const fewRounds = 8

// powerSteps is the number of products with A in the search for its largest eigenvalue.
const powerSteps = 80

// startSpectrally sets all of d to one number and all of s to the best one for it, if that gives a better bound. It tries numbers from just
// above the largest eigenvalue of A on, in steps of a tenth, until the bound rises.
func (p *determinant) startSpectrally(ctx context.Context) {
	p.setSpinTerms()
	best, _ := p.boundAt(p.d)
	previous := math.Inf(1)
	for x := 1.01 * p.largestEigenvalue(); x > 0 && ctx.Err() == nil; x *= 1.1 {
		s := 1.0
		for range 12 {
			s = bestRatio(x, s)
		}
		trial := &determinant{n: p.n, matrix: p.matrix, d: slices.Repeat([]float64{x}, p.n+1), s: slices.Repeat([]float64{s}, p.n)}
		trial.setSpinTerms()
		bound, ok := trial.boundAt(trial.d)
		if ok && bound >= previous || x > p.d[0]+p.d[p.n] && !ok {
			return
		}
		if previous = bound; bound < best {
			best, p.d, p.s = bound, trial.d, trial.s
		}
	}
}

// largestEigenvalue returns about the largest eigenvalue of A, from below: a Rayleigh quotient by power iteration. After a quarter of the
// steps A is shifted by half of its spectral radius, so that the largest eigenvalue has the largest magnitude.
func (p *determinant) largestEigenvalue() float64 {
	n := p.n + 1
	v, w := make([]float64, n), make([]float64, n)
	for i := range v {
		v[i] = 1 + float64(i*37%101)/101
	}
	shift, quotient := 0.0, 0.0
	for k := range powerSteps {
		dot, square := 0.0, 0.0 // w·v and w·w of w = (A + shift) v
		for i := range n {
			x := shift * v[i]
			for j, a := range p.matrix[i*n:][:n] {
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

// setSpinTerms computes spinTerms for the present s.
func (p *determinant) setSpinTerms() {
	p.spinTerms = 0
	last, term := math.NaN(), 0.0 // the term of equal s in sequence is computed once
	for _, s := range p.s {
		if s != last {
			last, term = s, math.Log(s)/2+math.Ln2-information(s)
		}
		p.spinTerms += term
	}
}

// spinWork is the work of a round for a single spin, flops. Measured.
const spinWork = 5e4

// determinant is the bound at d and s.
type determinant struct {
	n         int
	matrix    []float64 // A, (n+1)² numbers: the fields in the first row and column, then the couplings
	d         []float64 // n+1 numbers
	s         []float64 // n signal-to-noise ratios
	spinTerms float64   // Σ (½ ln s_i + ln 2 − I(s_i))
}

// difference returns D − A for a diagonal d.
func (p *determinant) difference(d []float64) []float64 {
	out := make([]float64, len(p.matrix))
	for k, x := range p.matrix {
		out[k] = -x
	}
	for i, x := range d {
		out[i*(p.n+2)] = x // row i, column i of n+1
	}
	return out
}

// newDeterminant returns the bound of a model at a diagonal that dominates its rows, and s of 1.
func newDeterminant(m *ising.Model) *determinant {
	n := m.N
	p := &determinant{n: n, matrix: make([]float64, (n+1)*(n+1)), d: make([]float64, n+1), s: make([]float64, n)}
	for i := range n {
		p.matrix[i+1], p.matrix[(i+1)*(n+1)] = m.H[i], m.H[i]
		for k := m.First[i]; k < m.First[i+1]; k++ {
			p.matrix[(i+1)*(n+1)+int(m.To[k])+1] = m.J[k]
		}
	}
	for i := range p.d {
		for k := range n + 1 {
			p.d[i] += math.Abs(p.matrix[i*(n+1)+k])
		}
		p.d[i] = 1.05*p.d[i] + 0.1
	}
	for i := range p.s {
		p.s[i] = 1
	}
	return p
}

// improve returns the best bound of that many rounds, with a margin for rounding. It ends earlier with the context, or if a round gains
// little. It returns +Inf if there is no bound.
func (p *determinant) improve(ctx context.Context, rounds int) float64 {
	best := math.Inf(1)
	for k := 0; k <= rounds && ctx.Err() == nil; k++ {
		if k > 0 {
			for i := range p.s {
				p.s[i] = bestRatio(p.d[i+1], p.s[i])
			}
		}
		p.setSpinTerms()
		if k > 0 {
			p.stepNewton()
		}
		bound, _ := p.boundAt(p.d)
		gain := best - bound
		best = min(best, bound)
		if gain < 1e-4 {
			break
		}
	}
	return best + 1e-11*(math.Abs(best)+float64(p.n))
}

// boundAt returns the bound at a diagonal. It returns +Inf and false if D − A is not positive definite, or too near to that.
func (p *determinant) boundAt(d []float64) (bound float64, ok bool) {
	c, err := linalg.NewCholesky(p.difference(d), p.n+1)
	if err != nil || c.Condition() > 1e10 {
		return math.Inf(1), false
	}
	bound = d[0]/2 - c.LogDet()/2 - float64(p.n+1)/2 + p.spinTerms
	for i, s := range p.s {
		bound += d[i+1]/2 + d[i+1]/s/2
	}
	return bound, true
}

// stepNewton takes a step of Newton's method in d that lowers the bound, which is convex in d: the gradient is ½(1 + 1/s_i − M_ii), the
// Hessian ½ M_ik² with M = (D − A)^−1. The step is halved until the bound is lower. d stays as it is if no step is found.
func (p *determinant) stepNewton() {
	inverse, err := linalg.Inverse(p.difference(p.d), p.n+1)
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
	present, _ := p.boundAt(p.d)
	next := make([]float64, p.n+1)
	for length := 1.0; length > 1e-6; length /= 2 {
		for i := range next {
			next[i] = p.d[i] - length*step[i]
		}
		if bound, ok := p.boundAt(next); ok && bound < present {
			p.d = next
			return
		}
	}
}

// bestRatio returns about the s at which d/(2s) + ½ ln s − I(s) is least, from ½ s0 to 2 s0: the root of its derivative −d/(2s²) + 1/(2s) −
// I'(s), by bisection. I' is interpolated between informationSlopes. Any s gives a bound.
func bestRatio(d, s0 float64) float64 {
	slopes := informationSlopes()
	low, high := math.Log(max(s0/2, leastRatio)), math.Log(min(2*s0, largestRatio))
	for range 24 {
		mid := (low + high) / 2
		position := (mid - math.Log(leastRatio)) / ratioStep // in slopes
		k := min(int(position), len(slopes)-2)
		slope := slopes[k] + (position-float64(k))*(slopes[k+1]-slopes[k])
		if s := math.Exp(mid); -d/(2*s*s)+1/(2*s)-slope < 0 {
			low = mid
		} else {
			high = mid
		}
	}
	return math.Exp((low + high) / 2)
}

// informationSlopes returns I'(s) at steps of ratioStep in ln s, from leastRatio to largestRatio.
var informationSlopes = sync.OnceValue(func() (list []float64) {
	for ln := math.Log(leastRatio); ln < math.Log(largestRatio)+ratioStep; ln += ratioStep {
		list = append(list, informationSlope(math.Exp(ln)))
	}
	return list
})

// ratioStep is the step of ln s in informationSlopes.
const ratioStep = 1.0 / 64

// The signal-to-noise ratios s that are looked at: up to largestRatio the sums of normalMean are right to 1e-11.
const (
	leastRatio   = 1e-4
	largestRatio = 300
)

// information returns I(s) = s − E ln cosh(s + √s z), nats: the information about a spin that is seen through noise.
func information(s float64) float64 {
	return s - normalMean(s, func(x float64) float64 {
		x = math.Abs(x)
		return x + math.Log1p(math.Exp(-2*x)) - math.Ln2
	})
}

// informationSlope returns I'(s), half of the error of the best guess: ½ (1 − E tanh(s + √s z)).
func informationSlope(s float64) float64 { return (1 - normalMean(s, math.Tanh)) / 2 }

// normalMean returns E f(s + √s z), z standard normal, of a function that is analytic within π/2 of the real line. It is a sum over equal
// steps of z, whose error falls with e^{−π²/(step √s)} and e^{−2π²/step²}.
func normalMean(s float64, f func(x float64) float64) float64 {
	root := math.Sqrt(s)
	step := min(0.6, 0.33/root)
	n := int(math.Ceil(8 / step))
	sum, weight := 0.0, 0.0
	for k := -n; k <= n; k++ {
		z := float64(k) * step
		w := math.Exp(-z * z / 2)
		sum += w * f(s+root*z)
		weight += w
	}
	return sum / weight
}
