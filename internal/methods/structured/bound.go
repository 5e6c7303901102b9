package structured

// A bound of the weights of chains, and so of Z.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/linalg"
)

const (
	// maxBoundedOrder is the largest order of a residual whose eigenvalues are bounded: a factorisation takes a third of its cube in flops.
	maxBoundedOrder = 1536
	// lanczosSteps is the number of products with the residual that estimate its largest eigenvalue.
	lanczosSteps = 48
)

// boundDeviation returns an upper bound of ln B − ln B̃ over all states, nats, for the base tensor B and a fit B̃. It returns +Inf for
// matrices of order n above maxBoundedOrder. The difference is ½ ξᵀ R ξ for the n × n residual R of the interactions and the vector ξ of
// the basis functions at the state. It is at most ½ |ξ|² σ if no eigenvalue of R is above σ ≥ 0, that is, if σ − R has a Cholesky factor.
// |ξ|² is at most Σ_v (1 − 1/d_v) for domains d. Cost O(n³).
func (m *interactions) boundDeviation(residual []float64) float64 {
	n := m.order
	if n > maxBoundedOrder {
		return math.Inf(1)
	}

	// The largest |ξ|²: ξ has the functions of each variable at its value.
	squares := 0.0
	for v, d := range m.domains {
		largest := 0.0
		for x := range d {
			square := 0.0
			for p := range d - 1 {
				square += m.functions[v][p*d+x] * m.functions[v][p*d+x]
			}
			largest = max(largest, square)
		}
		squares += largest
	}

	// σ: the smallest of some candidates above an estimate that is a proven bound.
	size := norm(residual)
	if size == 0 {
		return 0
	}
	sigma := size // no eigenvalue is larger than the Frobenius norm
	estimate := estimateLargestEigenvalue(residual, n)
	for _, margin := range []float64{0.003, 0.01, 0.03, 0.1, 0.3} { // chosen: the first that is above the Lanczos method's error
		candidate := estimate + margin*max(math.Abs(estimate), size/math.Sqrt(float64(n)))
		if candidate < size && isPositiveDefinite(residual, n, candidate) {
			sigma = candidate
			break
		}
	}
	const rounding = 1e-10 // of the factorisation, and of the sums of chains: relative to the bound, and absolute for bounds near 0
	return squares/2*max(sigma, 0)*(1+rounding) + rounding*(1+squares*size*rounding)
}

// isPositiveDefinite reports whether σ − R has a Cholesky factor, for a symmetric n × n matrix R, so that no eigenvalue of R is above σ.
func isPositiveDefinite(r []float64, n int, sigma float64) bool {
	a := make([]float64, len(r))
	for k, x := range r {
		a[k] = -x
	}
	for i := range n {
		a[i*n+i] += sigma
	}
	_, err := linalg.NewCholesky(a, n)
	return err == nil
}

// estimateLargestEigenvalue estimates the largest eigenvalue of a symmetric n × n matrix from below, by lanczosSteps steps of the Lanczos
// method. It returns 0 if the eigenvalues of the tridiagonal matrix cannot be computed.
func estimateLargestEigenvalue(r []float64, n int) float64 {
	steps := min(lanczosSteps, n)

	// A start vector without symmetries, of length 1.
	q, previous, next := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range q {
		q[i] = 1 + 0.5*math.Sin(float64(i)*1.7)
	}
	scale := norm(q)
	for i := range q {
		q[i] /= scale
	}

	// Step k: next = R q − β previous, α = next · q. α is on the diagonal, β = |next − α q| beside it.
	tridiagonal := make([]float64, steps*steps)
	beta := 0.0
	for k := range steps {
		alpha := 0.0
		for i := range n {
			next[i] = -beta * previous[i]
			for j, x := range r[i*n:][:n] {
				next[i] += x * q[j]
			}
			alpha += next[i] * q[i]
		}
		for i := range next {
			next[i] -= alpha * q[i]
		}
		tridiagonal[k*steps+k] = alpha
		beta = norm(next)
		if k+1 == steps || beta <= 1e-12*math.Abs(alpha) { // β is a rounding: R maps the span of the vectors so far to itself
			break // the rest of the tridiagonal matrix stays 0
		}
		tridiagonal[k*steps+k+1], tridiagonal[(k+1)*steps+k] = beta, beta
		for i := range next {
			previous[i], q[i], next[i] = q[i], next[i]/beta, 0
		}
	}
	values, _, err := linalg.SymmetricEigen(tridiagonal, steps)
	if err != nil { // an estimate of 0 is bad, but the caller proves its bounds
		return 0
	}
	return slices.Max(values)
}
