package structured

// The lattice of the statistics' differences between values.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/linalg"
)

const (
	// maxDenominator bounds the denominator by which a difference refines the lattice of those before it.
	maxDenominator = 4096
	// maxRefinement bounds the product of all these denominators.
	maxRefinement = 1 << 24
	// integerTolerance is how far a coordinate may be from an integer to be taken for one.
	integerTolerance = 1e-7
)

// findLattice looks for a basis in which the statistics of every value of a variable differ by integers from those of its first value. It
// returns these integers, and nil if there is no such basis with small denominators.
func (m *interactions) findLattice(s *spectrum) *Integers {
	k, values := len(s.lambda), len(m.field)
	differences := m.valueDifferences(s)
	basis := independentRows(differences, k)
	if basis == nil {
		return nil
	}
	refinement := 1.0
	coordinates := make([]float64, k)
	for isRefined := true; isRefined; { // until all differences are integers in the basis
		isRefined = false
		inverse := inverseOf(basis, k)
		if inverse == nil {
			return nil
		}
		for from := 0; from < len(differences); from += k {
			multiplyRow(coordinates, differences[from:from+k], inverse)
			q := commonDenominator(coordinates)
			if q == 1 {
				continue
			}
			if refinement *= float64(q); q == 0 || refinement > maxRefinement {
				return nil
			}
			if basis = refineBasis(basis, coordinates, q); basis == nil {
				return nil
			}
			isRefined = true
			break
		}
	}
	n := &Integers{Values: make([]int64, k*values)}
	inverse := inverseOf(basis, k)
	for x := range values {
		multiplyRow(coordinates, differences[x*k:][:k], inverse)
		for c, y := range coordinates {
			n.Values[c*values+x] = int64(math.Round(y))
		}
	}
	return n
}

// valueDifferences returns √|λ_k| (v_k(i, x) − v_k(i, 0)) for all statistics k of an approximation: by value, and for each value by
// statistic.
func (m *interactions) valueDifferences(s *spectrum) []float64 {
	k := len(s.lambda)
	differences := make([]float64, len(m.field)*k)
	for i, d := range m.domains {
		for a := range d {
			row := differences[(m.offset[i]+a)*k:][:k]
			for c, lambda := range s.lambda {
				for p := range d - 1 {
					row[c] += math.Sqrt(math.Abs(lambda)) * (m.basis[i][p*d+a] - m.basis[i][p*d]) * s.directions[c*m.order+m.coordinate[i]+p]
				}
			}
		}
	}
	return differences
}

// independentRows chooses k linearly independent rows of length k: each is the row with the largest part orthogonal to those chosen before.
// It returns nil if there are fewer than k.
func independentRows(rows []float64, k int) []float64 {
	orthogonal := slices.Clone(rows) // parts orthogonal to the chosen rows
	var chosen []float64
	largestNorm := 0.0
	for range k {
		best, bestNorm := 0, -1.0
		for from := 0; from < len(orthogonal); from += k {
			if size := norm(orthogonal[from : from+k]); size > bestNorm {
				best, bestNorm = from, size
			}
		}
		if largestNorm = max(largestNorm, bestNorm); !(bestNorm > 1e-6*largestNorm) {
			return nil
		}
		chosen = append(chosen, rows[best:best+k]...)
		axis := slices.Clone(orthogonal[best : best+k])
		for c := range axis {
			axis[c] /= bestNorm
		}
		for from := 0; from < len(orthogonal); from += k {
			dot := 0.0
			for c, y := range axis {
				dot += y * orthogonal[from+c]
			}
			for c, y := range axis {
				orthogonal[from+c] -= dot * y
			}
		}
	}
	return chosen
}

// inverseOf returns the inverse of a k × k matrix. It returns nil if the matrix has none.
func inverseOf(b []float64, k int) []float64 {
	out := make([]float64, k*k)
	for c := range k {
		unit := make([]float64, k)
		unit[c] = 1
		if !linalg.SolveSmall(slices.Clone(b), k, unit) {
			return nil
		}
		for r := range k {
			out[r*k+c] = unit[r]
		}
	}
	return out
}

// multiplyRow sets to to a row times a square matrix.
func multiplyRow(to, row, matrix []float64) {
	k := len(row)
	for c := range to {
		to[c] = 0
		for r, y := range row {
			to[c] += y * matrix[r*k+c]
		}
	}
}

// commonDenominator returns the smallest q up to maxDenominator such that all q·x are near integers. It returns 0 if there is none.
func commonDenominator(x []float64) int {
	for q := 1; q <= maxDenominator; q++ {
		areIntegers := true
		for _, y := range x {
			y *= float64(q)
			areIntegers = math.Abs(y-math.Round(y)) <= integerTolerance*max(1, math.Abs(y)*1e-3)
			if !areIntegers {
				break
			}
		}
		if areIntegers {
			return q
		}
	}
	return 0
}

// refineBasis returns a basis of the lattice of all integer combinations of a basis's rows and one more row, which has the rational
// coordinates x in the basis: q·x are near integers. It returns nil if the rows are dependent. Example: the basis (1) and x = ½, q = 2 give
// the basis (½).
func refineBasis(basis, x []float64, q int) []float64 {
	k := len(x)
	rows := make([][]int64, k+1) // coordinates times q: those of the basis, then x
	for r := range k {
		rows[r] = make([]int64, k)
		rows[r][r] = int64(q)
	}
	for _, y := range x {
		rows[k] = append(rows[k], int64(math.Round(y*float64(q))))
	}
	if !reduceRows(rows, k) {
		return nil
	}
	refined := make([]float64, k*k)
	for r := range k {
		for c := range k {
			for l, y := range rows[r] {
				refined[r*k+c] += float64(y) / float64(q) * basis[l*k+c]
			}
		}
	}
	return refined
}

// reduceRows turns k+1 rows of k integers into k rows of the same lattice, as an upper triangle, and a row of zeros. For each column c it
// runs Euclid's algorithm among the rows from c on. It reports whether the lattice has k dimensions.
func reduceRows(rows [][]int64, k int) bool {
	for c := range k {
		for isReduced := false; !isReduced; {
			smallest := -1 // row with the smallest entry in column c that is not 0
			for r := c; r <= k; r++ {
				if rows[r][c] != 0 && (smallest < 0 || abs(rows[r][c]) < abs(rows[smallest][c])) {
					smallest = r
				}
			}
			if smallest < 0 {
				return false
			}
			rows[c], rows[smallest] = rows[smallest], rows[c]
			isReduced = true
			for r := range rows {
				if r == c || r < c && abs(rows[r][c]) < abs(rows[c][c]) {
					continue
				}
				quotient := rows[r][c] / rows[c][c]
				for l := range k {
					rows[r][l] -= quotient * rows[c][l]
				}
				isReduced = isReduced && (r < c || rows[r][c] == 0)
			}
		}
	}
	return true
}

func abs(x int64) int64 { return max(x, -x) }
