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

	// In float64, or entry by entry if products were too small for that.
	table := &Dense{Shape: t.Dims(), Data: make([]float64, size)}
	if isLossy := sumTerms(t, table); isLossy {
		x := make([]int, len(table.Shape))
		for i := range table.Data {
			table.Data[i] = At(t, x).Float64()
			advance(x, table.Shape)
		}
	}

	if err := finite(table.Data, "entry"); err != nil {
		return nil, err
	}

	recomputeCancelled(t, table)
	if err := checkUnderflow(t, table); err != nil {
		return nil, err
	}
	return table, nil
}

// sumTerms adds the terms of t to a table, in float64. isLossy is true if a product was too small for that.
func sumTerms(t Tensor, out *Dense) (isLossy bool) {
	switch t := t.(type) {
	case *CP:
		vectors := make([][]float64, len(t.Shape))
		for i, w := range t.Weights {
			for mode, d := range t.Shape {
				vectors[mode] = t.vector(i, mode, d)
			}
			isLossy = addOuter(out.Data, w, vectors, t.Shape, nil) || isLossy // nil: no factor by entry
		}
	case *Symmetric:
		return t.asSymmetryCP().addTo(out)
	case *SymmetryCP:
		return t.addTo(out)
	}
	return isLossy
}

// checkUnderflow returns ErrNotFinite if an entry of t is not 0 and below 2^-1022 in size, so that the table has fewer digits of it, or 0.
func checkUnderflow(t Tensor, table *Dense) error {
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

// vector returns the vector of term i on a mode of dimension d. If the mode's vectors are the identity, it is the unit vector i.
func (t *CP) vector(i, mode, d int) []float64 {
	if v := t.Vectors[mode]; v != nil {
		return v[i*d : (i+1)*d]
	}
	e := make([]float64, d)
	e[i] = 1
	return e
}

// addTo adds all terms to a table, in float64: the outer product of a term's vectors, times S at the count of the entry's index. isLossy is
// true if a product was too small for float64.
func (t *SymmetryCP) addTo(out *Dense) (isLossy bool) {
	step := levelSteps(t.Levels)
	countOf := make([]int, len(out.Data)) // by entry: the index of its count
	x := make([]int, len(t.Shape))
	for i := range countOf {
		for mode, levels := range t.Levels.Of {
			countOf[i] += step[levels[x[mode]]]
		}
		advance(x, t.Shape)
	}

	for _, term := range t.Terms {
		vectors := term.R
		if vectors == nil {
			vectors = make([][]float64, len(t.Shape))
		}
		valueAt := func(i int) (mant float64, exp int) {
			v := term.S.At(countOf[i])
			return v.Mant, int(max(min(v.Exp, 1<<20), -1<<20)) // beyond that the entry is ±Inf or 0 in float64 all the same
		}
		isLossy = addOuter(out.Data, term.Alpha, vectors, t.Shape, valueAt) || isLossy
	}
	return isLossy
}

// addOuter adds the outer product w · ⊗ vectors to data, with entry i multiplied by s(i), which is given as mantissa and exponent. A nil
// vector is all ones, a nil s is 1. isLossy is true if a partial product was too small for float64.
//
// Vectors are divided by powers of two, so that no entry of theirs is above 1 and no partial product is too large. The exponents of these
// powers are added to the exponent of s at the end.
func addOuter(
	data []float64, w float64, vectors [][]float64, dims []int, s func(i int) (mant float64, exp int),
) (isLossy bool) {
	if w == 0 {
		return false
	}

	mant, exp := math.Frexp(w)
	products := make([]float64, 1, len(data)) // by row-major index over the modes so far
	products[0] = mant

	for mode, d := range dims {
		vector := vectors[mode]
		e := 0
		if vector != nil {
			_, e = math.Frexp(maxAbs(vector))
			exp += e
		}

		// In place, from the end: entry i of the modes so far becomes the entries i·d … i·d + d − 1.
		products = products[:len(products)*d]
		for i := len(products)/d - 1; i >= 0; i-- {
			p := products[i]
			for x := d - 1; x >= 0; x-- {
				products[i*d+x] = p
				if vector != nil {
					v := p * math.Ldexp(vector[x], -e)
					isTiny := math.Abs(v) < leastNormal && p != 0 && vector[x] != 0
					isLossy = isLossy || isTiny
					products[i*d+x] = v
				}
			}
		}
	}

	for i, p := range products {
		m, e := 1.0, 0
		if s != nil {
			m, e = s(i)
		}
		data[i] += math.Ldexp(p*m, exp+e)
	}
	return isLossy
}

// maxAbs returns the largest |entry|, 0 for an empty list.
func maxAbs(list []float64) float64 {
	m := 0.0
	for _, x := range list {
		m = max(m, math.Abs(x))
	}
	return m
}
