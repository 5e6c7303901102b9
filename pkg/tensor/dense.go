// Writing a tensor out as a table.

package tensor

import (
	"fmt"
	"math"
)

// ToDense returns t as a table of at most maxEntries entries (t itself if it is dense).
// Cost O(terms · entries). It returns ErrTooLarge if the table is larger,
// ErrNotFinite if an entry is beyond the range of float64, above or below.
func ToDense(t Tensor, maxEntries int) (*Dense, error) {
	if t == nil {
		return nil, fmt.Errorf("%w: nil tensor", ErrShape)
	}
	size, err := sizeWithin(t.Dims(), maxEntries)
	if err != nil {
		return nil, err
	}

	if dense, ok := t.(*Dense); ok {
		return dense, nil
	}

	out := &Dense{Shape: t.Dims(), Data: make([]float64, size)}
	if sumTerms(t, out) {
		x := make([]int, len(out.Shape))
		for i := range out.Data {
			out.Data[i] = At(t, x).Float64()
			advance(x, out.Shape)
		}
	}

	if err := finite(out.Data, "entry"); err != nil {
		return nil, err
	}

	keepDigits(t, out)
	if err := notLost(t, out); err != nil {
		return nil, err
	}
	return out, nil
}

// sumTerms adds the terms of t to a table, in float64,
// and says whether a product was too small for that on the way.
func sumTerms(t Tensor, out *Dense) (lost bool) {
	switch t := t.(type) {
	case *CP:
		row := make([][]float64, len(t.Shape))
		for i, w := range t.Weights {
			for mode, d := range t.Shape {
				row[mode] = t.vector(i, mode, d)
			}
			lost = addOuter(out.Data, w, row, t.Shape, nil) || lost
		}
	case *Symmetric:
		return t.asSymmetryCP().addTo(out)
	case *SymmetryCP:
		return t.addTo(out)
	}
	return lost
}

// notLost checks that no entry of a table was taken below the normal range of float64,
// where it loses digits or is 0.
func notLost(t Tensor, table *Dense) error {
	const leastExponent = -1022
	x := make([]int, len(table.Shape))
	for i, v := range table.Data {
		if math.Abs(v) < leastNormal {
			if exact := At(t, x); !exact.IsZero() && exact.Exp < leastExponent {
				return fmt.Errorf("%w: entry %d is %v·2^%d, below the range of float64",
					ErrNotFinite, i, exact.Mant, exact.Exp)
			}
		}
		advance(x, table.Shape)
	}
	return nil
}

// vector returns the vector of term i on a mode;
// the unit vector where the vectors are the identity.
func (t *CP) vector(i, mode, d int) []float64 {
	if v := t.Vectors[mode]; v != nil {
		return v[i*d : (i+1)*d]
	}
	e := make([]float64, d)
	e[i] = 1
	return e
}

// addTo adds all terms to a table: addOuter of their vectors, the values of S by count.
func (t *SymmetryCP) addTo(out *Dense) (lost bool) {
	step := levelSteps(t.Levels)
	count := make([]int, len(out.Data))
	x := make([]int, len(t.Shape))
	for i := range count {
		for mode, of := range t.Levels.Of {
			count[i] += step[of[x[mode]]]
		}
		advance(x, t.Shape)
	}

	for _, term := range t.Terms {
		row := term.R
		if row == nil {
			row = make([][]float64, len(t.Shape))
		}
		lost = addOuter(out.Data, term.Alpha, row, t.Shape, func(i int) (float64, int) {
			v := term.S.At(count[i])
			return v.Mant, int(max(min(v.Exp, 1<<20), -1<<20))
		}) || lost
	}
	return lost
}

// addOuter adds w · s(i) · ⊗ rows to data; a nil row is all ones, a nil s is 1, and s returns a
// mantissa and an exponent. Rows are normalised by powers of two and their exponents joined to
// the exponents of s at the end, so that no partial product is too large; lost reports one that is too small.
func addOuter(
	data []float64, w float64, rows [][]float64, dims []int, s func(int) (float64, int),
) (lost bool) {
	if w == 0 {
		return false
	}

	mant, exp := math.Frexp(w)
	part := make([]float64, 1, len(data))
	part[0] = mant

	for mode, d := range dims {
		row := rows[mode]
		e := 0
		if row != nil {
			_, e = math.Frexp(maxAbs(row))
			exp += e
		}

		// Spread in place, from the end:
		// entry i of the modes so far becomes entries i·d … i·d + d − 1.
		part = part[:len(part)*d]
		for i := len(part)/d - 1; i >= 0; i-- {
			p := part[i]
			for x := d - 1; x >= 0; x-- {
				part[i*d+x] = p
				if row != nil {
					v := p * math.Ldexp(row[x], -e)
					lost = lost || math.Abs(v) < leastNormal && p != 0 && row[x] != 0
					part[i*d+x] = v
				}
			}
		}
	}

	for i, p := range part {
		m, e := 1.0, 0
		if s != nil {
			m, e = s(i)
		}
		data[i] += math.Ldexp(p*m, exp+e)
	}
	return lost
}

// maxAbs returns the largest |entry|, 0 for an empty list.
func maxAbs(list []float64) float64 {
	m := 0.0
	for _, x := range list {
		m = max(m, math.Abs(x))
	}
	return m
}
