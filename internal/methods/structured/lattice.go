package structured

// The lattice of the statistics' differences between values.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/linalg"
)

const (
	// mostDenominator bounds the denominator by which a difference refines the lattice of those before it.
	mostDenominator = 4096
	// mostRefined bounds all of these together.
	mostRefined = 1 << 24
	// nearInteger is how far a coordinate in the lattice is from an integer, at most.
	nearInteger = 1e-7
)

// lattice writes the differences of an approximation's statistics between values of a variable as integers; nil where they are none.
func (m *interactions) lattice(s *spectrum) *Integers {
	k, values := len(s.lambda), len(m.field)
	deltas := make([]float64, values*k) // value by value
	longest := 0.0
	for i, d := range m.domains {
		for a := range d {
			to := deltas[(m.at[i]+a)*k:][:k]
			for c, lambda := range s.lambda {
				for p := range d - 1 {
					to[c] += math.Sqrt(math.Abs(lambda)) * (m.basis[i][p*d+a] - m.basis[i][p*d]) * s.w[c*m.order+m.base[i]+p]
				}
			}
			longest = max(longest, norm(to))
		}
	}
	b := independent(deltas, k)
	if b == nil {
		return nil
	}
	refined := 1.0
	own := make([]float64, k)
	for again := true; again; {
		again = false
		inverse := inverted(b, k)
		if inverse == nil {
			return nil
		}
		for at := 0; at < len(deltas); at += k {
			coordinates(own, deltas[at:at+k], inverse)
			q := denominator(own)
			if q == 1 {
				continue
			}
			if refined *= float64(q); q == 0 || refined > mostRefined {
				return nil
			}
			if b = finer(b, own, q); b == nil {
				return nil
			}
			again = true
			break
		}
	}
	n := &Integers{Values: make([]int64, k*values)}
	inverse := inverted(b, k)
	for x := range values {
		coordinates(own, deltas[x*k:][:k], inverse)
		for c, y := range own {
			n.Values[c*values+x] = int64(math.Round(y))
		}
	}
	return n
}

// independent returns k of the rows, each the one with the largest part orthogonal to those before it; nil where there are fewer.
func independent(rows []float64, k int) []float64 {
	rest := slices.Clone(rows)
	var out []float64
	first := 0.0
	for range k {
		best, most := 0, -1.0
		for at := 0; at < len(rest); at += k {
			if size := norm(rest[at : at+k]); size > most {
				best, most = at, size
			}
		}
		if first = max(first, most); !(most > 1e-6*first) {
			return nil
		}
		out = append(out, rows[best:best+k]...)
		axis := slices.Clone(rest[best : best+k])
		for c := range axis {
			axis[c] /= most
		}
		for at := 0; at < len(rest); at += k {
			dot := 0.0
			for c, y := range axis {
				dot += y * rest[at+c]
			}
			for c, y := range axis {
				rest[at+c] -= dot * y
			}
		}
	}
	return out
}

// inverted returns the inverse of a k × k matrix; nil where it has none.
func inverted(b []float64, k int) []float64 {
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

// coordinates fills to with a row times a matrix.
func coordinates(to, row, matrix []float64) {
	k := len(row)
	for c := range to {
		to[c] = 0
		for r, y := range row {
			to[c] += y * matrix[r*k+c]
		}
	}
}

// denominator is the smallest q for which all q·x are near integers; 0: none is.
func denominator(x []float64) int {
	for q := 1; q <= mostDenominator; q++ {
		near := true
		for _, y := range x {
			y *= float64(q)
			if near = math.Abs(y-math.Round(y)) <= nearInteger*max(1, math.Abs(y)*1e-3); !near {
				break
			}
		}
		if near {
			return q
		}
	}
	return 0
}

// finer returns the basis of the lattice of a basis's rows and one more, of which q times are the integers nearest to q·x in that basis.
func finer(b, x []float64, q int) []float64 {
	k := len(x)
	rows := make([][]int64, k+1)
	for r := range k {
		rows[r] = make([]int64, k)
		rows[r][r] = int64(q)
	}
	for _, y := range x {
		rows[k] = append(rows[k], int64(math.Round(y*float64(q))))
	}
	for c := range k { // Euclid's algorithm, column by column, among the rows from c on
		for {
			least := -1
			for r := c; r <= k; r++ {
				if rows[r][c] != 0 && (least < 0 || abs(rows[r][c]) < abs(rows[least][c])) {
					least = r
				}
			}
			if least < 0 {
				return nil
			}
			rows[c], rows[least] = rows[least], rows[c]
			done := true
			for r := range rows {
				if r == c || r < c && abs(rows[r][c]) < abs(rows[c][c]) {
					continue
				}
				by := rows[r][c] / rows[c][c]
				for l := range k {
					rows[r][l] -= by * rows[c][l]
				}
				done = done && (r < c || rows[r][c] == 0)
			}
			if done {
				break
			}
		}
	}
	out := make([]float64, k*k)
	for r := range k {
		for c := range k {
			for l, y := range rows[r] {
				out[r*k+c] += float64(y) / float64(q) * b[l*k+c]
			}
		}
	}
	return out
}

func abs(x int64) int64 { return max(x, -x) }
