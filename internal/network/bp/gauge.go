package bp

// Gauge: the map of one leg from its two messages.

import (
	"math"
)

// Gauge returns the map a of a leg with d values, and its inverse, as d×d matrices in row-major order. It is made of the messages m, to the
// variable, and v, to the factor: column 0 of a is m, and row 0 of the inverse is v, so that ⟨m, v⟩ must be 1. The other columns of a are a
// basis of v's orthogonal complement: column 1 lies in the plane of m and v, and has the norm of row 1 of the inverse; the remaining
// columns are orthonormal and equal to their rows of the inverse.
//
// If |m| = |v|, no map of these messages has a smaller condition number: it is (1 + sin φ)/cos φ with cos φ = 1/(|m||v|). Cost O(d³).
func Gauge(m, v []float64) (a, inverse []float64) {
	d := len(m)
	a, inverse = make([]float64, d*d), make([]float64, d*d)
	columns := complementBasis(m, v)
	for x := range d {
		a[x*d], inverse[x] = m[x], v[x]
	}

	for b, column := range columns {
		// For a column q the row is q − ⟨q, m⟩ v: its product with q is 1, and that with m and the other columns is 0.
		component := scalarProduct(column, m)
		row, squaredNorm := inverse[(b+1)*d:(b+2)*d], 0.0
		for x := range d {
			row[x] = column[x] - component*v[x]
			squaredNorm += row[x] * row[x]
		}
		// Scale row and column, of the norms n and 1, so that both have the norm √n.
		factor := math.Sqrt(math.Sqrt(squaredNorm))
		for x := range d {
			row[x] /= factor
			a[x*d+b+1] = column[x] * factor
		}
	}

	return a, inverse
}

// complementBasis returns an orthonormal basis of the vectors orthogonal to v: d−1 vectors of d entries. m and v are the two messages of
// one leg. The first vector of the basis is in the plane of m and v, unless they are parallel. For each further vector it looks at the
// unit vectors of the axes. It takes the one with the longest part outside the span of v and the basis so far, and scales that part to the
// norm 1.
func complementBasis(m, v []float64) [][]float64 {
	d := len(v)
	span := [][]float64{unitVector(v)}
	outsideNorm := make([]float64, d) // by axis: squared norm of the part of its unit vector outside the span
	for x := range d {
		outsideNorm[x] = 1 - span[0][x]*span[0][x]
	}

	for n := 1; n < d; n++ {
		var unit []float64
		if n == 1 {
			unit = unitOutside(unitVector(m), span) // nil if m and v are parallel
		}
		if unit == nil {
			longest := 0
			for x := range d {
				if outsideNorm[x] > outsideNorm[longest] {
					longest = x
				}
			}
			axis := make([]float64, d)
			axis[longest] = 1
			unit = unitOutside(axis, span)
		}

		span = append(span, unit)
		for x := range d {
			outsideNorm[x] -= unit[x] * unit[x]
		}
	}

	return span[1:]
}

// minOutsideNorm is a limit of the norm of the part of a unit vector outside a span. Below it the vector counts as inside.
const minOutsideNorm = 1e-9

// unitOutside returns the part of u outside an orthonormal span, scaled to the norm 1. It returns nil if u is inside.
func unitOutside(u []float64, span [][]float64) []float64 {
	outside := append([]float64(nil), u...)
	for range 2 { // the second pass removes the rounding errors of the first
		for _, direction := range span {
			component := scalarProduct(outside, direction)
			for x := range outside {
				outside[x] -= component * direction[x]
			}
		}
		if scalarProduct(outside, outside) < minOutsideNorm*minOutsideNorm {
			return nil
		}
		outside = unitVector(outside)
	}
	return outside
}

// scalarProduct returns Σ_x u[x] v[x].
func scalarProduct(u, v []float64) float64 {
	sum := 0.0
	for x := range u {
		sum += u[x] * v[x]
	}
	return sum
}

// unitVector returns u/|u|; u must not be 0. It first divides by the largest entry, so that squares stay in range.
func unitVector(u []float64) []float64 {
	largest := 0.0
	for _, x := range u {
		largest = max(largest, math.Abs(x))
	}
	unit, squaredNorm := make([]float64, len(u)), 0.0
	for a, x := range u {
		unit[a] = x / largest
		squaredNorm += unit[a] * unit[a]
	}
	for a := range unit {
		unit[a] /= math.Sqrt(squaredNorm)
	}
	return unit
}
