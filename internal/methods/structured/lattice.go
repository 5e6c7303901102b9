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
// returns these integers. It begins with a basis of some of the differences and refines it by fractions. It returns nil if the differences
// have no such basis with small denominators. Lists of rows have one row of k numbers after the other, for k statistics.
func (m *interactions) findLattice(s *lowRank) *Integers {
	k, values := len(s.lambda), len(m.field)
	differences := m.valueDifferences(s) // one row for each value
	basis := independentRows(differences, k)
	if basis == nil {
		return nil
	}

	// Refine the basis by the first difference that is no integer in it, until all are.
	refinement := 1.0
	inverse := inverseOf(basis, k)
	for inverse != nil {
		fractions, denominator := firstFractions(differences, inverse, k)
		if denominator == 1 {
			break
		}
		refinement *= float64(denominator)
		if denominator == 0 || refinement > maxRefinement {
			return nil
		}
		basis = refineBasis(basis, fractions, denominator)
		if basis == nil {
			return nil
		}
		inverse = inverseOf(basis, k)
	}
	if inverse == nil {
		return nil
	}

	n := &Integers{Values: make([]int64, k*values)}
	coordinates := make([]float64, k)
	for x := range values {
		multiplyRow(coordinates, differences[x*k:][:k], inverse)
		for c, y := range coordinates {
			n.Values[c*values+x] = int64(math.Round(y))
		}
	}
	return n
}

// firstFractions looks for the first of the rows, each of k numbers, whose coordinates in a basis are not all integers. The coordinates are
// the product of the row and the inverse of the basis. It returns them and their common denominator, which is 0 if it is too large. If
// there is no such row, the coordinates are nil and the denominator is 1.
func firstFractions(rows, inverse []float64, k int) (coordinates []float64, denominator int) {
	coordinates = make([]float64, k)
	for row := range slices.Chunk(rows, k) {
		multiplyRow(coordinates, row, inverse)
		if denominator := commonDenominator(coordinates); denominator != 1 {
			return coordinates, denominator
		}
	}
	return nil, 1
}

// valueDifferences returns √|λ_k| (v_k(i, x) − v_k(i, 0)) for all values x of all variables i and all statistics k of an approximation: by
// value, and for each value one number by statistic.
func (m *interactions) valueDifferences(s *lowRank) []float64 {
	k := len(s.lambda)
	differences := make([]float64, len(m.field)*k)
	for i, d := range m.domains {
		for a := range d {
			row := differences[(m.firstValue[i]+a)*k:][:k]
			for c, lambda := range s.lambda {
				for p := range d - 1 { // basis function p of variable i at values a and 0
					difference := m.functions[i][p*d+a] - m.functions[i][p*d]
					row[c] += math.Sqrt(math.Abs(lambda)) * difference * s.directions[c*m.order+m.firstCoordinate[i]+p]
				}
			}
		}
	}
	return differences
}

// independentRows chooses k linearly independent rows of length k: each is the row with the longest part orthogonal to the rows chosen
// before. It returns nil if there are fewer than k. rows has one row after the other.
func independentRows(rows []float64, k int) []float64 {
	orthogonal := slices.Clone(rows) // parts orthogonal to the chosen rows
	var chosen []float64
	largestNorm := 0.0
	for range k {
		// Choose the row with the longest orthogonal part. longest is the index of its first number.
		longest, longestNorm := 0, -1.0
		for start := 0; start < len(orthogonal); start += k {
			if size := norm(orthogonal[start : start+k]); size > longestNorm {
				longest, longestNorm = start, size
			}
		}
		largestNorm = max(largestNorm, longestNorm)
		if !(longestNorm > 1e-6*largestNorm) { // chosen: what is left may be roundings of the fit
			return nil
		}
		chosen = append(chosen, rows[longest:longest+k]...)

		// Remove its direction from all orthogonal parts.
		axis := slices.Clone(orthogonal[longest : longest+k])
		for c := range axis {
			axis[c] /= longestNorm
		}
		for start := 0; start < len(orthogonal); start += k {
			dot := 0.0
			for c, y := range axis {
				dot += y * orthogonal[start+c]
			}
			for c, y := range axis {
				orthogonal[start+c] -= dot * y
			}
		}
	}
	return chosen
}

// inverseOf returns the inverse of a k × k matrix, or nil if it has none. Entry (r, c) is at r*k+c.
func inverseOf(b []float64, k int) []float64 {
	inverse := make([]float64, k*k)
	for c := range k {
		column := make([]float64, k)
		column[c] = 1
		if !linalg.SolveSmall(slices.Clone(b), k, column) { // replaces the unit vector by the solution, and its matrix
			return nil
		}
		for r := range k {
			inverse[r*k+c] = column[r]
		}
	}
	return inverse
}

// multiplyRow sets product to the product of a row of k numbers and a k × k matrix.
func multiplyRow(product, row, matrix []float64) {
	k := len(row)
	for c := range product {
		product[c] = 0
		for r, y := range row {
			product[c] += y * matrix[r*k+c]
		}
	}
}

// commonDenominator returns the smallest q ≤ maxDenominator for which all numbers q·x are near integers, or 0 if there is none.
func commonDenominator(x []float64) int {
	for q := 1; q <= maxDenominator; q++ {
		areIntegers := true
		for _, y := range x {
			y *= float64(q)
			areIntegers = math.Abs(y-math.Round(y)) <= integerTolerance*max(1, math.Abs(y)*1e-3) // relative for numbers above 1000
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

// refineBasis adds a vector to a lattice and returns a basis of the larger lattice. A lattice is the set of the integer combinations of its
// basis, k rows of k numbers. The vector has the coordinates x in the basis, which are fractions with the denominator q. It returns nil if
// the basis is dependent. Example: the basis (1) and x = ½, q = 2 give the basis (½).
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
			for j, y := range rows[r] {
				refined[r*k+c] += float64(y) / float64(q) * basis[j*k+c]
			}
		}
	}
	return refined
}

// reduceRows turns k+1 rows of k integers into k rows that span the same lattice, an upper triangle, and a row of zeros. For each column c
// it runs Euclid's algorithm among the rows from c on: it subtracts multiples of the row with the smallest entry until all others are 0. It
// returns false if the lattice has fewer than k dimensions.
func reduceRows(rows [][]int64, k int) bool {
	for c := range k {
		for isReduced := false; !isReduced; { // until row c alone, of the rows from c on, has an entry in column c
			smallest := -1 // the row with the smallest entry in column c that is not 0
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
				isSmallAbove := r < c && abs(rows[r][c]) < abs(rows[c][c]) // rows above c are reduced, too, to keep numbers small
				if r == c || isSmallAbove {
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

// abs returns |x|.
func abs(x int64) int64 { return max(x, -x) }
