package compiler

// Splitting a sum: cubes are partial assignments of which every assignment extends exactly one.

import (
	"context"

	"github.com/basetensor/basetensor/internal/formula"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Cube is a partial assignment: literals that hold together. Z of a formula is the sum of Z of formula.Condition(f, cube) over the cubes
// of a split (Lemma 5 of the paper: a sum over the values of cut links).
type Cube struct {
	Literals []formula.Literal
	Work     float64 // relative to those of the other cubes, estimated
}

// cubeProbe is the work within which a formula is summed and not split, where Options.Work does not say less.
const cubeProbe = 1 << 22

// Cubes splits a formula into about n cubes of similar work: the one with most work is split in two, over and over, on the variable that
// the largest bags of a tree decomposition have, so that its value makes as much as possible of them smaller. The
// work of a cube is estimated by the assignments that the bags have left after propagation. Cubes that propagation
// shows to have no assignment are left out; none are left where the sum is 0.
//
// A formula that is summed within Options.Work, or 2^22 steps, is not split. Every cube costs a propagation and
// the probing of its literals. Errors are those of Compile, but for a budget of work that is spent.
func Cubes(ctx context.Context, f *formula.Formula, o Options, n int) ([]Cube, error) {
	if o.Memory == 0 {
		o.Memory = defaultMemory
	}
	if o.Work == 0 || o.Work > cubeProbe {
		o.Work = cubeProbe
	}
	if err := checkMemory(f, o.Memory); err != nil {
		return nil, err
	}
	o.Builder = nil
	sp := &splitter{ctx: ctx, f: f, o: o}
	open, err := sp.whole()
	for err == nil && len(open) > 0 && len(open) < n {
		at := hardest(open)
		if open[at].split < 0 {
			break
		}
		hard := open[at]
		open = append(open[:at], open[at+1:]...)
		for _, l := range []formula.Literal{hard.split, hard.split.Not()} {
			var part *piece
			part, err = sp.piece(append(hard.Literals[:len(hard.Literals):len(hard.Literals)], l))
			if err != nil {
				return nil, err
			}
			if part != nil {
				open = append(open, *part)
			}
		}
	}

	cubes := make([]Cube, len(open))
	for i, p := range open {
		cubes[i] = p.Cube
	}
	return cubes, err
}

// splitter splits one formula.
type splitter struct {
	ctx  context.Context
	f    *formula.Formula
	o    Options
	tree decomposition
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
	if sp.tree, err = s.follow(); err != nil {
		return nil, err
	}
	all := sp.measure(s, nil)
	s.o.Work += s.work
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
