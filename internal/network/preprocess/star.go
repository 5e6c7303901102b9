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

// star writes t as Σ_h Π_k v_hk with few terms, as matrices over (h, index), if they are no
// larger together and if the terms do not cancel: equality, mixtures. Clauses, parity and noisy-or
// have rank two only as differences; in a network of many of them small values would drown in the
// rounding of large ones, so they become chains.
func star(dims []int, t *table) (s decomposition, ok bool) {
	shape := t.shape(dims)
	sum := 0
	for _, d := range shape {
		sum += d
	}

	rank := min(maxRank, len(t.data)/sum)
	if rank < 2 {
		return decomposition{}, false
	}

	cp, _, ok := tensor.LowRank(&tensor.Dense{Shape: shape, Data: t.data}, rank)
	if !ok || !sound(cp, t.data) {
		return decomposition{}, false
	}

	s = decomposition{kind: starKind, hidden: []int{len(cp.Weights)}}
	err := (t.err + starRounding*0x1p53) / float64(len(shape))

	for k, i := range t.scope {
		v := vectors(cp, k)
		if k == 0 {
			for h, weight := range cp.Weights {
				for x := range shape[0] {
					v[h*shape[0]+x] *= weight
				}
			}
		}
		s.add([]int{-1, i}, v, err)
	}
	return s, true
}

// vectors returns a copy of the vectors on leg k, the identity written out.
func vectors(cp *tensor.CP, k int) []float64 {
	if cp.Vectors[k] != nil {
		return slices.Clone(cp.Vectors[k])
	}
	r := len(cp.Weights)
	v := make([]float64, r*r)
	for h := range r {
		v[h*r+h] = 1
	}
	return v
}

// sound reports whether every entry of cp is the table's within rounding, no entry is the difference of
// large numbers, and none is 0 because a product was too small.
func sound(cp *tensor.CP, data []float64) bool {
	size := &tensor.CP{Shape: cp.Shape, Weights: linalg.Abs(cp.Weights)}
	terms := &tensor.CP{Shape: cp.Shape, Weights: pattern(cp.Weights)}
	for k := range cp.Shape {
		v := vectors(cp, k)
		size.Vectors = append(size.Vectors, linalg.Abs(v))
		terms.Vectors = append(terms.Vectors, pattern(v))
	}

	var entries [3][]float64
	for form, t := range []*tensor.CP{cp, size, terms} {
		dense, err := tensor.ToDense(t, len(data))
		if err != nil {
			return false
		}
		entries[form] = dense.Data
	}

	values, bounds, counts := entries[0], entries[1], entries[2]
	for k, x := range data {
		if x == 0 && counts[k] != 0 {
			return false
		}
		if !(math.Abs(values[k]-x) <= starRounding*math.Abs(x)) ||
			!(bounds[k] <= cancellation*math.Abs(x)) {
			return false
		}
	}
	return true
}

// pattern has 1 for every entry that is not 0, else 0.
func pattern(list []float64) []float64 {
	out := make([]float64, len(list))
	for k, x := range list {
		if x != 0 {
			out[k] = 1
		}
	}
	return out
}
