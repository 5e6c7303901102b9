package structured

// A bound of the weights of chains, and so of Z.

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/linalg"
)

const (
	// mostBounded is the largest order of a residual whose eigenvalues are bounded: a factorisation takes a third of its cube in flops.
	mostBounded = 1536
	// products is the number of products with the residual that estimate its largest eigenvalue.
	products = 48
)

// beyond returns an upper bound of ln B − ln B̃ = ½ ξᵀ R ξ over all states, nats; +Inf for large residuals R. ξ has the coordinates of
// every variable's value, of squared length 1 − 1/d at most: it is ½ Σ_v (1 − 1/d_v) times a number σ for which σ − R has a Cholesky
// factor, so that no eigenvalue is above it. Cost O(order³).
func (m *interactions) beyond(residual []float64) float64 {
	n := m.order
	if n > mostBounded {
		return math.Inf(1)
	}
	length := 0.0
	for v, d := range m.domains {
		most := 0.0
		for x := range d {
			square := 0.0
			for p := range d - 1 {
				square += m.basis[v][p*d+x] * m.basis[v][p*d+x]
			}
			most = max(most, square)
		}
		length += most
	}
	size := norm(residual)
	if size == 0 {
		return 0
	}
	sigma := size // no eigenvalue is larger than the Frobenius norm
	about := largest(residual, n)
	for _, more := range []float64{0.003, 0.01, 0.03, 0.1, 0.3} {
		if try := about + more*max(math.Abs(about), size/math.Sqrt(float64(n))); try < size && definite(residual, n, try) {
			sigma = try
			break
		}
	}
	const rounding = 1e-10 // of the factorisation, and of the sums of chains
	return length/2*max(sigma, 0)*(1+rounding) + rounding*(1+length*size*rounding)
}

// definite reports whether σ − R has a Cholesky factor.
func definite(r []float64, n int, sigma float64) bool {
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

// largest estimates the largest eigenvalue of a symmetric n × n matrix from below (Lanczos).
func largest(r []float64, n int) float64 {
	steps := min(products, n)
	q, before, next := make([]float64, n), make([]float64, n), make([]float64, n)
	for i := range q {
		q[i] = 1 + 0.5*math.Sin(float64(i)*1.7)
	}
	scale := norm(q)
	for i := range q {
		q[i] /= scale
	}
	t := make([]float64, steps*steps)
	beta := 0.0
	for k := range steps {
		alpha := 0.0
		for i := range n {
			next[i] = -beta * before[i]
			for j, x := range r[i*n:][:n] {
				next[i] += x * q[j]
			}
			alpha += next[i] * q[i]
		}
		for i := range next {
			next[i] -= alpha * q[i]
		}
		t[k*steps+k] = alpha
		beta = norm(next)
		if k+1 == steps || beta <= 1e-12*math.Abs(alpha) {
			break
		}
		t[k*steps+k+1], t[(k+1)*steps+k] = beta, beta
		for i := range next {
			before[i], q[i], next[i] = q[i], next[i]/beta, 0
		}
	}
	values, _, err := linalg.SymmetricEigen(t, steps)
	if err != nil {
		return 0
	}
	most := values[0]
	for _, x := range values {
		most = max(most, x)
	}
	return most
}
