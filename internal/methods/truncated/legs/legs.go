// Package legs holds the parts that sweeps and trees of truncated legs have in common: the value and its account of errors, the rank that
// a truncation keeps, scaling by powers of 2, normalised marginals, and the error of a memory that is too small.
package legs

import (
	"errors"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// ErrZero ends a contraction early because its value is 0.
var ErrZero = errors.New("the value is 0")

// Value is an estimate of an expression's value, with what the truncations dropped and what the contraction cost.
type Value struct {
	Z scaled.Number // negative only if the expression has negative entries, or if truncation went wrong
	// Marginals[i][v] is the share of Z in which index i has its v-th value. It is nil if it was not asked for, or if Z is 0. The entries
	// of an index sum to 1. For an index in no table they are equal. Truncation can make them negative.
	Marginals [][]float64
	// Discarded is the largest share Σ s_dropped² / Σ s² of one truncation that the bond forced. It is no bound of the error of Z.
	Discarded float64
	Truncated bool    // the bond forced a truncation to drop singular values above the cutoff
	Bond      int     // largest bond after a truncation
	Flops     float64 // multiplications and additions, decompositions by their usual counts
	PeakBytes float64 // most held at once, tables included
}

// Cost is an upper bound of the cost of a contraction. It takes bonds to be as large as dimensions and their bound allow.
type Cost struct {
	Flops float64 // multiplications and additions, of decompositions and gauges too
	Bytes float64 // most held at once, the expression and workspace included
}

// ChooseRank returns how many singular values a truncation keeps: those above cutoff times the largest, but at most bond. singular is in
// descending order. The result is 0 if all are 0. ChooseRank raises v.Bond to it. If the bond drops values above the cutoff, it also sets
// v.Truncated and raises v.Discarded to the share Σ s_dropped²/Σ s².
func (v *Value) ChooseRank(singular []float64, bond int, cutoff float64) int {
	rank := 0
	for rank < len(singular) && singular[rank] > cutoff*singular[0] {
		rank++
	}
	if rank > bond {
		rank = bond
		v.Truncated = true
		v.Discarded = max(v.Discarded, sumOfSquares(singular[rank:], singular[0])/sumOfSquares(singular, singular[0]))
	}
	v.Bond = max(v.Bond, rank)
	return rank
}

// sumOfSquares returns Σ (x/unit)² over the values, added up from the last to the first. With the largest value as unit, no square
// overflows.
func sumOfSquares(values []float64, unit float64) (sum float64) {
	for _, x := range slices.Backward(values) {
		sum += (x / unit) * (x / unit)
	}
	return sum
}

// Rescale divides data by a power of 2, so that the largest magnitude is in [1, 2), and returns the exponent of that power. Errors:
// ErrZero if all entries are 0; sumproduct.ErrNotFinite.
func Rescale(data []float64) (exp int64, err error) {
	largest := floats.LargestBits(data)
	switch {
	case largest >= floats.Infinity:
		return 0, fault.New(fault.Unsupported, "%w", sumproduct.ErrNotFinite)
	case largest == 0:
		return 0, ErrZero
	}
	return floats.Rescale(data, largest).Exp, nil
}

// Normalise divides a row by its sum. If the sum is 0 or not finite, it changes nothing and returns false.
func Normalise(row []float64) (ok bool) {
	total := 0.0
	for _, v := range row {
		total += v
	}
	if total == 0 || total-total != 0 { // the difference is NaN if the total is not finite
		return false
	}
	for x := range row {
		row[x] /= total
	}
	return true
}

// UniformMarginals returns, for each index, 1/d for each of its d values.
func UniformMarginals(dims []int) [][]float64 {
	marginals := make([][]float64, len(dims))
	for i, d := range dims {
		marginals[i] = slices.Repeat([]float64{1 / float64(d)}, d)
	}
	return marginals
}

// MemoryOrDefault returns the number of bytes that a contraction may take: bytes, or query.DefaultMemory if that is 0 or less.
func MemoryOrDefault(bytes int64) float64 {
	if bytes <= 0 {
		return float64(query.DefaultMemory)
	}
	return float64(bytes)
}

// CheckMemory returns sumproduct.ErrOverBudget (fault.OverBudget) if a contraction with legs of at most bond needs more bytes than memory.
func CheckMemory(bytes, memory float64, bond int) error {
	if bytes <= memory {
		return nil
	}
	return fault.New(fault.OverBudget, "%w: truncated legs of at most %d need %.0f bytes, the budget is %.0f",
		sumproduct.ErrOverBudget, bond, bytes, memory)
}

// Neighbours returns for every index the other indices that share an edge with it, ascending. Indices of dimension 1 have no neighbours,
// and are no neighbours of others.
func Neighbours(h contractionorder.Hypergraph) [][]int {
	neighbours := make([][]int, len(h.Dims))
	for _, edge := range h.Edges {
		for _, i := range edge {
			for _, j := range edge {
				if i != j && h.Dims[i] > 1 && h.Dims[j] > 1 {
					neighbours[i] = append(neighbours[i], j)
				}
			}
		}
	}
	for i := range neighbours {
		slices.Sort(neighbours[i])
		neighbours[i] = slices.Compact(neighbours[i])
	}
	return neighbours
}

// BreadthFirst returns start and all indices that can be reached from it through indices that are not visited yet. They come in the order
// of a breadth-first search, and are marked as visited. If arrange is not nil, it sorts the new neighbours of each index before they are
// visited; otherwise they keep the order that they have in neighbours.
func BreadthFirst(neighbours [][]int, isVisited []bool, start int, arrange func([]int)) []int {
	order := []int{start}
	isVisited[start] = true
	for k := 0; k < len(order); k++ {
		firstNew := len(order)
		for _, j := range neighbours[order[k]] {
			if !isVisited[j] {
				isVisited[j] = true
				order = append(order, j)
			}
		}
		if arrange != nil {
			arrange(order[firstNew:])
		}
	}
	return order
}
