package region

// Families: their regions, weights and cost.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Family is a set of regions closed under intersection, numbered from 0, with their counting
// numbers. It is a function of the hypergraph and the options: every worker can plan it again.
type Family struct {
	Options Options // as planned: no defaults left
	Regions int     // with α ≠ 0; of windows, including those cut to nothing
	// multiplications and additions, without bookkeeping; predicted for windows of large lattices
	Flops  float64
	Widest int // log2 of the largest table of any region's contraction, rounded up
	// tables of one worker at the largest region; beside them Prepare's gauge, linear in the model
	Bytes float64
	// Moves is the work of planning, out of Options.Moves.
	Moves  int64
	g      *graph
	source source
}

// source numbers regions. The legs that region returns may be overwritten by the next call with the
// same worker.
type source interface {
	len() int
	region(r int, w *worker) (legs []int32, alpha int64)
	largest(r int) bool // false only for regions inside others
}

// Len returns the number of regions.
func (f *Family) Len() int { return f.source.len() }

// Plan makes the family that the options ask for, without looking at any entry. Windows take time
// linear in the model and no memory for regions. Lists of regions are closed under intersection:
// time goes with regions times those they overlap.
//
// Errors: fault.Unsupported for windows where there is no lattice; fault.OverBudget for families
// beyond the options' bounds; fault.BadInput for options; the context's.
func Plan(ctx context.Context, h contractionorder.Hypergraph, o Options) (*Family, error) {
	g, err := newGraph(h)
	if err != nil {
		return nil, err
	}
	if o, err = o.withDefaults(); err != nil {
		return nil, err
	}
	w := newWorker(g, nil)
	f := &Family{Options: o, g: g}
	w.left = newMoves(ctx, o.Moves)
	if o.Kind == Windows {
		err = f.planWindows(ctx, w)
	} else {
		err = f.planList(ctx, w)
	}
	if err != nil {
		return nil, err
	}
	f.Moves = w.left.used()
	if o.Marginals {
		f.Flops *= marginalFlops
		f.Bytes *= 2
	}
	if f.Widest > o.MaxWidth {
		return nil, fault.New(fault.OverBudget,
			"region: %s of size %d have tables of 2^%d entries, 2^%d are allowed",
			o.Kind, o.Size, f.Widest, o.MaxWidth)
	}
	if f.Flops > o.Flops {
		return nil, fault.New(fault.OverBudget, "region: %s of size %d take %.3g flops, %.3g are allowed",
			o.Kind, o.Size, f.Flops, o.Flops)
	}
	return f, nil
}

// marginalFlops is the cost of a ratio with all marginals, in ratios.
const marginalFlops = 3

// maxPriced is the number of windows up to which each is priced, not one for all of the same size.
const maxPriced = 1 << 14

// planWindows prices the windows of a lattice: each, or one in the middle for all of its kind where
// they are many.
func (f *Family) planWindows(ctx context.Context, w *worker) error {
	l, err := findLattice(f.g, w.cut)
	if err != nil {
		return err
	}
	s := &windows{l, f.Options.Size}
	f.source, f.Regions = s, s.len()
	down, across := s.rows.intervals(s.k), s.cols.intervals(s.k)
	if f.Regions <= maxPriced {
		return f.price(ctx, w, 1, 0, 1, f.Regions)
	}
	// Along a line, even intervals are the windows and odd ones their intersections. Those in the
	// middle stand for all.
	for _, r := range middle(down) {
		for _, c := range middle(across) {
			many := float64(r.many) * float64(c.many)
			if err := f.price(ctx, w, many, r.at*across+c.at, 1, 1); err != nil {
				return err
			}
		}
	}
	return nil
}

// pick is one interval of a line that stands for many.
type pick struct{ at, many int }

// middle returns the intervals in the middle of n, even and odd ones, with the number that each stands for.
func middle(n int) []pick {
	even := pick{n / 2 &^ 1, (n + 1) / 2}
	if n == 1 {
		return []pick{even}
	}
	return []pick{even, {n/2 - 1 | 1, n / 2}}
}

// planList makes balls, closes them under intersection, weighs and prices them.
func (f *Family) planList(ctx context.Context, w *worker) error {
	s, left := newStore(f.Options.MaxRegions), w.left
	if err := f.addBalls(ctx, w, s, left); err != nil {
		return err
	}
	if err := closeUnder(w.cut, s, left); err != nil {
		return err
	}

	alpha, err := moebius(f.g, s, left)
	if err != nil {
		return err
	}
	l := newList(f.g, s, alpha)
	if f.Options.Marginals {
		l = l.withFreeLegs(f.g)
	}
	f.source = l
	f.Regions = f.Len()
	return f.price(ctx, w, 1, 0, 1, f.Regions)
}

// price adds the flops of regions, each counted many times, and finds the widest.
func (f *Family) price(ctx context.Context, w *worker, many float64, from, step, n int) error {
	widest := float64(f.Widest)
	for k := range n {
		legs, _ := f.source.region(from+k*step, w)
		if len(legs) == 0 {
			continue
		}
		c := w.cost(ctx, legs)
		if err := w.left.spend(1); err != nil {
			return err
		}
		f.Flops += many * c.flops
		f.Bytes = max(f.Bytes, 8*c.entries)
		widest = max(widest, c.log2)
	}
	f.Widest = int(math.Ceil(widest - 1e-9)) // but for rounding
	return nil
}
