// Skeleton decompositions: a matrix from a few of its own rows.

package tensor

import (
	"math"
)

// rankTolerance is the pivot, relative to the largest entry, below which elimination stops.
const rankTolerance = 1e-13

// skeleton is A = X·A[Rows,:] with X (rows × rank, row-major) the identity on Rows. Taking rows of
// A itself keeps zeros, ones and equal entries as they are, which a basis of singular vectors would
// not.
type skeleton struct {
	Rows []int
	X    []float64
}

// newSkeleton returns the skeleton of a, a matrix of rows × cols: as many of its rows, s.Rows, as it has rank, and the matrix s.X with
// a = X·a[Rows,:]. The rows are those of the pivots of an elimination with complete pivoting. ok is false if the rank is above maxRank. a
// is not changed. Cost O(rank·rows·cols).
func newSkeleton(a []float64, rows, cols, maxRank int) (s skeleton, ok bool) {
	remainder := append([]float64(nil), a...)
	limit := rankTolerance * maxAbs(a)
	var lower [][]float64 // the columns of L, where A = L·U
	for {
		pivot := 0 // the largest entry
		for i, x := range remainder {
			if math.Abs(x) > math.Abs(remainder[pivot]) {
				pivot = i
			}
		}
		if !(math.Abs(remainder[pivot]) > limit) {
			break
		}
		if len(s.Rows) == maxRank {
			return skeleton{}, false
		}
		lower = append(lower, eliminate(remainder, rows, cols, pivot/cols, pivot%cols))
		s.Rows = append(s.Rows, pivot/cols)
	}

	s.X = interpolation(lower, s.Rows, rows)
	return s, true
}

// eliminate subtracts from every row of a the multiple of row i that makes its entry in column j to 0, and returns the multiples.
func eliminate(a []float64, rows, cols, i, j int) (multiples []float64) {
	multiples = make([]float64, rows)
	pivotRow := append([]float64(nil), a[i*cols:(i+1)*cols]...)
	for r := range rows {
		multiple := a[r*cols+j] / pivotRow[j]
		multiples[r] = multiple
		if multiple == 0 {
			continue
		}
		row := a[r*cols : (r+1)*cols]
		for c, x := range pivotRow {
			row[c] -= multiple * x
		}
		row[j] = 0 // without rounding
	}
	clear(a[i*cols : (i+1)*cols]) // row i less itself
	return multiples
}

// interpolation returns X = L·L[Rows,:]⁻¹, with which A = X·A[Rows,:] for A = L·U. lower has the columns of L, so its entry (r, k) is
// lower[k][r]; pivots are the Rows. L[Rows,:] is lower triangular with ones on the diagonal, so X comes by back substitution.
func interpolation(lower [][]float64, pivots []int, rows int) []float64 {
	rank := len(pivots)
	x := make([]float64, rows*rank)
	for r := range rows {
		row := x[r*rank : (r+1)*rank]
		for k := rank - 1; k >= 0; k-- {
			row[k] = lower[k][r]
			for m := k + 1; m < rank; m++ {
				row[k] -= row[m] * lower[k][pivots[m]]
			}
		}
	}

	// X is the identity on the pivots: without rounding.
	for k, p := range pivots {
		clear(x[p*rank : (p+1)*rank])
		x[p*rank+k] = 1
	}
	return x
}
