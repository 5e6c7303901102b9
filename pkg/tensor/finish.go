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

// weightedTerms returns the CP tensor Σ_i weight_i ⊗_ℓ terms[i][ℓ] with the weights with which it is t. ok is false if there are none.
func weightedTerms(t *Dense, terms [][][]float64) (c *CP, ok bool) {
	weights, ok := solveWeights(t, terms)
	if !ok {
		return nil, false
	}
	return newCP(t.Shape, weights, terms), true
}

// cleaned returns the vectors of terms divided by their largest entries, with entries near 0, 1 and −1 set to these. An eigenvector
// (1, 1e-17) of a clause is (1, 0), and the clause's zero must come out as zero.
func cleaned(terms [][][]float64) [][][]float64 {
	result := make([][][]float64, len(terms))
	for i, term := range terms {
		for _, v := range term {
			v = slices.Clone(v)
			largest := v[0] // the first of entries of nearly the same size
			for _, x := range v {
				if math.Abs(x) > math.Abs(largest)*(1+snapTolerance) {
					largest = x
				}
			}

			for x := range v {
				v[x] = snapped(v[x] / largest)
			}
			result[i] = append(result[i], v)
		}
	}
	return result
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

// solveWeights returns the weights with t[x] = Σ_i weight_i Π_ℓ terms[i][ℓ][x_ℓ] at as many entries x as there are terms, the pivots of
// complete elimination. ok is false if the terms are not independent. Unlike least squares over all entries, that keeps small integers and
// equal weights exact.
func solveWeights(t *Dense, terms [][][]float64) (weights []float64, ok bool) {
	rank := len(terms)
	size := len(t.Data)

	tables := make([]float64, rank*size) // the table of each term, one after the other
	for i, term := range terms {
		addOuter(tables[i*size:(i+1)*size], 1, term, t.Shape, nil) // with the weight 1; nil: no factor by entry
	}

	pivots, ok := newSkeleton(transposed(tables, rank, size), size, rank, rank)
	if !ok || len(pivots.Rows) < rank {
		return nil, false
	}

	a := make([]float64, 0, rank*rank)
	b := make([]float64, 0, rank)
	for _, x := range pivots.Rows {
		for i := range rank {
			a = append(a, tables[i*size+x])
		}
		b = append(b, t.Data[x])
	}

	weights, err := linalg.Solve(a, rank, rank, b, 1)
	return weights, err == nil
}

// expanded returns the CP tensor over all legs of shape whose compression to fewer legs and values is t (compress). Mode k of t is leg
// legs[k], and its vectors v become expand[leg]·v. For a leg that t does not have, expand[leg] is the vector of all terms.
func (t *CP) expanded(shape, legs []int, expand [][]float64) *CP {
	result := &CP{Shape: shape, Weights: t.Weights, Vectors: make([][]float64, len(shape))}
	rank := len(t.Weights)
	for leg, d := range shape {
		mode := slices.Index(legs, leg)
		if mode < 0 {
			result.Vectors[leg] = slices.Repeat(expand[leg], rank)
			continue
		}

		// vectors[i, x] = Σ_y expand[x, y] t[i, y]
		compressed := t.Shape[mode]
		vectors := make([]float64, 0, rank*d)
		for i := range rank {
			for x := range d {
				sum := 0.0
				for y, f := range t.vector(i, mode, compressed) {
					sum += f * expand[leg][x*compressed+y]
				}
				vectors = append(vectors, sum)
			}
		}
		result.Vectors[leg] = vectors
	}
	return result
}
