package region

// Families that grow, for a planner to try one after the other.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Growth plans families of growing size.
type Growth struct {
	h    contractionorder.Hypergraph
	o    Options
	last *Family
}

// NewGrowth begins with the smallest family of o.Kind; o.Size and o.Radius are ignored. Auto is windows on lattices and
// loops elsewhere, which a planner may want to compare with balls.
//
//	windows 2, 3, 4, 5, …   cycles and loops 4, 6, 8, …   balls 1, 2, 3, …
func NewGrowth(h contractionorder.Hypergraph, o Options) *Growth {
	o.Size, o.Radius = 0, 0
	return &Growth{h: h, o: o}
}

// Next plans the next family, which says what it costs. It returns nil without an error where eight sizes in a row change
// nothing: there are no cycles, or none that short, or the last family holds all there is of its kind.
// Errors: those of Plan; fault.OverBudget for the first size that is too large, after which there is nothing to try.
func (g *Growth) Next(ctx context.Context) (*Family, error) {
	if g.o.Kind == "" || g.o.Kind == Auto {
		if err := g.settle(); err != nil {
			return nil, err
		}
	}
	for range mostIdle {
		switch {
		case g.o.Size == 0:
			g.o.Size = map[string]int{Windows: 2, Balls: 1}[g.o.Kind]
			if g.o.Size == 0 {
				g.o.Size = 4
			}
		case g.o.Kind == Cycles || g.o.Kind == Loops:
			g.o.Size += 2
		default:
			g.o.Size++
		}
		f, err := Plan(ctx, g.h, g.o)
		if err != nil {
			return nil, err
		}
		same := g.last != nil && g.last.same(f)
		if w, ok := f.source.(*windows); ok && g.o.Size > 2 && w.rows.whole(g.o.Size-1) && w.cols.whole(g.o.Size-1) {
			return nil, nil
		}
		if f.Len() > 0 && !same {
			g.last = f
			return f, nil
		}
	}
	return nil, nil
}

// mostIdle is how many sizes in a row may bring nothing new: all cycles may be long.
const mostIdle = 8

// settle decides what Auto is.
func (g *Growth) settle() error {
	graph, err := newGraph(g.h)
	if err != nil {
		return err
	}
	g.o.Kind = Loops
	if _, err := findLattice(graph, newCutter(graph)); err == nil {
		g.o.Kind = Windows
	} else if fault.CodeOf(err) != fault.Unsupported {
		return err
	}
	return nil
}

// same reports whether two families have the same regions with the same weights.
func (f *Family) same(o *Family) bool {
	a, ok := f.source.(*list)
	b, both := o.source.(*list)
	return ok && both && slices.Equal(a.alpha, b.alpha) && slices.Equal(a.legs, b.legs)
}
