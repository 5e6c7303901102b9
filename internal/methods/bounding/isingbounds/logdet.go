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

// UpperBound returns an upper bound of ln Z of a model of n spins (without Constant), in nats:
//
//	ln Z ≤ ½ Σ_{i≥0} d_i + ½ Σ_{i≥1} d_i/s_i − ½ ln det(D − A) − (n+1)/2 + Σ_{i≥1} (½ ln s_i + ln 2 − I(s_i))
//
// A is the matrix of couplings, with the fields in row and column 0. D is any diagonal matrix d_0 … d_n for which D − A is positive
// definite. s_1 … s_n are any numbers above 0, the signal-to-noise ratios of spins that are seen through Gaussian noise, and I(s) = s − E
// ln cosh(s + √s z) for a standard normal z is the information about such a spin. The bound follows from H(x) ≤ I(x; y) + Σ_i H(x_i |
// y_i) for spins x seen as y (docs/explanation/estimates.md).
//
// In each round every s_i is set to about its best value, and then d is improved by a step of Newton's method. It ends after the given
// number of rounds, or if a round gains less than 1e-4 nats. The best bound of all rounds counts, with a margin for rounding. If there
// are few rounds, or none, d begins just above the largest eigenvalue of A. Then the model is divided into slices, whose bounds are added
// up: at most maxBounds bounds are computed in all (divideSlices). Cost: DeterminantCost. The error is that of the context.
func UpperBound(ctx context.Context, m *ising.Model, rounds, maxBounds int) (float64, error) {
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
	if err := divideSlices(ctx, m, root, maxBounds); err != nil {
		return 0, err
	}
	total := root.lnTotal()
	return total + 1e-12*(math.Abs(total)+1), nil // a margin for the roundings of lnTotal, chosen
}

// DeterminantCost returns an upper bound of the cost of UpperBound for n spins, with the same rounds and maxBounds: its time in flops at
// 3e9 a second, and its memory in bytes. The first of the maxBounds bounds is that of the model and takes the given rounds. All other
// bounds are of slices, which are the model with some spins held at fixed signs, and take sliceRounds rounds each.
func DeterminantCost(n, rounds, maxBounds int) (flops, bytes float64) {
	size := float64(n) + 1 // rows of the matrix
	// A round inverts and factorises matrices, 5 size³ together. The matrices take 48 bytes for each entry: 6 numbers.
	flops = (5*size*size*size + spinWork*size) * (float64(rounds) + sliceRounds*float64(maxBounds-1))
	if rounds < fewRounds { // startSpectrally: powerSteps products with A, and some factorisations of size³/3
		flops += 1.5*size*size*size + 2*(powerSteps+100)*size*size // 100: for the passes of its trials over their matrices
	}
	return flops, 48*size*size + 2*float64(maxBounds)*(40*size+200) // a slice has at most 40 bytes for each spin and 200 more
}

// fewRounds is the number of rounds from which on the start does not matter. Measured on dense models of 100 and 300 spins, whose bounds
// with one round were 108 and 511 for 92 and 261 in the end; above the largest eigenvalue they begin at 94 and 266.
const fewRounds = 8

// powerSteps is the number of products with A in the search for its largest eigenvalue.
const powerSteps = 80

// startSpectrally sets all d_i to one number x and all s_i to one number, the best for x, if that gives a better bound. It tries numbers x
// from just above the largest eigenvalue of A on, each 1.1 times the one before, until the bound rises.
func (p *determinant) startSpectrally(ctx context.Context) {
	p.setSpinTerms()
	best, _ := p.boundAt(p.d)
	previous := math.Inf(1)
	for x := 1.01 * p.largestEigenvalue(); x > 0 && ctx.Err() == nil; x *= 1.1 { // 1 %: largestEigenvalue is from below; chosen
		s := 1.0
		for range 12 { // steps of at most a factor of 2, so that they reach almost all ratios
			s = bestRatio(x, s)
		}
		trial := &determinant{n: p.n, matrix: p.matrix, d: slices.Repeat([]float64{x}, p.n+1), s: slices.Repeat([]float64{s}, p.n)}
		trial.setSpinTerms()
		bound, ok := trial.boundAt(trial.d)
		hasRisen := ok && bound >= previous
		isHopeless := !ok && x > p.d[0]+p.d[p.n] // D − A is not positive definite even for a large x
		if hasRisen || isHopeless {
			return
		}
		previous = bound
		if bound < best {
			best, p.d, p.s = bound, trial.d, trial.s
		}
	}
}

// largestEigenvalue returns an approximation from below of the largest eigenvalue of A: the Rayleigh quotient v·Av / v·v after powerSteps
// steps of power iteration, v ← (A + shift) v / ‖…‖. The shift is 0 at first. After a quarter of the steps it is half of the spectral
// radius, so that the largest eigenvalue then has the largest magnitude. matrix[i*n+j] is entry (i, j) of A.
func (p *determinant) largestEigenvalue() float64 {
	n := p.n + 1
	v, w := make([]float64, n), make([]float64, n)
	for i := range v {
		v[i] = 1 + float64(i*37%101)/101 // any vector that is not orthogonal to the eigenvector
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
		quotient = dot/norm - shift
		if square == 0 { // A is 0
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

// setSpinTerms sets spinTerms, the sum Σ_i (½ ln s_i + ln 2 − I(s_i)) over all spins, for the current s. I(s) is the information about a
// spin that is seen through Gaussian noise with the signal-to-noise ratio s (information).
func (p *determinant) setSpinTerms() {
	p.spinTerms = 0
	previous, term := math.NaN(), 0.0 // if equal s follow each other, their term is computed once
	for _, s := range p.s {
		if s != previous {
			previous, term = s, math.Log(s)/2+math.Ln2-information(s)
		}
		p.spinTerms += term
	}
}

// spinWork is the work of a round for a single spin, flops. Measured.
const spinWork = 5e4

// determinant is the bound of UpperBound at some d and s.
type determinant struct {
	n         int
	matrix    []float64 // A, (n+1)² numbers: the fields in the first row and column, then the couplings
	d         []float64 // n+1 numbers
	s         []float64 // n signal-to-noise ratios
	spinTerms float64   // Σ (½ ln s_i + ln 2 − I(s_i))
}

// difference returns the matrix D − A, row-major with n+1 rows and columns, for a diagonal d.
func (p *determinant) difference(d []float64) []float64 {
	difference := make([]float64, len(p.matrix))
	for k, x := range p.matrix {
		difference[k] = -x
	}
	for i, x := range d { // the diagonal of A is 0
		difference[i*(p.n+1)+i] = x
	}
	return difference
}

// newDeterminant returns the bound of a model at d_i slightly above the sum of absolute entries of row i of A, so that D − A is positive
// definite, and at s_i = 1. In the model m.H are the fields, and the couplings of spin i are m.J[k], to spin m.To[k], for
// m.First[i] ≤ k < m.First[i+1].
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
		p.d[i] = 1.05*p.d[i] + 0.1 // chosen margins
	}
	for i := range p.s {
		p.s[i] = 1
	}
	return p
}

// improve returns the best of the bounds at the start and after each of the given number of rounds, with a margin for rounding. A round
// improves s and then d. It ends earlier with the context, or if a round gains less than 1e-4 nats. It returns +Inf if there is no bound.
func (p *determinant) improve(ctx context.Context, rounds int) float64 {
	best := math.Inf(1)
	for k := 0; k <= rounds && ctx.Err() == nil; k++ {
		isStart := k == 0
		if !isStart {
			for i := range p.s {
				p.s[i] = bestRatio(p.d[i+1], p.s[i])
			}
		}
		p.setSpinTerms()
		if !isStart {
			p.stepNewton()
		}
		bound, _ := p.boundAt(p.d)
		gain := best - bound
		best = min(best, bound)
		if gain < 1e-4 {
			break
		}
	}
	return best + 1e-11*(math.Abs(best)+float64(p.n)) // the margin; I(s) of each spin is right to 1e-11
}

// boundAt returns the bound at a diagonal d and the current s: the formula of UpperBound. It returns +Inf and false if D − A is not
// positive definite, or if its condition number is too large for float64.
func (p *determinant) boundAt(d []float64) (bound float64, ok bool) {
	c, err := linalg.NewCholesky(p.difference(d), p.n+1)
	if err != nil || c.Condition() > 1e10 { // ten of 16 digits: the logarithm of the determinant would lose too many
		return math.Inf(1), false
	}
	bound = d[0]/2 - c.LogDet()/2 - float64(p.n+1)/2 + p.spinTerms
	for i, s := range p.s {
		bound += d[i+1]/2 + d[i+1]/s/2
	}
	return bound, true
}

// stepNewton lowers the bound by a step of Newton's method in d, in which the bound is convex. With M = (D − A)^−1 the gradient is ½(1 +
// 1/s_i − M_ii), without the 1/s_i for i = 0, and the Hessian is ½ M_ik². The step is halved until the bound is lower. d stays as it is
// if there is no such step.
func (p *determinant) stepNewton() {
	// If a matrix is singular by rounding, there is no step.
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
		gradient[i] = (1 - inverse[i*(p.n+1)+i]) / 2
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
	current, _ := p.boundAt(p.d)
	trial := make([]float64, p.n+1)
	for length := 1.0; length > 1e-6; length /= 2 { // 20 halvings, chosen
		for i := range trial {
			trial[i] = p.d[i] - length*step[i]
		}
		if bound, ok := p.boundAt(trial); ok && bound < current {
			p.d = trial
			return
		}
	}
}

// bestRatio returns about the s from s0/2 to 2·s0 at which d/(2s) + ½ ln s − I(s) is smallest. It is the root of the derivative
// −d/(2s²) + 1/(2s) − I'(s), by bisection in ln s. I' is interpolated linearly between informationSlopes. It need not be precise, since any
// s gives a bound.
func bestRatio(d, s0 float64) float64 {
	slopes := informationSlopes()
	low, high := math.Log(max(s0/2, leastRatio)), math.Log(min(2*s0, largestRatio))
	for range 24 { // halvings, to a relative 1e-7 of s
		mid := (low + high) / 2
		position := (mid - math.Log(leastRatio)) / ratioStep // of mid in slopes
		k := min(int(position), len(slopes)-2)
		slope := slopes[k] + (position-float64(k))*(slopes[k+1]-slopes[k])
		s := math.Exp(mid)
		derivative := -d/(2*s*s) + 1/(2*s) - slope
		if derivative < 0 {
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

// information returns I(s) = s − E ln cosh(s + √s z) in nats, for a standard normal z: the information about a spin that is seen through
// Gaussian noise with the signal-to-noise ratio s.
func information(s float64) float64 {
	return s - normalMean(s, func(x float64) float64 {
		x = math.Abs(x)
		return x + math.Log1p(math.Exp(-2*x)) - math.Ln2 // ln cosh x without overflow
	})
}

// informationSlope returns the derivative I'(s) = ½ (1 − E tanh(s + √s z)), which is half of the mean square error of the best guess of the
// spin.
func informationSlope(s float64) float64 { return (1 - normalMean(s, math.Tanh)) / 2 }

// normalMean returns E f(s + √s z) for a standard normal z. It is a sum over equal steps of z from −8 to 8, beyond which the density is
// below e^−32. If f is analytic within π/2 of the real line, its error falls as e^{−π²/(step √s)} and e^{−2π²/step²}.
func normalMean(s float64, f func(x float64) float64) float64 {
	root := math.Sqrt(s)
	step := min(0.6, 0.33/root) // the errors are below e^−29 and e^−54
	n := int(math.Ceil(8 / step))
	sum, density := 0.0, 0.0
	for k := -n; k <= n; k++ {
		z := float64(k) * step
		w := math.Exp(-z * z / 2)
		sum += w * f(s+root*z)
		density += w
	}
	return sum / density
}
