// From the directions of rank-one terms to a decomposition:
// clean vectors, weights, the dropped legs.

package tensor

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/linalg"
)

// snapTolerance is how near to 0, 1 or −1 an entry of a normalised vector is taken for it.
// Whether that was right, the comparison with the tensor decides.
const snapTolerance = 1e-11

// finish finds the weights with which terms add up to t. With clean, vectors are normalised to a
// largest entry of 1 and snapped first: an eigenvector (1, 1e-17) of a clause is (1, 0), and the
// clause's zero must come out as zero.
func finish(t *Dense, terms [][][]float64, clean bool) (*CP, bool) {
	if clean {
		terms = cleaned(terms)
	}
	weights, ok := solveWeights(t, terms)
	if !ok {
		return nil, false
	}
	return newCP(t.Shape, weights, terms), true
}

// cleaned returns the vectors divided by their largest entries, and snapped.
func cleaned(terms [][][]float64) [][][]float64 {
	out := make([][][]float64, len(terms))
	for i, term := range terms {
		for _, v := range term {
			v = slices.Clone(v)
			largest := v[0]
			for _, x := range v {
				if math.Abs(x) > math.Abs(largest)*(1+snapTolerance) {
					largest = x
				}
			}

			for x := range v {
				v[x] = snapped(v[x] / largest)
			}
			out[i] = append(out[i], v)
		}
	}
	return out
}

// snapped returns 0, 1 or −1 for a number near one of them, else the number.
func snapped(x float64) float64 {
	for _, simple := range [3]float64{0, 1, -1} {
		if math.Abs(x-simple) < snapTolerance {
			return simple
		}
	}
	return x
}

// solveWeights solves t[x] = Σ_i weight_i Π_ℓ terms[i][ℓ][x_ℓ] at as many entries as there are
// terms, the pivots of complete elimination. Unlike least squares over all entries that keeps small
// integers and equal weights exact.
func solveWeights(t *Dense, terms [][][]float64) ([]float64, bool) {
	rank := len(terms)
	size := len(t.Data)

	columns := make([]float64, rank*size)
	for i, term := range terms {
		addOuter(columns[i*size:(i+1)*size], 1, term, t.Shape, nil)
	}

	s, ok := newSkeleton(transposed(columns, rank, size), size, rank, rank)
	if !ok || len(s.Rows) < rank {
		return nil, false
	}

	a := make([]float64, 0, rank*rank)
	b := make([]float64, 0, rank)
	for _, x := range s.Rows {
		for i := range rank {
			a = append(a, columns[i*size+x])
		}
		b = append(b, t.Data[x])
	}

	w, err := linalg.Solve(a, rank, rank, b, 1)
	return w, err == nil
}

// expanded returns the CP over all legs of a shape: t's legs are the given ones, and every vector
// is multiplied by the expansion of its leg; the expansion of a leg that t lacks is its vector.
func (t *CP) expanded(shape, legs []int, expand [][]float64) *CP {
	out := &CP{Shape: shape, Weights: t.Weights, Vectors: make([][]float64, len(shape))}
	rank := len(t.Weights)
	for leg, d := range shape {
		at := slices.Index(legs, leg)
		if at < 0 {
			out.Vectors[leg] = slices.Repeat(expand[leg], rank)
			continue
		}

		// out[i, x] = Σ_y expand[x, y] t[i, y]
		inner := t.Shape[at]
		v := make([]float64, 0, rank*d)
		for i := range rank {
			for x := range d {
				sum := 0.0
				for y, f := range t.vector(i, at, inner) {
					sum += f * expand[leg][x*inner+y]
				}
				v = append(v, sum)
			}
		}
		out.Vectors[leg] = v
	}
	return out
}
