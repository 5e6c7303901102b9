package linalg

// Decompositions of single small matrices, row-major: least squares, eigenvalues, Cholesky.
//
// Each checks its input for entries that are not finite, divides it by a power of two that brings the largest
// entry into [½, 1), and puts the power back into its results. Some of LAPACK's loops end only on finite
// numbers that are far from both ends of float64; this is the one place that calls them.

import (
	"fmt"
	"math"
	"strings"

	"gonum.org/v1/gonum/mat"
)

// negligible is the share of the largest entry below which an entry is 0 for an eigenvalue routine: 2^−1000
// is far below every rounding, and its quotients with other entries would leave float64.
const negligible = 0x1p-1000

// scaled returns a·2^−exp with its largest entry in [½, 1), and exp. For a zero matrix it returns zeros and exp = 0. The error is
// ErrNotFinite.
func scaled(a []float64) (scaledA []float64, exp int, err error) {
	top := largest(a)
	if math.IsNaN(top) || math.IsInf(top, 0) {
		return nil, 0, ErrNotFinite
	}
	scaledA = make([]float64, len(a))
	if top == 0 {
		return scaledA, 0, nil
	}
	_, exp = math.Frexp(top)
	scale(scaledA, a, -exp)
	return scaledA, exp, nil
}

// dropNegligible sets entries of a scaled matrix to 0 that are too small to change an eigenvalue.
func dropNegligible(a []float64) {
	for i, x := range a {
		if math.Abs(x) < negligible {
			a[i] = 0
		}
	}
}

// scaleBack multiplies a list of results in place by 2^exp, by which the matrix was divided before its decomposition. The error is
// ErrRange.
func scaleBack(list []float64, exp int) error {
	scale(list, list, exp)
	if top := largest(list); math.IsNaN(top) || math.IsInf(top, 0) {
		return ErrRange
	}
	return nil
}

// Eigenvalues returns the eigenvalues of an n × n matrix, each as often as it occurs, in no particular sequence.
// Backward stable: they are exact for a matrix within about 1e-15·n of the largest entry. Cost about 10·n³
// flops. Errors: ErrNotFinite, ErrConvergence (after 30·n iterations), ErrRange.
func Eigenvalues(a []float64, n int) ([]complex128, error) {
	values, _, err := eigen(a, n, mat.EigenNone)
	return values, err
}

// Eigenvectors returns the eigenvalues of an n × n matrix and the real parts of its right eigenvectors as the
// columns of an n × n matrix, each of norm 1. Where an eigenvalue is real, so is its vector. Cost about 25·n³
// flops; errors as Eigenvalues.
func Eigenvectors(a []float64, n int) (values []complex128, vectors []float64, err error) {
	return eigen(a, n, mat.EigenRight)
}

// eigen returns the eigenvalues of an n × n matrix and, if kind is mat.EigenRight, the real parts of its right eigenvectors, entry i of
// vector j at i*n+j.
func eigen(a []float64, n int, kind mat.EigenKind) (values []complex128, vectors []float64, err error) {
	if n == 0 {
		return nil, nil, nil
	}
	scaledA, exp, err := scaled(a[:n*n])
	if err != nil {
		return nil, nil, err
	}
	dropNegligible(scaledA)
	eig, ok := factorize(mat.NewDense(n, n, scaledA), kind) // the vectors are those of a, too
	if !ok {
		return nil, nil, fmt.Errorf("%w: eigenvalues of a matrix of %d rows", ErrConvergence, n)
	}
	values = eig.Values(nil) // of a·2^−exp
	for i, x := range values {
		values[i] = complex(math.Ldexp(real(x), exp), math.Ldexp(imag(x), exp))
		if math.IsInf(real(values[i]), 0) || math.IsInf(imag(values[i]), 0) {
			return nil, nil, ErrRange
		}
	}
	if kind == mat.EigenNone {
		return values, nil, nil
	}
	var complexVectors mat.CDense
	eig.VectorsTo(&complexVectors)
	vectors = make([]float64, n*n)
	for i := range n {
		for j := range n {
			vectors[i*n+j] = real(complexVectors.At(i, j))
		}
	}
	return values, vectors, nil
}

// factorize computes the eigenvalues of a, and its vectors by kind. ok is false if the QR iteration does not converge: gonum's second
// attempt then takes one row too many, and panics with a message about LAPACK's arguments, which is caught here.
func factorize(a *mat.Dense, kind mat.EigenKind) (eig *mat.Eigen, ok bool) {
	defer func() {
		if r := recover(); r != nil {
			if text, isText := r.(string); !isText || !strings.HasPrefix(text, "lapack: ") {
				panic(r)
			}
			ok = false
		}
	}()
	eig = &mat.Eigen{}
	return eig, eig.Factorize(a, kind)
}

// SymmetricEigen returns the eigenvalues of a symmetric n × n matrix in increasing order and orthonormal
// eigenvectors as the columns of an n × n matrix. Only the upper triangle of a is read. Cost about 9·n³
// flops. Errors: ErrNotFinite, ErrConvergence (after 30·n iterations), ErrRange.
func SymmetricEigen(a []float64, n int) (values, vectors []float64, err error) {
	if n == 0 {
		return nil, nil, nil
	}
	scaledA, exp, err := scaled(a[:n*n])
	if err != nil {
		return nil, nil, err
	}
	dropNegligible(scaledA)
	const withVectors = true
	var eig mat.EigenSym
	if !eig.Factorize(mat.NewSymDense(n, scaledA), withVectors) {
		return nil, nil, fmt.Errorf("%w: eigenvalues of a symmetric matrix of %d rows", ErrConvergence, n)
	}
	values = eig.Values(nil) // of a·2^−exp, whose vectors are those of a
	if err := scaleBack(values, exp); err != nil {
		return nil, nil, err
	}
	var q mat.Dense
	eig.VectorsTo(&q)
	return values, q.RawMatrix().Data, nil
}

// SingularValues returns the singular values of an m × n matrix in descending order. Errors: as Work.SVD.
func SingularValues(a []float64, m, n int) ([]float64, error) {
	var w Work
	k := min(m, n)
	s := make([]float64, k)
	return s, w.RightSVD(a, m, n, s, make([]float64, k*n))
}

// Solve returns the x, n × columns, that minimises ‖a·x − b‖, for an a of m × n with m ≥ n and full rank and a b of m × columns. It uses
// elimination with partial pivoting if m = n, else reflections. Cost about 2·m·n·(n + columns) flops.
// Errors: ErrNotFinite, ErrSingular (condition number above 10^16), ErrRange.
func Solve(a []float64, m, n int, b []float64, columns int) ([]float64, error) {
	if n == 0 || columns == 0 {
		return nil, nil
	}
	scaledA, expA, err := scaled(a[:m*n])
	if err != nil {
		return nil, err
	}
	scaledB, expB, err := scaled(b[:m*columns])
	if err != nil {
		return nil, err
	}
	var x mat.Dense
	if err := x.Solve(mat.NewDense(m, n, scaledA), mat.NewDense(m, columns, scaledB)); err != nil { // also for a condition number above 10^16
		return nil, fmt.Errorf("%w: %w", ErrSingular, err)
	}
	solution := x.RawMatrix().Data
	return solution, scaleBack(solution, expB-expA)
}

// SolveSmall overwrites b with the solution of a·x = b, for an a of n × n, by elimination with partial pivoting. It destroys a. It returns
// false if a pivot is not above 1e-15 of the largest entry.
//
// It is for a matrix of a few rows with entries near 1: nothing is scaled, and no condition number estimated, which would take ten times as
// long. Cost 2n³/3 flops.
func SolveSmall(a []float64, n int, b []float64) (ok bool) {
	leastPivot := 1e-15 * largest(a[:n*n])
	for k := range n {
		// The pivot: the largest entry of column k on or below the diagonal, moved to row k.
		pivot := k
		for r := k + 1; r < n; r++ {
			if math.Abs(a[r*n+k]) > math.Abs(a[pivot*n+k]) {
				pivot = r
			}
		}
		if !(math.Abs(a[pivot*n+k]) > leastPivot) { // also if it is NaN
			return false
		}
		if pivot != k {
			for c := k; c < n; c++ {
				a[k*n+c], a[pivot*n+c] = a[pivot*n+c], a[k*n+c]
			}
			b[k], b[pivot] = b[pivot], b[k]
		}

		// Subtract multiples of row k from all rows below it.
		for r := k + 1; r < n; r++ {
			factor := a[r*n+k] / a[k*n+k]
			for c := k; c < n; c++ {
				a[r*n+c] -= factor * a[k*n+c]
			}
			b[r] -= factor * b[k]
		}
	}

	// Back substitution.
	for k := n - 1; k >= 0; k-- {
		for c := k + 1; c < n; c++ {
			b[k] -= a[k*n+c] * b[c]
		}
		b[k] /= a[k*n+k]
	}
	return true
}

// Inverse returns a⁻¹ of an n × n matrix. Errors: as Solve.
func Inverse(a []float64, n int) ([]float64, error) {
	if n == 0 {
		return nil, nil
	}
	scaledA, exp, err := scaled(a[:n*n])
	if err != nil {
		return nil, err
	}
	var x mat.Dense
	if err := x.Inverse(mat.NewDense(n, n, scaledA)); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrSingular, err)
	}
	inverse := x.RawMatrix().Data
	return inverse, scaleBack(inverse, -exp)
}

// Cholesky is the factor of a positive definite matrix.
type Cholesky struct {
	factor mat.Cholesky // of the matrix times 2^−exp
	n, exp int
}

// NewCholesky factorises a symmetric n × n matrix and reads only its upper triangle. Cost n³/3 flops.
// Errors: ErrNotFinite, ErrSingular where a is not positive definite.
func NewCholesky(a []float64, n int) (*Cholesky, error) {
	if n == 0 {
		return &Cholesky{}, nil
	}
	scaledA, exp, err := scaled(a[:n*n])
	if err != nil {
		return nil, err
	}
	c := &Cholesky{n: n, exp: exp}
	if !c.factor.Factorize(mat.NewSymDense(n, scaledA)) {
		return nil, fmt.Errorf("%w: not positive definite", ErrSingular)
	}
	return c, nil
}

// Solve returns x with a·x = y. Errors: ErrNotFinite for an entry of y, ErrRange. An ill-conditioned a is no error.
func (c *Cholesky) Solve(y []float64) ([]float64, error) {
	if c.n == 0 {
		return nil, nil
	}
	scaledY, exp, err := scaled(y[:c.n])
	if err != nil {
		return nil, err
	}
	x := mat.NewVecDense(c.n, nil)
	_ = c.factor.SolveVecTo(x, mat.NewVecDense(c.n, scaledY)) // its only error is the condition number
	solution := x.RawVector().Data                            // of the scaled system a·2^−c.exp·x = y·2^−exp
	return solution, scaleBack(solution, exp-c.exp)
}

// LogDet returns ln of the determinant of the matrix.
func (c *Cholesky) LogDet() float64 {
	if c.n == 0 {
		return 0
	}
	return c.factor.LogDet() + float64(c.n*c.exp)*math.Ln2
}

// Condition returns an estimate of the condition number in the 1-norm.
func (c *Cholesky) Condition() float64 {
	if c.n == 0 {
		return 1
	}
	return c.factor.Cond()
}

// Abs returns the absolute values of a list, nil of nil.
func Abs(list []float64) []float64 {
	if list == nil {
		return nil
	}
	absolute := make([]float64, len(list))
	for k, x := range list {
		absolute[k] = math.Abs(x)
	}
	return absolute
}
