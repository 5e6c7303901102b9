package compiler

// Splitting a sum: cubes are partial assignments of which every assignment extends exactly one.

import (
	"cmp"
	"context"
	"slices"
	"sort"

	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/formula"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Cube is a partial assignment: literals that hold together. Z of a formula is the sum of Z of formula.Condition(f, cube) over the cubes
// of a split (Lemma 5 of the paper: a sum over the values of cut links).
type Cube struct {
	Literals []formula.Literal
	Work     float64 // relative to those of the other cubes, estimated
}

// Split is a sum in cubes.
type Split struct {
	Cubes []Cube
	// Order is the elimination order of what is left at the root whose tree guided the split, for Options.Order of the cubes.
	Order []int
	// Again is how many times the work of the whole the cubes take, estimated by all assignments of the bags under the cubes alone:
	// what does not meet the variables that are split on is done in every cube.
	Again float64
}

const (
	// cubeProbe is the work within which a formula is summed and not split, where Options.Work does not say less.
	cubeProbe = 1 << 22
	// orderWork bounds the search for the order that all cubes have in common: a tenth of a second.
	orderWork = 1 << 25
)

// Cubes splits a formula into at most n cubes of similar work, the hardest first: the one with most work is split in two, over and over, on
// the variable that the largest bags of a tree decomposition have, so that its value makes as much as possible of them smaller. The
// work of a cube is estimated by the assignments that the bags have left after propagation. It ends where Split.Again would be above again.
// Cubes that propagation shows to have no assignment are left out; none are left where the sum is 0.
//
// A formula that is summed within Options.Work, or 2^22 steps, is not split. Every cube costs a propagation and
// the probing of its literals. Errors are those of Compile, but for a budget of work that is spent.
func Cubes(ctx context.Context, f *formula.Formula, o Options, n int, again float64) (Split, error) {
	if o.Memory == 0 {
		o.Memory = defaultMemory
	}
	if o.Work == 0 || o.Work > cubeProbe {
		o.Work = cubeProbe
	}
	if err := checkMemory(f, o.Memory); err != nil {
		return Split{}, err
	}
	o.Builder = nil
	sp := &splitter{ctx: ctx, f: f, o: o}
	open, err := sp.whole()
	for err == nil && len(open) > 0 && len(open) < n {
		at := hardest(open)
		hard := open[at]
		if hard.split < 0 {
			break
		}
		var parts []piece
		if parts, err = sp.halves(hard); err == nil {
			next := append(slices.Delete(slices.Clone(open), at, at+1), parts...)
			if sp.again(next) > again {
				break
			}
			open = next
		}
	}
	if err != nil {
		return Split{}, err
	}

	out := Split{Cubes: make([]Cube, len(open)), Order: sp.order, Again: sp.again(open)}
	slices.SortStableFunc(open, func(a, b piece) int { return cmp.Compare(b.Work, a.Work) })
	for i, p := range open {
		out.Cubes[i] = p.Cube
	}
	return out, nil
}

// splitter splits one formula.
type splitter struct {
	ctx   context.Context
	f     *formula.Formula
	o     Options
	tree  decomposition
	order []int
	dims  []int // at the root
}

// halves are what a piece is split into.
func (sp *splitter) halves(of piece) ([]piece, error) {
	var parts []piece
	for _, l := range []formula.Literal{of.split, of.split.Not()} {
		part, err := sp.piece(append(of.Literals[:len(of.Literals):len(of.Literals)], l))
		if err != nil {
			return nil, err
		}
		if part != nil {
			parts = append(parts, *part)
		}
	}
	return parts, nil
}

// again is Split.Again of pieces.
func (sp *splitter) again(pieces []piece) float64 {
	sum := 0.0
	for _, p := range pieces {
		sum += sp.unpropagated(p.Literals)
	}
	return sum / sp.unpropagated(nil)
}

// unpropagated is how many assignments the bags have under literals alone.
func (sp *splitter) unpropagated(literals []formula.Literal) float64 {
	dims := slices.Clone(sp.dims)
	for _, l := range literals {
		v := sort.Search(len(dims), func(v int) bool { return sp.f.Offset(v) > l.Atom() }) - 1
		if l.Negative() && dims[v] > 2 {
			dims[v]--
		} else {
			dims[v] = 1
		}
	}
	return sp.tree.cells(contractionorder.Hypergraph{Dims: dims})
}

// piece is a cube, and the literal that splits it; −1 where nothing does.
type piece struct {
	Cube
	split formula.Literal
}

// hardest is the place of the piece with most work.
func hardest(pieces []piece) int {
	at := 0
	for i, p := range pieces {
		if p.Work > pieces[at].Work {
			at = i
		}
	}
	return at
}

// whole searches the formula for a while, and returns it as one piece; none where it has no assignment.
func (sp *splitter) whole() ([]piece, error) {
	s, err := sp.root(nil)
	if err != nil || s == nil {
		return nil, err
	}
	s.o.Work = orderWork
	if sp.tree, sp.order, err = s.follow(); err != nil {
		return nil, err
	}
	sp.dims = s.dimensions()
	all := sp.measure(s, nil)
	s.o.Work = sp.o.Work + s.work
	z, err := s.run()
	switch {
	case fault.CodeOf(err) == fault.OverBudget:
		return []piece{all}, nil
	case err != nil || z.number.Mant == 0:
		return nil, err
	}
	all.split = -1
	return []piece{all}, nil
}

// piece propagates a cube; nil where it has no assignment.
func (sp *splitter) piece(literals []formula.Literal) (*piece, error) {
	s, err := sp.root(literals)
	if err != nil || s == nil {
		return nil, err
	}
	p := sp.measure(s, literals)
	return &p, nil
}

func (sp *splitter) root(literals []formula.Literal) (*search, error) {
	p, err := encode(formula.Condition(sp.f, literals), sp.o.Weights, true)
	if err != nil {
		return nil, err
	}
	return root(sp.ctx, p, sp.o)
}

// measure weighs a cube by the open assignments of all bags, and finds the variable with the heaviest bags; of its values
// the first open one splits.
func (sp *splitter) measure(s *search, literals []formula.Literal) piece {
	dims := s.dimensions()
	weight := make([]float64, len(dims))
	out := piece{Cube: Cube{Literals: literals}, split: -1}
	for _, bag := range sp.tree.bags {
		cells := 1.0
		for _, v := range bag {
			cells = min(cells*float64(dims[v]), 1e300)
		}
		out.Work = min(out.Work+cells, 1e300)
		for _, v := range bag {
			weight[v] += cells / 1e6
		}
	}
	best := -1
	for v, d := range dims {
		if d > 1 && weight[v] > 0 && (best < 0 || weight[v] > weight[best]) {
			best = v
		}
	}
	if best < 0 {
		return out
	}
	for a := range s.p.f.Domains[best] {
		if s.value[s.p.is(int32(best), a)] == 0 {
			out.split = s.p.f.Literal(best, a)
			break
		}
	}
	return out
}
