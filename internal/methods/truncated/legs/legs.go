// Package legs holds the parts that sweeps and trees of truncated legs have in common: the value and its account of errors, the rank that
// a truncation keeps, scaling by powers of 2, shares, and the error of a memory that is too small.
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

// ErrZero ends a contraction whose value is 0.
var ErrZero = errors.New("the value is 0")

// Value is an estimate of an expression's value, and its account.
type Value struct {
	Z scaled.Number // may be negative where truncation went wrong, or the expression is
	// Marginals[i][v] is the share of Z in which index i has its v-th value; nil unless asked for, and where Z is 0. The entries of an index
	// sum to 1; for an index in no table they are equal. Truncation can make them negative.
	Marginals [][]float64
	// Discarded is the largest share Σ s_dropped² / Σ s² of one truncation that the bond forced. It is no bound of the error of Z.
	Discarded float64
	Truncated bool    // some truncation dropped singular values above the cutoff
	Bond      int     // largest bond after a truncation
	Flops     float64 // multiplications and additions, decompositions by their usual counts
	PeakBytes float64 // most held at once, tables included
}

// Cost bounds a contraction: bonds are as large as dimensions and their bound let them be.
type Cost struct {
	Flops float64 // multiplications and additions, of decompositions and gauges too
	Bytes float64 // most held at once, the expression and workspace included
}

// Rank is the number of singular values that a truncation keeps, s descending: those above cutoff times the largest, at most bond. It
// notes the truncation. Rank 0: all are 0.
func (v *Value) Rank(s []float64, bond int, cutoff float64) int {
	rank := 0
	for rank < len(s) && s[rank] > cutoff*s[0] {
		rank++
	}
	if rank > bond {
		rank = bond
		v.Truncated = true
		v.Discarded = max(v.Discarded, Squares(s[rank:], s[0])/Squares(s, s[0]))
	}
	v.Bond = max(v.Bond, rank)
	return rank
}

// Squares returns Σ (x/unit)² from the last to the first: in a unit of the largest, squares stay within float64.
func Squares(s []float64, unit float64) (sum float64) {
	for _, x := range slices.Backward(s) {
		sum += (x / unit) * (x / unit)
	}
	return sum
}

// Rescale divides by the power of 2 that makes the largest magnitude be in [1, 2), and returns its exponent. Errors: ErrZero,
// sumproduct.ErrNotFinite.
func Rescale(data []float64) (int64, error) {
	top := floats.LargestBits(data)
	switch {
	case top >= floats.Infinity:
		return 0, fault.New(fault.Unsupported, "%w", sumproduct.ErrNotFinite)
	case top == 0:
		return 0, ErrZero
	}
	return floats.Rescale(data, top).Exp, nil
}

// Share divides a row by its sum; false where that is 0 or not finite.
func Share(row []float64) bool {
	total := 0.0
	for _, v := range row {
		total += v
	}
	if total == 0 || total-total != 0 {
		return false
	}
	for x := range row {
		row[x] /= total
	}
	return true
}

// Flat returns uniform marginals.
func Flat(dims []int) [][]float64 {
	out := make([][]float64, len(dims))
	for i, d := range dims {
		out[i] = slices.Repeat([]float64{1 / float64(d)}, d)
	}
	return out
}

// Memory is a budget of bytes: query.DefaultMemory unless it is stated.
func Memory(bytes int64) float64 {
	if bytes <= 0 {
		return float64(query.DefaultMemory)
	}
	return float64(bytes)
}

// Fits is sumproduct.ErrOverBudget (fault.OverBudget) where a schedule with legs of at most bond needs more than a budget.
func Fits(bytes, memory float64, bond int) error {
	if bytes <= memory {
		return nil
	}
	return fault.New(fault.OverBudget, "%w: truncated legs of at most %d need %.0f bytes, the budget is %.0f",
		sumproduct.ErrOverBudget, bond, bytes, memory)
}

// Neighbours lists, for every index of dimension above 1, the others that some edge shares with it, ascending.
func Neighbours(h contractionorder.Hypergraph) [][]int {
	near := make([][]int, len(h.Dims))
	for _, e := range h.Edges {
		for _, i := range e {
			for _, j := range e {
				if i != j && h.Dims[i] > 1 && h.Dims[j] > 1 {
					near[i] = append(near[i], j)
				}
			}
		}
	}
	for i := range near {
		slices.Sort(near[i])
		near[i] = slices.Compact(near[i])
	}
	return near
}

// BreadthFirst lists the indices connected with start and not seen yet, marking them seen. The new neighbours of an index come in the
// sequence that arrange makes; nil: ascending.
func BreadthFirst(near [][]int, seen []bool, start int, arrange func([]int)) []int {
	out := []int{start}
	seen[start] = true
	for k := 0; k < len(out); k++ {
		begin := len(out)
		for _, j := range near[out[k]] {
			if !seen[j] {
				seen[j] = true
				out = append(out, j)
			}
		}
		if arrange != nil {
			arrange(out[begin:])
		}
	}
	return out
}
