package bp

// Gauge: the map of one leg from its two messages.

import (
	"math"
)

// Gauge returns the d×d map a of a leg with messages m (to the variable) and v (to the factor), and
// its inverse, row-major: column 0 of a is m and row 0 of the inverse is v, so ⟨m, v⟩ must be 1; the
// other columns are a basis of v's orthogonal complement. Column 1 lies in the plane of m and v,
// with its dual row equal in norm; the rest are orthonormal and their own dual rows, so that the
// condition number is the least for these messages when |m| = |v|: (1 + sin φ)/cos φ with cos φ =
// 1/(|m||v|). Cost O(d³).
func Gauge(m, v []float64) (a, inverse []float64) {
	d := len(m)
	a, inverse = make([]float64, d*d), make([]float64, d*d)
	columns := complement(m, v)
	for x := range d {
		a[x*d], inverse[x] = m[x], v[x]
	}

	for b, q := range columns {
		// The dual row of q is q − ⟨q, m⟩ v: 1 with q, 0 with m and with the other columns.
		along := scalarProduct(q, m)
		row, norm := inverse[(b+1)*d:(b+2)*d], 0.0
		for x := range d {
			row[x] = q[x] - along*v[x]
			norm += row[x] * row[x]
		}
		by := math.Sqrt(math.Sqrt(norm))
		for x := range d {
			row[x] /= by
			a[x*d+b+1] = q[x] * by
		}
	}

	return a, inverse
}

// complement returns an orthonormal basis of v's orthogonal complement, the first vector in the
// plane of m and v when that is one.
func complement(m, v []float64) [][]float64 {
	d := len(v)
	span := [][]float64{scaledTo1(v)}
	left := make([]float64, d) // squared norms of the unit vectors' parts outside the span
	for x := range d {
		left[x] = 1 - span[0][x]*span[0][x]
	}

	for n := 1; n < d; n++ {
		var q []float64
		if n == 1 {
			q = outside(scaledTo1(m), span)
		}
		if q == nil {
			best := 0
			for x := range d {
				if left[x] > left[best] {
					best = x
				}
			}
			e := make([]float64, d)
			e[best] = 1
			q = outside(e, span)
		}

		span = append(span, q)
		for x := range d {
			left[x] -= q[x] * q[x]
		}
	}

	return span[1:]
}

// parallel is the part of a vector outside a span below which it counts as inside.
const parallel = 1e-9

// outside returns the unit vector along the part of u outside an orthonormal span, nil when there is
// none.
func outside(u []float64, span [][]float64) []float64 {
	q := append([]float64(nil), u...)
	for range 2 { // the second pass removes the rounding of the first
		for _, s := range span {
			along := scalarProduct(q, s)
			for x := range q {
				q[x] -= along * s[x]
			}
		}
		if scalarProduct(q, q) < parallel*parallel {
			return nil
		}
		q = scaledTo1(q)
	}
	return q
}

// scalarProduct returns Σ_x u[x] v[x].
func scalarProduct(u, v []float64) float64 {
	sum := 0.0
	for x := range u {
		sum += u[x] * v[x]
	}
	return sum
}

// scaledTo1 returns u/|u|.
func scaledTo1(u []float64) []float64 {
	top := 0.0
	for _, x := range u {
		top = max(top, math.Abs(x))
	}
	q, sum := make([]float64, len(u)), 0.0
	for a, x := range u {
		q[a] = x / top
		sum += q[a] * q[a]
	}
	for a := range q {
		q[a] /= math.Sqrt(sum)
	}
	return q
}
