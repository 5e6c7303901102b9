package pairwise

// Marginals: all of them from one pass back over the tree.

import (
	"context"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Result is Z and the marginals of all indices.
type Result struct {
	Z scaled.Number
	// Marginals[i][v] is Σ of the terms of Z in which index i has value v, over Z:
	// for weights that are not negative a probability. It is nil when Z is 0.
	Marginals [][]float64
}

// Marginals contracts e along t as Contract does, and returns its value Z and the marginals of every index. Z is multilinear in every
// table, so they follow from the adjoints adj(T) = ∂Z/∂T in a backward pass over the tree:
//
//	adj(A)[b, m, k] = Σ_n adj(C)[b, m, n] · B[b, k, n]   for C = A·B
//	P(i = v)        = Σ_{x: x_i = v} T·adj(T) / Z        for any table T with index i
//
// The marginal of a sliced index follows from the values of the slices. The marginal of another index is read at the smallest table for
// which no further adjoint is needed, so that the backward pass takes between one and two times the flops of Z. Tables are kept for it as
// far as the memory allows; the larger ones that are not are computed again. For a range of slices both Z and the marginals are those of
// its terms alone: the marginals of several ranges are averaged with the weights Z.
//
// Errors as for Contract; the minimum memory is PlanMarginals' figure for a budget of 1 byte. Cost: PlanMarginals.
func Marginals(
	ctx context.Context, e *sumproduct.Expression, t contractionorder.Tree, o Options,
) (Result, Stats, error) {
	r, err := newRun(ctx, e, t, o)
	if err != nil {
		return Result{}, Stats{}, err
	}

	// A program that fits the memory.
	s := r.shape
	memory := budget(o.Memory) - 8*r.copiedEntries // 8 bytes an entry
	p := s.programWithin(memory, func() *program { return s.fitBackward(memory) })
	if err := r.admit(p, o); err != nil {
		return Result{}, Stats{}, err
	}

	// Its execution. The marginals of sliced indices are the sums of the values of slices.
	s.layOut(p)
	r.startMarginals(p, e.Dims)
	z, err := r.sumSlices(p, func(value scaled.Number) {
		for _, v := range s.sliced {
			total := &r.marginals.total[v][r.slicedValues[v]]
			*total = total.Add(value)
		}
	})

	if err != nil {
		return Result{}, r.stats, err
	}
	if z.IsZero() {
		return Result{}, r.stats, nil
	}
	return Result{Z: z, Marginals: r.normalisedMarginals(z)}, r.stats, nil
}

// startMarginals prepares the run for the backward pass of a program. It sets the indices whose marginals are read at each table, and sums
// of 0 for the marginals of all indices, whose dimensions are dims. It makes room for the factor and the bound of each table, which the
// forward pass records.
func (r *run) startMarginals(p *program, dims []int) {
	tables := len(r.shape.scopes)
	r.reads = p.reads
	r.factors = make([]scaled.Number, tables)
	r.bounds = make([]int, tables)
	r.marginals.total = make([][]scaled.Number, len(dims))
	for i, d := range dims {
		r.marginals.total[i] = make([]scaled.Number, d)
	}
}

// normalisedMarginals returns the marginals of every index as probabilities: its sums divided by their total, which is Z up to rounding.
// If the total is 0 because terms cancel, they are divided by z, the value Z. An index that no table has gets equal probabilities.
func (r *run) normalisedMarginals(z scaled.Number) [][]float64 {
	rows := make([][]float64, len(r.marginals.total))
	for i, sums := range r.marginals.total {
		rows[i] = make([]float64, len(sums))
		total := scaled.Sum(sums)
		for v, x := range sums {
			switch {
			case !total.IsZero():
				rows[i][v] = x.Div(total).Float64()
			case r.shape.dims[i] == 1 || !r.isUsed[i]: // no table tells its values apart
				rows[i][v] = 1 / float64(len(sums))
			default:
				rows[i][v] = x.Div(z).Float64()
			}
		}
	}
	return rows
}

// PlanMarginals returns the cost that Marginals will have along a tree with some sliced indices, for a budget of memory bytes (0: 2 GiB).
// Its PeakBytes exceed the budget if no program within the budget was found. Errors wrap contractionorder.ErrTree.
func PlanMarginals(
	h contractionorder.Hypergraph, t contractionorder.Tree, sliced []int, memory int64,
) (Cost, error) {
	s, err := newShape(h, t, sliced)
	if err != nil {
		return Cost{}, err
	}
	// fitBackward chooses which tables of the forward pass are kept for the backward pass. programWithin calls it for fewer and fewer
	// tables that are kept for all slices, until the program fits.
	p := s.programWithin(budget(memory), func() *program { return s.fitBackward(budget(memory)) })
	return s.cost(p), nil
}

// budget returns the bytes of a memory option. It is query.DefaultMemory if the option is 0 or less.
func budget(memory int64) float64 {
	if memory <= 0 {
		memory = query.DefaultMemory
	}
	return float64(memory)
}
