package structured

// An approximation of low rank, and the step of alternating least squares that improves it.

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/internal/network/btn"
)

// vanishingShare is the eigenvalue, relative to the largest, below which a direction is dropped.
const vanishingShare = 1e-6

// lowRank is Σ_k λ_k w_k w_kᵀ, an approximation of the matrix of interactions. Coordinate r of w_k is directions[k*n+r], for order n.
type lowRank struct {
	lambda     []float64
	directions []float64 // w_k, one vector after the other
}

// randomDirections returns an approximation with k random directions, the same ones in every call. All λ are 0.
func (m *interactions) randomDirections(k int) *lowRank {
	random := rand.New(rand.NewPCG(1, uint64(k)))
	s := &lowRank{lambda: make([]float64, k), directions: make([]float64, k*m.order)}
	for i := range s.directions {
		s.directions[i] = random.NormFloat64()
	}
	return s
}

// dropVanishing drops the directions whose eigenvalues are at most vanishingShare of the largest.
func (s *lowRank) dropVanishing() {
	n, largest := len(s.directions)/len(s.lambda), 0.0
	for _, l := range s.lambda {
		largest = max(largest, math.Abs(l))
	}
	count := 0
	for k, l := range s.lambda {
		if math.Abs(l) > vanishingShare*largest {
			copy(s.directions[count*n:], s.directions[k*n:k*n+n])
			s.lambda[count] = l
			count++
		}
	}
	s.lambda, s.directions = s.lambda[:count], s.directions[:count*n]
}

// entry returns entry (r, c) of an approximation of an n × n matrix: Σ_k λ_k w_k(r) w_k(c).
func (s *lowRank) entry(n, r, c int) (x float64) {
	for k, l := range s.lambda {
		x += l * s.directions[k*n+r] * s.directions[k*n+c]
	}
	return x
}

// blockResidual returns the Frobenius norm of the matrix less the approximation in the block of a pair of variables. No entry of the pair's
// interaction is off by more.
func (m *interactions) blockResidual(s *lowRank, p [2]int) float64 {
	firstRow, endRow := m.coordinates(p[0])
	firstColumn, endColumn := m.coordinates(p[1])
	sum := 0.0
	for r := firstRow; r < endRow; r++ {
		for c := firstColumn; c < endColumn; c++ {
			x := m.matrix[r*m.order+c] - s.entry(m.order, r, c)
			sum += x * x
		}
	}
	return math.Sqrt(sum)
}

// leastSquaresStep improves the approximation s by a step of alternating least squares: it holds the directions w and finds the rows u for
// which u wᵀ is nearest to the matrix. The blocks of single variables and of outliers do not count: outlierNeighbours[i] are the variables
// with which variable i is an outlier. The columns of u, made orthonormal and turned to eigenvectors, are the new directions of s. It
// returns an error if the columns are dependent: the matrix has a lower rank than s.
func (m *interactions) leastSquaresStep(s *lowRank, outlierNeighbours [][]int) error {
	n, k := m.order, len(s.lambda)
	u, ok := m.fitRows(s, outlierNeighbours)
	if !ok {
		return btn.ErrPart
	}

	// q are the columns of u, made orthonormal.
	q := make([]float64, k*n)
	for r := range n {
		for c := range k {
			q[c*n+r] = u[r*k+c]
		}
	}
	if !orthonormalise(q, n, k) {
		return btn.ErrPart
	}

	// The eigenvalues of u wᵀ in the directions q are the new λ, and q times its eigenvectors are the new directions.
	values, vectors, err := linalg.SymmetricEigen(inDirections(q, u, s.directions, k), k)
	if err != nil {
		return err
	}
	copy(s.lambda, values)
	for a := range k {
		w := s.directions[a*n : a*n+n]
		clear(w)
		for b := range k {
			f := vectors[b*k+a]
			for i, y := range q[b*n : b*n+n] {
				w[i] += f * y
			}
		}
	}
	return nil
}

// inDirections returns the n × n matrix u wᵀ in the k orthonormal directions q, as a symmetric k × k matrix: (qᵀu)(wᵀq), averaged with its
// transpose. Row r of u is u[r*k : r*k+k]. Column c of q is q[c*n : c*n+n], and that of w likewise.
func inDirections(q, u, w []float64, k int) []float64 {
	n := len(q) / k
	left, right := make([]float64, k*k), make([]float64, k*k) // qᵀu and wᵀq
	for a := range k {
		for b := range k {
			for r := range n {
				left[a*k+b] += q[a*n+r] * u[r*k+b]
				right[a*k+b] += w[a*n+r] * q[b*n+r]
			}
		}
	}
	product := make([]float64, k*k)
	for a := range k {
		for b := range k {
			for c := range k {
				product[a*k+b] += (left[a*k+c]*right[c*k+b] + left[b*k+c]*right[c*k+a]) / 2
			}
		}
	}
	return product
}

// fitRows returns the rows u for which u wᵀ is nearest to the matrix, for the directions w of s. Row r is u[r*k : r*k+k]. A row of variable
// i solves the normal equations G u_r = Σ_c matrix[r, c] w_c, G = Σ_c w_c w_cᵀ. The sums are over the columns c of all variables but i and
// outlierNeighbours[i]. ok is false if some equations are singular.
func (m *interactions) fitRows(s *lowRank, outlierNeighbours [][]int) (u []float64, ok bool) {
	n, k := m.order, len(s.lambda)
	u = make([]float64, n*k)
	gram := make([]float64, k*k)    // Σ_c w_c w_cᵀ over all columns
	w := make([]float64, n*k)       // row c has the k directions at coordinate c
	scratch := make([]float64, k*k) // SolveSmall overwrites its matrix
	for c := range k {
		for r, y := range s.directions[c*n : c*n+n] {
			w[r*k+c] = y
		}
	}
	addGram(gram, w, k, 1)
	for i := range m.domains {
		first, end := m.coordinates(i)
		if first == end { // a variable of one value has no row
			continue
		}

		// The left side, one for all rows of the variable: all columns less its own and those of its outliers.
		normal := slices.Clone(gram)
		addGram(normal, w[first*k:end*k], k, -1)
		for _, j := range outlierNeighbours[i] {
			first, end := m.coordinates(j)
			addGram(normal, w[first*k:end*k], k, -1)
		}
		for r := first; r < end; r++ {
			row := u[r*k : r*k+k]
			m.addRightSide(row, r, w, outlierNeighbours[i])
			copy(scratch, normal)
			if !linalg.SolveSmall(scratch, k, row) { // replaces the right side by the solution
				return nil, false
			}
		}
	}
	return u, true
}

// addRightSide adds Σ_c matrix[r, c] w_c to right, over all columns c but those of the variables outliers. The matrix is 0 at the columns
// of row r's own variable. w_c is w[c*k : c*k+k], for k = len(right).
func (m *interactions) addRightSide(right []float64, r int, w []float64, outliers []int) {
	k, matrixRow := len(right), m.matrix[r*m.order:][:m.order]
	for column, x := range matrixRow {
		if x != 0 {
			for c, y := range w[column*k : column*k+k] {
				right[c] += x * y
			}
		}
	}
	for _, j := range outliers { // take off their columns
		first, end := m.coordinates(j)
		for column := first; column < end; column++ {
			for c, y := range w[column*k : column*k+k] {
				right[c] -= matrixRow[column] * y
			}
		}
	}
}

// coordinates returns the range of the rows, and likewise of the columns, that variable i has in the matrix: d−1 of them for d values.
func (m *interactions) coordinates(i int) (first, end int) {
	first = m.firstCoordinate[i]
	return first, first + m.domains[i] - 1
}

// addGram adds sign · Σ_r row_rᵀ row_r to a k × k matrix. rows has one row of k numbers after the other.
func addGram(gram, rows []float64, k int, sign float64) {
	for r := 0; r < len(rows); r += k {
		for a, x := range rows[r : r+k] {
			for b, y := range rows[r : r+k] {
				gram[a*k+b] += sign * x * y
			}
		}
	}
}

// orthonormalise makes k columns of length n orthonormal by Gram and Schmidt's method. Column c is columns[c*n : c*n+n]. It returns false
// if a column depends on those before it.
func orthonormalise(columns []float64, n, k int) bool {
	for c := range k {
		column := columns[c*n : c*n+n]
		normBefore := norm(column)
		for range 2 { // the second pass takes off the roundings of the first
			for previous := range c {
				earlier := columns[previous*n : previous*n+n]
				dot := 0.0
				for i, y := range earlier {
					dot += column[i] * y
				}
				for i, y := range earlier {
					column[i] -= dot * y
				}
			}
		}
		normAfter := norm(column)
		if !(normAfter > 1e-13*normBefore) { // what is left are some hundred roundings, of 2e-16 each
			return false
		}
		for i := range column {
			column[i] /= normAfter
		}
	}
	return true
}

// norm returns the Euclidean length of a vector.
func norm(v []float64) float64 {
	sum := 0.0
	for _, x := range v {
		sum += x * x
	}
	return math.Sqrt(sum)
}
