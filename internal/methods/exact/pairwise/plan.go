package pairwise

// Plans: the cost of a contraction, before it is done.

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// Cost is the cost of a contraction, to the last flop and byte, for tables whose largest entries
// are within 2^±64. Per merge of tables over S(a), S(b) into S(v): |S(a) ∪ S(b)| multiplications
// and |S(a) ∪ S(b)| − |S(v)| additions; a scalar costs one multiplication with any partner; an
// index that only one tensor has is summed before its merge. Unlike
// contractionorder.EvaluateTree it prices tables without sliced indices once, and a product with
// a scalar not as a pass over the table. Figures are float64, at most MaxFloat64.
type Cost struct {
	Slices float64 // Π of the dimensions of the sliced indices
	// CommonFlops is the work common to all slices: every task that computes
	// some of the slices spends it.
	CommonFlops float64
	SliceFlops  float64 // of one slice
	PeakBytes   float64 // most memory for tables at once, the expression's included
	Log2Table   float64 // log2 of the entries of the largest table
}

// Flops returns the work of n slices in one call.
func (c Cost) Flops(n float64) float64 { return finite(c.CommonFlops + finite(n*c.SliceFlops)) }

// Plan returns the cost that Contract will have along a tree if memory is no concern. The contraction is a sum of slices: in each slice
// every index in sliced has one value. Errors wrap contractionorder.ErrTree. Plan itself takes time O(Σ over the merges of the number of
// their indices).
func Plan(h contractionorder.Hypergraph, t contractionorder.Tree, sliced []int) (Cost, error) {
	s, err := newShape(h, t, sliced)
	if err != nil {
		return Cost{}, err
	}
	return s.cost(s.forwardProgram()), nil
}

// cost returns the cost of a program. An entry takes 8 bytes.
func (s *shape) cost(p *program) Cost {
	return Cost{
		Slices:      s.slices,
		CommonFlops: finite(p.flops[beforeSlices] + p.flops[afterSlices]),
		SliceFlops:  p.flops[inEachSlice],
		PeakBytes:   finite(8 * p.peak),
		Log2Table:   math.Max(s.log2Largest(), 0),
	}
}

// Roundings returns an upper bound of how often a term of the value is rounded when a hypergraph is contracted along a tree: by products
// and by sums at each leaf and merge. sliced are the indices that have one value in each slice. Errors wrap contractionorder.ErrTree.
func Roundings(
	h contractionorder.Hypergraph, t contractionorder.Tree, sliced []int,
) (float64, error) {
	s, err := newShape(h, t, sliced)
	if err != nil {
		return 0, err
	}
	total := 2.0 // one for the sum of the slices, and one for the scale
	for leaf := range s.leaves {
		termsPerEntry := s.leafAdditions(leaf)/s.sizes[leaf] + 1
		total += floats.SumRoundings(termsPerEntry)
	}
	for k, union := range s.unionSize {
		termsPerEntry := union / s.sizes[s.leaves+k]
		total += 2 + floats.SumRoundings(termsPerEntry) // 2: one for each of the two tables
	}
	return finite(total), nil
}
