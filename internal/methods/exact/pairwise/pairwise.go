// Package pairwise contracts an expression exactly along a contraction tree:
// two tables at a time, slice after slice.
//
// A merge computes out[b, m, n] = Σ_k A[b, m, k] · B[b, k, n] where every letter stands for a group
// of indices: b in both tables and still needed, m and n in one of them, k in both and nowhere
// else. No table is permuted as a whole: the kernels read panels of any layout into the first
// cache, and each result is laid out so that the next merge finds long runs (see layout.go).
//
// Every table carries an exponent of 2 through the scale of the whole,
// so nothing over- or underflows. Results have the same bits for any number of threads.
//
// Memory is counted as: the tables of the expression, whole, throughout; each result from the merge
// that makes it to the end of the merge that consumes it; during its merge the copy of a table that
// is sliced, or has an index of its own to be summed first. Workspace for panels comes on top: at
// most WorkspaceBytes per thread, for all tables.
package pairwise

import (
	"context"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Options bound a contraction. The zero value works.
type Options struct {
	Memory int64 // bytes for tables, the expression's included; 0: query.DefaultMemory, 2 GiB
	// Threads is the number of goroutines. They compute slices at the same time if Contract has several and the memory
	// allows it, otherwise parts of one large merge. 0: GOMAXPROCS. The result does not depend on it.
	Threads int
	Slices  []int // indices fixed to a value per slice
	// From and To are the slices to sum, From ≤ s < To; To = 0 means all. Slice s fixes the indices
	// of Slices to the digits of s in the mixed radix of their dimensions, the last one the
	// fastest.
	From, To int64
}

// Stats is the cost of a contraction. It is Plan's prediction for as many slices, unless a table that is
// 0 ended a slice early. Slices computed at the same time each hold their own tables: PeakBytes is
// then larger, within Options.Memory.
type Stats struct {
	Flops     float64 // multiplications and additions
	PeakBytes int64   // largest total of live tables, the expression's included
	Slices    int64   // slices computed
	Merges    int64   // merges computed
	// Lost states that terms may be missing: somewhere a product of entries may have been below
	// 2^-1020 in units of its table, for which a float64 has no digits. A total that is not
	// Lost has all its terms. If it is 0, it has no terms.
	Lost bool
}

// Contract returns the value of e, contracted along t,
// or the part of it that the slices From ≤ s < To make up:
//
//	Z = Scale · Σ_s Σ_x Π_t Tables[t][x, s]
//
// Subtrees without a sliced index are computed once, as far as there is memory to keep their
// results. The slices are added exactly and rounded once. Z = 0 is an answer. Within one table,
// entries 2^−900 below the largest may become 0, and Stats.Lost reports it.
//
// Errors: sumproduct.ErrOverBudget with the bytes, before anything is computed;
// sumproduct.ErrExpression; contractionorder.ErrTree; sumproduct.ErrNotFinite; the context's error,
// looked at between merges and within large ones.
// Cost: PlanWithin, to which copies come of tables whose largest entry is beyond 2^±64.
func Contract(
	ctx context.Context, e *sumproduct.Expression, t contractionorder.Tree, o Options,
) (scaled.Number, Stats, error) {
	r, err := newRun(ctx, e, t, o)
	if err != nil {
		return scaled.Number{}, Stats{}, err
	}
	p := r.shape.programWithin(budget(o.Memory)-8*r.copiedEntries, r.shape.forwardProgram) // in bytes, 8 for an entry
	if err := r.admit(p, o); err != nil {
		return scaled.Number{}, Stats{}, err
	}

	r.shape.layOut(p)
	r.spareEntries = budget(o.Memory)/8 - r.entryLimit // 8 bytes an entry
	sum, err := r.sumSlices(p, nil)                    // nil: no backward pass
	if err != nil {
		return scaled.Number{}, r.stats, err
	}
	return sum, r.stats, nil
}

// newRun returns a run over the slices o.From ≤ s < o.To of the expression e along the tree t, with its tables measured. Errors: those of
// Contract, except ErrOverBudget for the bytes and the context's.
func newRun(
	ctx context.Context, e *sumproduct.Expression, t contractionorder.Tree, o Options,
) (*run, error) {
	if err := e.Validate(); err != nil {
		return nil, err
	}

	h := e.Hypergraph()
	s, err := newShape(h, t, o.Slices)
	if err != nil {
		return nil, err
	}

	r := &run{
		ctx:     ctx,
		shape:   s,
		from:    o.From,
		to:      o.To,
		threads: sumproduct.Threads(o.Threads),
		start:   e.Scale,
	}

	if o.To == 0 { // all slices
		if s.slices > 1<<62 { // more than an int64 counts
			return nil, fault.New(fault.OverBudget, "%w: %.3g slices",
				sumproduct.ErrOverBudget, s.slices)
		}
		r.to = int64(s.slices)
	}

	if r.from < 0 || r.from > r.to || float64(r.to) > s.slices {
		return nil, fmt.Errorf("%w: slices %d to %d, there are %.0f",
			sumproduct.ErrExpression, o.From, o.To, s.slices)
	}
	return r, r.measureTables(e)
}

// admit sets the limit of live entries to what a program needs, and the copies of tables that were made already. Errors:
// sumproduct.ErrOverBudget if that is more than the memory of the options; the context's.
func (r *run) admit(p *program, o Options) error {
	r.entryLimit = p.peak + r.copiedEntries
	if memory := budget(o.Memory); 8*r.entryLimit > memory {
		return overBudget(8*r.entryLimit, r.shape, memory)
	}
	return r.ctx.Err()
}

// overBudget returns the error of a contraction that needs more bytes than memory.
func overBudget(bytes float64, s *shape, memory float64) error {
	text := fmt.Sprintf("%.0f bytes", bytes)
	if bytes > 1e15 { // too many digits to be read
		text = fmt.Sprintf("2^%.1f bytes", math.Log2(bytes))
	}
	return fault.New(fault.OverBudget,
		"%w: the contraction needs %s of tables (largest table 2^%.1f entries, %.0f slices), "+
			"the budget is %.0f bytes",
		sumproduct.ErrOverBudget, text, s.log2Largest(), s.slices, memory)
}
