package compiler

// Splitting a sum: cubes are partial assignments that partition the full ones: each extends
// exactly one cube.

import (
	"cmp"
	"context"
	"slices"
	"sort"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/logic/formula"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Cube is a partial assignment: literals that hold together. Z of a formula is the sum of Z of formula.Condition(f, cube) over the cubes
// of a split (Lemma 5 of the paper: a sum over the values of cut links).
type Cube struct {
	Literals []formula.Literal
	// Steps is the estimated work of its search without a circuit; the measured work, where the
	// trial search ended.
	Steps float64
}

// Split is a sum in cubes.
type Split struct {
	Cubes []Cube
	// Order is the elimination order of the residual formula at the root whose tree guided the
	// split, for Options.Order of the cubes.
	Order []int
	// Again is the ratio of the cubes' work to the whole's, estimated by all assignments of the
	// bags under the cubes alone: parts that do not meet the split variables are repeated in every
	// cube.
	Again float64
	// Tried is the number of steps that the split itself spent in searches that were
	// ended early.
	Tried int64
}

// SplitOptions bound the number and the size of a split's cubes.
type SplitOptions struct {
	Most    int     // cubes
	Largest float64 // the part of the estimated work of all cubes down to which the hardest is split; 0: there are as many cubes as may be
	Again   float64 // Split.Again at most
}

// Cubes splits a formula into cubes of similar work, the hardest first: the one with most work is split in two, over and over, on
// the variable that the largest bags of a tree decomposition have, so that its value makes as much as possible of them smaller. It ends
// where no cube is harder than Largest says, and before Split.Again would be above Again.
// Cubes that are seen to have no assignment are left out; none are left where the sum is 0.
//
// The work of a cube is estimated by searching it for a while, in counted steps: those taken, divided by the part of the tree of decisions
// that is done, where the two values of a decision count as alike (D. E. Knuth, Estimating the efficiency of backtrack
// programs, Mathematics of Computation 29 (1975), with one walk that is as long as may be). The first branches fill the cache
// that the others use, so estimates are too large, by 2 as a rule, and alike for all. These searches take
// policy.CubesTryShare of the estimated work of all, or Options.Work each where that is less, or policy.CubesTryLeast where that is more.
//
// A formula that is summed within Options.Work, or policy.CubesTried steps, is not split. Errors
// are Compile's, except for an exhausted work budget.
func Cubes(ctx context.Context, f *formula.Formula, o Options, into SplitOptions) (Split, error) {
	if o.Memory == 0 {
		o.Memory = defaultMemory
	}
	if o.Work == 0 || o.Work > policy.CubesTried {
		o.Work = policy.CubesTried
	}
	if err := checkMemory(f, o.Memory); err != nil {
		return Split{}, err
	}
	o.Builder = nil
	sp := &splitter{ctx: ctx, f: f, o: o, into: into}
	open, err := sp.whole()
	for err == nil && len(open) > 0 && len(open) < into.Most {
		at, total := hardest(open)
		if open[at].split < 0 || open[at].Steps <= into.Largest*total {
			break
		}
		var parts []piece
		if parts, err = sp.halves(open[at], sp.allowance(len(open), total)); err == nil {
			next := append(slices.Delete(slices.Clone(open), at, at+1), parts...)
			if sp.again(next) > into.Again {
				break
			}
			open = next
		}
	}
	if err != nil {
		return Split{}, err
	}

	out := Split{Cubes: make([]Cube, len(open)), Order: sp.order, Again: sp.again(open), Tried: sp.tried}
	slices.SortStableFunc(open, func(a, b piece) int { return cmp.Compare(b.Steps, a.Steps) })
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
	into  SplitOptions
	tree  decomposition
	order []int
	dims  []int // at the root
	tried int64 // steps of searches that were ended early
}

// allowance is the work limit of each of two more searches at this number of pieces: an even share
// of the limit of all searches that may follow.
func (sp *splitter) allowance(pieces int, total float64) int64 {
	left := total*policy.CubesTryShare - float64(sp.tried)
	each := int64(min(left/float64(2*(sp.into.Most-pieces)), policy.CubeTried))
	return min(max(each, policy.CubesTryLeast), sp.o.Work)
}

// halves returns the two pieces of a split piece.
func (sp *splitter) halves(of piece, work int64) ([]piece, error) {
	var parts []piece
	for _, l := range []formula.Literal{of.split, of.split.Not()} {
		part, err := sp.part(of, l, work)
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

// unpropagated counts the bags' assignments under the literals alone.
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
	return sp.tree.cells(dims)
}

// piece is a cube, and the literal that splits it; −1 where nothing does, or need.
type piece struct {
	Cube
	split formula.Literal
	order []int // that its search follows
}

// hardest is the place of the piece with most work, and the work of all.
func hardest(pieces []piece) (at int, total float64) {
	for i, p := range pieces {
		total += p.Steps
		if p.Steps > pieces[at].Steps {
			at = i
		}
	}
	return at, total
}

// whole searches the formula for a while, and returns it as one piece; none where it has no assignment.
func (sp *splitter) whole() ([]piece, error) {
	s, err := sp.root(nil)
	if err != nil || s == nil {
		return nil, err
	}
	s.o.Work = policy.CubesOrderWork
	if sp.tree, sp.order, err = s.follow(); err != nil {
		return nil, err
	}
	sp.dims = s.dimensions()
	all, err := sp.try(s, nil, sp.o.Work)
	if all == nil {
		return nil, err
	}
	all.order = sp.order
	return []piece{*all}, err
}

// part searches a part of a piece for so many steps; nil where it has no assignment. It follows the
// tree of the whole piece or of its own order, whichever is narrower, and is no harder than the
// whole.
func (sp *splitter) part(of piece, l formula.Literal, work int64) (*piece, error) {
	literals := append(of.Literals[:len(of.Literals):len(of.Literals)], l)
	s, err := sp.root(literals)
	if err != nil || s == nil {
		return nil, err
	}
	h := s.hypergraph()
	order, err := contractionorder.MinFill(sp.ctx, h)
	if err != nil {
		return nil, err
	}
	known := completed(h, of.order)
	d, e := decompose(h, order), decompose(h, known)
	if e.cells(h.Dims) <= d.cells(h.Dims) {
		d, order = e, known
	}
	s.guided(d, order)
	out, err := sp.try(s, literals, work)
	if out != nil {
		out.order, out.Steps = order, min(out.Steps, of.Steps)
	}
	return out, err
}

func (sp *splitter) root(literals []formula.Literal) (*search, error) {
	p, err := encode(formula.Condition(sp.f, literals), sp.o.Weights, true)
	if err != nil {
		return nil, err
	}
	return root(sp.ctx, p, sp.o)
}

// mostSteps stands for an estimate beyond any limit.
const mostSteps = 1e300

// try searches a cube that is at its root for so many steps; nil where it has no assignment. One that ends is not split.
func (sp *splitter) try(s *search, literals []formula.Literal, work int64) (*piece, error) {
	out := &piece{Cube: Cube{Literals: literals}, split: sp.splits(s)}
	before := s.Work
	s.o.Work = before + work
	z, err := s.run()
	taken := s.Work - before
	sp.tried += taken
	out.Steps = float64(taken)
	switch {
	case fault.CodeOf(err) == fault.OverBudget && s.progress > 0:
		out.Steps = min(out.Steps/s.progress, mostSteps)
	case fault.CodeOf(err) == fault.OverBudget:
		out.Steps = mostSteps
	case err != nil || z.number.Mant == 0:
		return nil, err
	default:
		out.split = -1
	}
	return out, nil
}

// splits finds the variable with the heaviest bags, by their open assignments; of its values the first open one is the literal that
// splits, −1 where there is none.
func (sp *splitter) splits(s *search) formula.Literal {
	dims := s.dimensions()
	weight := make([]float64, len(dims))
	for _, bag := range sp.tree.bags {
		cells := 1.0
		for _, v := range bag {
			cells = min(cells*float64(dims[v]), 1e300)
		}
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
		return -1
	}
	for a := range s.p.f.Domains[best] {
		if s.Value[s.p.is(int32(best), a)] == 0 {
			return s.p.f.Literal(best, a)
		}
	}
	return -1
}
