package compiler

// The budget: how long a search goes on.

import (
	"context"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/pkg/fault"
)

// budget bounds a search by its work, its memory and its context, and follows its progress.
type budget struct {
	residual *residual // its solver counts the work
	stats    *Stats
	work     int64            // steps at most; 0: no limit
	bytes    int64            // of slices of tables, at most
	circuit  *circuit.Builder // the search ends if it is full; nil: none has to be made
	askRival func() float64   // Options.Rival; nil: there is none, or it was asked

	rival    float64 // steps in the time of another way; 0: it is not known
	cells    float64 // assignments of all bags of the tree decomposition
	begun    int64   // work when the search began
	progress float64 // the finished fraction of the decision tree, both values of a decision taken as alike
	checked  int64   // work when the context was last looked at
	err      error   // why the search ends early
}

// newBudget returns the budget of a search that begins now. cells is the number of assignments of all bags of its tree decomposition.
func newBudget(r *residual, stats *Stats, cells float64, o Options) *budget {
	b := &budget{residual: r, stats: stats, work: o.Work, bytes: o.Memory / 8, askRival: o.Rival, cells: cells, begun: r.solver.Work}
	if o.CircuitOnly {
		b.circuit = o.Builder
	}
	return b
}

// nearEnd is how many times its work a search may take if what is left of it, by the fraction that is done, takes less than the
// elimination.
// Measured: logistics.b has 0.6 done after 0.45 of its 2.8e8 steps, where it was given up for a tree that took twice as long; weighted
// formula 121 is summed in 4.7e9 steps, of whose decisions more than 0.99 are done in 2e9, and in cubes takes twice as long.
const nearEnd = 4

// isFasterThanRival reports whether the search may go on although its work is above the limit b.work, because another way, the rival,
// takes longer. The first call asks for the rival's price in steps, and raises the limit to half of that price. Beyond the limit the
// search may go on to nearEnd times the limit if the work that remains, by the progress so far, is less than the rival's:
//
//	work so far · (1 − progress) / progress < rival
func (b *budget) isFasterThanRival(work int64) bool {
	if b.askRival != nil {
		b.rival = min(b.askRival(), b.cells/policy.StepCells) // in steps; an elimination along the search's own tree may be cheaper
		b.askRival = nil
		b.work = max(b.work, int64(b.rival/2))
	}
	remaining := float64(work-b.begun) * (1 - b.progress) // the work that remains, times progress
	isNearEnd := work <= nearEnd*b.work && remaining < b.rival*b.progress
	return work <= b.work || isNearEnd
}

// checkEvery is the work between two looks at the context: some milliseconds.
const checkEvery = 1 << 18

// mayGoOn reports whether the search may go on. If not, b.err says why: the work is spent, the circuit's builder is full, the slices of
// tables take too much memory, or the context has ended. It looks at the context once in checkEvery steps.
func (b *budget) mayGoOn(ctx context.Context) bool {
	work := b.residual.solver.Work
	switch {
	case b.err != nil:
	case b.work > 0 && work > b.work && !b.isFasterThanRival(work):
		b.err = fault.New(fault.OverBudget,
			"%w: %d steps of work are spent after %d decisions about %d variables, with some %.2g of the search done",
			ErrBudget, b.work, b.stats.Decisions, b.stats.Variables, b.progress)
	case b.circuit != nil && b.circuit.IsFull():
		b.err = fault.New(fault.OverBudget, "%w, after %d steps of work and %d decisions about %d variables, with some %.2g of the search done",
			circuit.ErrFull, work, b.stats.Decisions, b.stats.Variables, b.progress)
	case b.residual.bytes > b.bytes:
		b.err = fault.New(fault.OverBudget, "%w: slices of tables take %d bytes, an eighth of the memory is %d",
			ErrBudget, b.residual.bytes, b.bytes)
	case work-b.checked > checkEvery:
		b.checked = work
		b.err = ctx.Err()
	}
	return b.err == nil
}
