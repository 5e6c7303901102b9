package preprocess

// Stars: a table of low rank becomes matrices around one hidden index.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/pkg/tensor"
)

const (
	// starRounding bounds the relative difference of a star's entry from the table's:
	// tensor.LowRank promises it for the largest entry.
	starRounding = 0x1p-43
	// cancellation bounds the sum of the absolute values of a star's terms, relative to the entry.
	cancellation = 4
)

// decomposeStar writes t as a sum of few products of vectors,
//
//	T(x_1, …, x_m) = Σ_h Π_k v_hk(x_k)
//
// with h as a hidden index and a matrix v over (h, x_k) for each index k. ok is false if there is no such sum of at most maxRank terms, if
// the matrices together are larger than t, or if the terms cancel. Equality and mixtures are such tables. Clauses, parity and noisy-or have
// rank two only as differences; in a network of many of them small values would drown in the rounding of large ones, so they become chains.
func decomposeStar(dims []int, t *table) (s decomposition, ok bool) {
	shape := t.shape(dims)
	entriesPerTerm := 0
	for _, d := range shape {
		entriesPerTerm += d
	}

	rank := min(maxRank, len(t.data)/entriesPerTerm)
	if rank < 2 {
		return decomposition{}, false
	}

	// The bound of the error that LowRank gives is dropped: isAccurate checks that it is below starRounding.
	cp, _, ok := tensor.LowRank(&tensor.Dense{Shape: shape, Data: t.data}, rank)
	if !ok || !isAccurate(cp, t.data) {
		return decomposition{}, false
	}

	s = decomposition{kind: starKind, hidden: []int{len(cp.Weights)}}
	// In units of 2^-53; the errors of the matrices of one term add up to those of t and of the sum.
	err := (t.err + starRounding*0x1p53) / float64(len(shape))

	for k, i := range t.scope {
		matrix := legVectors(cp, k) // over (h, x_k)
		if k == 0 {                 // the first matrix takes the weights of the terms
			for h, weight := range cp.Weights {
				for x := range shape[0] {
					matrix[h*shape[0]+x] *= weight
				}
			}
		}
		s.add([]int{-1, i}, matrix, err) // −1 stands for the hidden index
	}
	return s, true
}

// legVectors returns a copy of the vectors of all terms of cp on leg k, one after the other. If cp has none, they are the unit vectors.
func legVectors(cp *tensor.CP, k int) []float64 {
	if cp.Vectors[k] != nil {
		return slices.Clone(cp.Vectors[k])
	}
	termCount := len(cp.Weights)
	vectors := make([]float64, termCount*termCount)
	for h := range termCount {
		vectors[h*termCount+h] = 1
	}
	return vectors
}

// isAccurate reports whether the sum of products cp represents the entries of a table, data, with all digits. Every entry must be equal
// within rounding (starRounding, relative). No entry may be the difference of large terms: their absolute values may add up to
// cancellation times the entry at most. No entry may be 0 if it has a term whose factors are not 0.
func isAccurate(cp *tensor.CP, data []float64) bool {
	// For each entry compute the sum of its terms, the sum of their absolute values, and the number of terms that are not 0.
	absolute := &tensor.CP{Shape: cp.Shape, Weights: linalg.Abs(cp.Weights)}
	count := &tensor.CP{Shape: cp.Shape, Weights: nonzeroPattern(cp.Weights)}
	for k := range cp.Shape {
		vectors := legVectors(cp, k)
		absolute.Vectors = append(absolute.Vectors, linalg.Abs(vectors))
		count.Vectors = append(count.Vectors, nonzeroPattern(vectors))
	}
	var entries [3][]float64
	for k, t := range []*tensor.CP{cp, absolute, count} {
		dense, err := tensor.ToDense(t, len(data))
		if err != nil { // entries that float64 does not hold
			return false
		}
		entries[k] = dense.Data
	}

	sums, absoluteSums, termCounts := entries[0], entries[1], entries[2]
	for k, x := range data {
		isLostProduct := x == 0 && termCounts[k] != 0
		isEqual := math.Abs(sums[k]-x) <= starRounding*math.Abs(x)
		hasNoCancellation := absoluteSums[k] <= cancellation*math.Abs(x)
		if isLostProduct || !isEqual || !hasNoCancellation {
			return false
		}
	}
	return true
}

// nonzeroPattern returns a list with 1 for every number that is not 0, and 0 for the others.
func nonzeroPattern(list []float64) []float64 {
	pattern := make([]float64, len(list))
	for k, x := range list {
		if x != 0 {
			pattern[k] = 1
		}
	}
	return pattern
}
