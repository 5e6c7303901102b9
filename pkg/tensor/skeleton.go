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

// newSkeleton eliminates with complete pivoting. It returns false as soon as the rank
// exceeds maxRank. a is rows × cols, row-major, and is not changed. Cost O(rank·rows·cols).
func newSkeleton(a []float64, rows, cols, maxRank int) (skeleton, bool) {
	rest := append([]float64(nil), a...)
	limit := rankTolerance * maxAbs(a)
	var s skeleton
	var lower [][]float64 // columns of L, A = L·U
	for {
		p := 0
		for i, x := range rest {
			if math.Abs(x) > math.Abs(rest[p]) {
				p = i
			}
		}

		if !(math.Abs(rest[p]) > limit) {
			break
		}

		if len(s.Rows) == maxRank {
			return skeleton{}, false
		}

		lower = append(lower, eliminate(rest, rows, cols, p/cols, p%cols))
		s.Rows = append(s.Rows, p/cols)
	}

	s.X = interpolation(lower, s.Rows, rows)
	return s, true
}

// eliminate subtracts the multiple of row i that clears column j from every row,
// and returns the multiples.
func eliminate(a []float64, rows, cols, i, j int) []float64 {
	multiple := make([]float64, rows)
	pivot := append([]float64(nil), a[i*cols:(i+1)*cols]...)
	for r := range rows {
		f := a[r*cols+j] / pivot[j]
		multiple[r] = f
		if f == 0 {
			continue
		}
		row := a[r*cols : (r+1)*cols]
		for c, x := range pivot {
			row[c] -= f * x
		}
		row[j] = 0
	}
	clear(a[i*cols : (i+1)*cols])
	return multiple
}

// interpolation returns X = L·L[Rows,:]⁻¹ by back substitution: L[Rows,:] is unit lower triangular.
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

	for k, p := range pivots {
		clear(x[p*rank : (p+1)*rank])
		x[p*rank+k] = 1
	}
	return x
}
