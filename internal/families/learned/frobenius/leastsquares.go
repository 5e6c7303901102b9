package frobenius

// Least squares in Gram form: g x = y with a unit diagonal, by Cholesky or by a truncated
// eigendecomposition.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/linalg"
)

const (
	// choleskyLimit is the condition number up to which Cholesky with refinement keeps six digits of
	// α.
	choleskyLimit = 1e10
	// rankCut, times the number of components, is the fraction of the largest eigenvalue below which a
	// direction is rounding.
	rankCut = 0x1p-45
)

// leastSquares minimises xᵀgx − 2xᵀy and returns x, the numerical rank of g and its condition
// number.
// Errors: linalg.ErrNotFinite, linalg.ErrConvergence, linalg.ErrRange.
func leastSquares(g [][]float64, y []float64) (x []float64, rank int, cond float64, err error) {
	r := len(y)
	values, vectors, err := linalg.SymmetricEigen(flat(g), r)
	if err != nil {
		return nil, 0, 0, err
	}

	cond = conditionOf(values)
	if cond < choleskyLimit {
		if chol, err := linalg.NewCholesky(flat(g), r); err == nil {
			x, err = refine(chol, g, y)
			return x, r, cond, err
		}
	}

	x = make([]float64, r)
	cut := float64(r) * rankCut * values[r-1]
	for k := r - 1; k >= 0 && values[k] > cut; k-- {
		rank++
		var dot compensated
		for i := range y {
			dot.addProduct(vectors[i*r+k], y[i])
		}
		c := dot.value() / values[k]
		for i := range x {
			x[i] += c * vectors[i*r+k]
		}
	}

	return x, rank, cond, nil
}

// refine solves g x = y and takes one step of iterative refinement with a compensated residual.
func refine(chol *linalg.Cholesky, g [][]float64, y []float64) ([]float64, error) {
	x, err := chol.Solve(y)
	if err != nil {
		return nil, err
	}
	rest := make([]float64, len(y))
	for i := range y {
		var sum compensated
		sum.add(y[i])
		for j := range y {
			sum.addProduct(-g[i][j], x[j])
		}
		rest[i] = sum.value()
	}

	correction, err := chol.Solve(rest)
	if err != nil {
		return nil, err
	}
	for i := range x {
		x[i] += correction[i]
	}
	return x, nil
}

// condition returns the condition number of a unit-diagonal Gram matrix.
func condition(g [][]float64) (float64, error) {
	values, _, err := linalg.SymmetricEigen(flat(g), len(g))
	if err != nil {
		return 0, err
	}
	return conditionOf(values), nil
}

// conditionOf returns the ratio of the extreme eigenvalues, at most 2^53: beyond that they are
// rounding.
func conditionOf(values []float64) float64 {
	least, most := values[0], values[len(values)-1]
	if least <= most*epsilon {
		return 1 / epsilon
	}
	return most / least
}

// flat is g row after row.
func flat(g [][]float64) []float64 {
	return slices.Concat(g...)
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

// compensated is a running sum with its rounding error (Ogita, Rump and Oishi, Accurate sum and dot
// product, 2005).
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
