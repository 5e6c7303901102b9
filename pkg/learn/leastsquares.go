package learn

// Least squares in Gram form: g x = y with a unit diagonal, by Cholesky or by a truncated eigendecomposition.

import (
	"math"

	"gonum.org/v1/gonum/mat"
)

const (
	// choleskyLimit is the condition number up to which Cholesky with refinement keeps six digits of α.
	choleskyLimit = 1e10
	// rankCut, times the number of components, is the fraction of the largest eigenvalue below which a direction is rounding.
	rankCut = 0x1p-45
)

// leastSquares minimises xᵀgx − 2xᵀy and returns x, the numerical rank of g and its condition number.
func leastSquares(g [][]float64, y []float64) (x []float64, rank int, cond float64) {
	r := len(y)
	values, vectors := symmetricEigen(g)
	cond = conditionOf(values)
	if cond < choleskyLimit {
		var chol mat.Cholesky
		if chol.Factorize(symmetric(g)) {
			x = refine(&chol, g, y)
			return x, r, cond
		}
	}
	x = make([]float64, r)
	cut := float64(r) * rankCut * values[r-1]
	for k := r - 1; k >= 0 && values[k] > cut; k-- {
		rank++
		var dot compensated
		for i := range y {
			dot.addProduct(vectors.At(i, k), y[i])
		}
		c := dot.value() / values[k]
		for i := range x {
			x[i] += c * vectors.At(i, k)
		}
	}
	return x, rank, cond
}

// refine solves g x = y and takes one step of iterative refinement with a compensated residual.
func refine(chol *mat.Cholesky, g [][]float64, y []float64) []float64 {
	r := len(y)
	solution, correction := mat.NewVecDense(r, nil), mat.NewVecDense(r, nil)
	// SolveVecTo reports ill-conditioning as an error; the caller has checked the condition number.
	_ = chol.SolveVecTo(solution, mat.NewVecDense(r, append([]float64(nil), y...)))
	rest := mat.NewVecDense(r, nil)
	for i := range y {
		var sum compensated
		sum.add(y[i])
		for j := range y {
			sum.addProduct(-g[i][j], solution.AtVec(j))
		}
		rest.SetVec(i, sum.value())
	}
	_ = chol.SolveVecTo(correction, rest)
	x := make([]float64, r)
	for i := range x {
		x[i] = solution.AtVec(i) + correction.AtVec(i)
	}
	return x
}

// condition returns the condition number of a unit-diagonal Gram matrix.
func condition(g [][]float64) float64 {
	values, _ := symmetricEigen(g)
	return conditionOf(values)
}

// conditionOf returns the ratio of the extreme eigenvalues, at most 2^53: beyond that they are rounding.
func conditionOf(values []float64) float64 {
	least, most := values[0], values[len(values)-1]
	if least <= most*epsilon {
		return 1 / epsilon
	}
	return most / least
}

// symmetricEigen returns eigenvalues in increasing order and the eigenvectors as columns.
func symmetricEigen(g [][]float64) ([]float64, *mat.Dense) {
	var eigen mat.EigenSym
	if !eigen.Factorize(symmetric(g), true) {
		// The QR iteration converges for every finite matrix; entries were checked to be finite.
		panic("learn: eigendecomposition of a finite symmetric matrix failed")
	}
	var vectors mat.Dense
	eigen.VectorsTo(&vectors)
	return eigen.Values(nil), &vectors
}

func symmetric(g [][]float64) *mat.SymDense {
	s := mat.NewSymDense(len(g), nil)
	for i := range g {
		for j := i; j < len(g); j++ {
			s.SetSym(i, j, g[i][j])
		}
	}
	return s
}

// gramGain returns 2xᵀy − xᵀgx, compensated: an error of x enters it only to second order.
func gramGain(g [][]float64, y, x []float64) float64 {
	var sum compensated
	for i := range x {
		sum.addProduct(2*x[i], y[i])
		for j := range x {
			p := x[i] * x[j]
			sum.addProduct(-p, g[i][j])
			sum.add(-math.FMA(x[i], x[j], -p) * g[i][j])
		}
	}
	return sum.value()
}

// compensated is a running sum with its rounding error (Ogita, Rump and Oishi, Accurate sum and dot product, 2005).
type compensated struct{ sum, err float64 }

func (c *compensated) add(x float64) {
	s := c.sum + x
	t := s - c.sum
	c.err += (c.sum - (s - t)) + (x - t)
	c.sum = s
}

func (c *compensated) addProduct(x, y float64) {
	p := x * y
	c.add(p)
	c.err += math.FMA(x, y, -p)
}

func (c *compensated) value() float64 { return c.sum + c.err }
