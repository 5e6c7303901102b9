package region

// Families: their regions, weights and cost.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Family is a set of regions closed under intersection, numbered from 0, with their counting numbers α. A region is a set of legs; a leg is
// an index of a table. A family is a function of the hypergraph and the options, so every worker can plan it again.
type Family struct {
	Options Options // as planned: no defaults left
	Regions int     // with α ≠ 0; of windows, including those cut to nothing
	// Flops is the number of multiplications and additions, without bookkeeping. It is predicted for windows of large lattices.
	Flops  float64
	Widest int // log2 of the largest table of any region's contraction, rounded up
	// Bytes is the memory for the tables of one worker at the largest region. Prepare's gauge comes in addition, linear in the model.
	Bytes  float64
	Moves  int64  // the work of planning, out of Options.Moves
	graph  *graph // the legs of the hypergraph
	source source // the regions
}

// source is the numbered list of the regions of a family: windows or list.
type source interface {
	// len returns the number of regions.
	len() int
	// region returns the legs and the counting number of region r. The next call with the same worker may overwrite the legs.
	region(r int, w *worker) (legs []int32, alpha int64)
	// mayBeLargest is false only if region r is inside another region.
	mayBeLargest(r int) bool
}

// Len returns the number of regions.
func (f *Family) Len() int { return f.source.len() }

// Plan makes the family of overlapping regions that the options ask for: windows of a lattice, or balls around each index, and their
// intersections. It predicts their cost and looks at no entry. Windows take time linear in the model and no memory for
// regions. Balls are closed under intersection: their time grows with the number of regions times the number that each overlaps.
//
// Errors: fault.Unsupported for windows if the model is no lattice; fault.OverBudget for families beyond the options' bounds;
// fault.BadInput for options; the context's.
func Plan(ctx context.Context, h contractionorder.Hypergraph, o Options) (*Family, error) {
	g, err := newGraph(h)
	if err != nil {
		return nil, err
	}
	if o, err = o.withDefaults(); err != nil {
		return nil, err
	}
	w := newWorker(g, nil) // nil: planning needs no gauge of the tables

	f := &Family{Options: o, graph: g}
	w.remaining = newMoves(ctx, o.Moves)
	if o.Kind == Windows {
		err = f.planWindows(ctx, w)
	} else {
		err = f.planBalls(ctx, w)
	}
	if err == nil {
		err = ctx.Err() // if the context has ended, planBalls may have taken balls for too wide and left them out without an error
	}
	if err != nil {
		return nil, err
	}

	f.Moves = w.remaining.used()
	if o.Marginals {
		f.Flops *= marginalFlops
		f.Bytes *= 2 // tables and their derivatives
	}
	if err := f.checkBounds(); err != nil {
		return nil, err
	}
	return f, nil
}

// checkBounds returns fault.OverBudget if the family has larger tables or costs more than its options allow.
func (f *Family) checkBounds() error {
	o := f.Options
	if f.Widest > o.MaxWidth {
		return fault.New(fault.OverBudget,
			"region: %s of size %d have tables of 2^%d entries, 2^%d are allowed",
			o.Kind, o.Size, f.Widest, o.MaxWidth)
	}
	if f.Flops > o.Flops {
		return fault.New(fault.OverBudget, "region: %s of size %d take %.3g flops, %.3g are allowed",
			o.Kind, o.Size, f.Flops, o.Flops)
	}
	return nil
}

// marginalFlops is the work of a ratio Z_r / Z_BP with all marginals, in units of the work of the ratio only.
const marginalFlops = 3

// maxPriced is the largest number of windows at which each window is priced. If there are more, one window of each size is.
const maxPriced = 1 << 14

// planWindows finds the lattice of the model, sets the regions to its windows and their intersections, and prices them. A window is a
// rectangle of at most Options.Size points on each side. If there are more than maxPriced regions, one in the middle stands for all regions
// of the same height and width.
func (f *Family) planWindows(ctx context.Context, w *worker) error {
	l, err := findLattice(f.graph, w.cut)
	if err != nil {
		return err
	}
	s := &windows{l, f.Options.Size}
	f.source, f.Regions = s, s.len()
	if f.Regions <= maxPriced {
		return f.priceAll(ctx, w)
	}

	// A region is an interval of rows times an interval of columns.
	down, across := s.rows.intervals(s.size), s.cols.intervals(s.size)
	for _, row := range middleIntervals(down) {
		for _, col := range middleIntervals(across) {
			count := float64(row.count) * float64(col.count)
			if err := f.price(ctx, w, row.number*across+col.number, count); err != nil {
				return err
			}
		}
	}
	return nil
}

// representative is the number of an interval of a line that stands for count intervals of the same length.
type representative struct{ number, count int }

// middleIntervals returns representatives of the n intervals of a line. Intervals with even numbers are windows, and those with odd numbers
// intersections of two windows, which are shorter. So it returns an even and an odd number near n/2, or only the even one if n is 1.
func middleIntervals(n int) []representative {
	even := representative{number: n / 2 &^ 1, count: (n + 1) / 2} // n/2 rounded down to an even number
	if n == 1 {
		return []representative{even}
	}
	odd := representative{number: n/2 - 1 | 1, count: n / 2} // n/2 − 1 rounded up to an odd number
	return []representative{even, odd}
}

// planBalls sets the regions to a ball around each index and the intersections of balls, and computes their counting numbers and their
// price. A ball has the indices within Options.Size steps of its centre.
func (f *Family) planBalls(ctx context.Context, w *worker) error {
	s, remaining := newStore(f.Options.MaxRegions), w.remaining
	if err := f.addBalls(ctx, w, s, remaining); err != nil {
		return err
	}
	if err := addAllIntersections(w.cut, s, remaining); err != nil {
		return err
	}

	alpha, err := moebius(f.graph, s, remaining)
	if err != nil {
		return err
	}

	l := newList(f.graph, s, alpha)
	if f.Options.Marginals { // legs in no region are added, so that the regions have the marginals of their indices
		l = l.withFreeLegs(f.graph)
	}
	f.source = l
	f.Regions = f.Len()
	return f.priceAll(ctx, w)
}

// priceAll prices every region of the family.
func (f *Family) priceAll(ctx context.Context, w *worker) error {
	for r := range f.source.len() {
		if err := f.price(ctx, w, r, 1); err != nil {
			return err
		}
	}
	return nil
}

// price adds the flops of region r, count times, and raises f.Bytes and f.Widest to those of the region if these are larger. count is the
// number of regions of the same shape that r stands for.
func (f *Family) price(ctx context.Context, w *worker, r int, count float64) error {
	legs, _ := f.source.region(r, w) // its counting number does not change the cost
	if len(legs) == 0 {              // a region without cycles is not contracted
		return nil
	}
	c := w.cost(ctx, legs)
	if err := w.remaining.spend(1); err != nil {
		return err
	}
	f.Flops += count * c.flops
	f.Bytes = max(f.Bytes, 8*c.entries)
	f.Widest = max(f.Widest, int(math.Ceil(c.log2-1e-9))) // 1e-9 for rounding errors of log2
	return nil
}
