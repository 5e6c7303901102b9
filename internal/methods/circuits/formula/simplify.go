package formula

// Logical preprocessing: less to search through, and every link still observable and answerable.

import (
	"context"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Reduced is a formula G that stands for another one, F, over fewer variables. With weights λ of
// the atoms of F (1 for auxiliary variables)
//
//	Σ_x F(x) Π_v λ_v(x_v) = Π_{a ∈ Fixed} λ_a · Σ_y G(y) Π_u Π_{a ∈ Stands[u, y_u]} λ_a
//
// for every λ: an assignment y of G stands for just one of F's links, with the values Fixed and those that the atoms of y stand for. An
// atom of F that neither list has is never taken.
type Reduced struct {
	Formula *Formula
	Stands  [][]int32 // by atom of Formula: atoms of the original, in increasing order
	Fixed   []int32   // atoms of the original that every assignment has, in increasing order
	Work    int64     // steps that Simplify took
}

// DefaultWork is Simplify's default limit of propagation steps.
const DefaultWork = 64 << 20

// Shares of the remaining work for the parts of a round.
const (
	probeShare      = 6
	subsumeShare    = 8
	vivifyShare     = 6
	eliminateShare  = 8
	impliedShare    = 3
	strengthenShare = 2
	mostStrengthen  = 2 // rounds that ask about the formula as a whole
	mostRounds      = 6
)

// Simplify puts one variable in the place of literals of which exactly one holds (join), and takes these out of f, round after round
// until nothing changes:
//
//   - literals that unit propagation fixes, and those whose opposite it refutes, or that both values of a variable imply;
//   - variables that are equivalent to literals of others: cycles of implications, and consequences of both values of a variable;
//   - clauses that others subsume, and literals that resolution with one other clause takes away;
//   - literals that no assignment needs, and equivalences, that a search for assignments finds: see strengthen;
//   - literals that vivification finds to be superfluous, and last the clauses that unit propagation finds to follow from the others:
//     neither changes which assignments there are;
//   - auxiliary variables of two values that the links determine, by resolution, where that makes nothing longer.
//
// Pure literals stay: without them there would be other assignments. Where no assignment is left, Formula has an empty clause.
//
// Work bounds the steps of propagation (0: DefaultWork); all that was found by then is used. The same f gives the same result.
// Errors: over_budget for tables that would not fit query.DefaultMemory; the context's.
func Simplify(ctx context.Context, f *Formula, work int64) (*Reduced, error) {
	if work <= 0 {
		work = DefaultWork
	}
	r := &Reduced{Formula: f}
	for a := range f.Atoms() {
		r.Stands = append(r.Stands, []int32{int32(a)})
	}
	p, given := pace.New(ctx), work
	r, err := rebuild(ctx, r, nothing(f)) // the clauses in their normal form
	if err == nil {
		r, err = join(ctx, r)
	}
	asked := 0
	for round := 0; err == nil && round < mostRounds; round++ {
		s := &simplifier{f: r.Formula, p: newPropagator(r.Formula), pace: p, left: work, drop: make([]bool, len(r.Formula.Domains))}
		s.asked = &asked
		changed := s.round(round == mostRounds-1)
		work -= s.p.Work
		if err = p.Err(); err != nil {
			break
		}
		if s.p.False {
			return r.zero(given - work), nil
		}
		if r, err = rebuild(ctx, r, s.changes()); !changed || work <= 0 {
			break
		}
	}
	if err != nil {
		return nil, err
	}
	return thinned(ctx, r, p, work, given)
}

// thinned leaves out the clauses that follow from the others, within the remainder of the given
// work. It comes last: they help to find everything else.
func thinned(ctx context.Context, r *Reduced, p *pace.Pace, work, given int64) (*Reduced, error) {
	s := &simplifier{f: r.Formula, p: newPropagator(r.Formula), pace: p, left: work, drop: make([]bool, len(r.Formula.Domains))}
	s.implied()
	work -= s.p.Work
	if err := p.Err(); err != nil {
		return nil, err
	}
	if s.p.False {
		return r.zero(given - work), nil
	}
	out, err := rebuild(ctx, r, s.changes())
	if err == nil {
		out.Work = given - work
	}
	return out, err
}

// zero returns the result of a formula without assignments.
func (r *Reduced) zero(work int64) *Reduced {
	empty := Formula{Domains: []int{}, Functional: []bool{}, Clauses: [][]Literal{{}}, Scale: r.Formula.Scale}
	f, err := New(empty)
	if err != nil {
		panic(err) // it has nothing that could be wrong
	}
	return &Reduced{Formula: f, Stands: [][]int32{}, Work: work}
}

// simplifier is a formula in work.
type simplifier struct {
	f     *Formula
	p     *propagator
	pace  *pace.Pace
	left  int64     // work at the beginning of the round
	same  []replica // by variable: the other variable that determines it
	drop  []bool    // by variable: eliminated
	pair  [][2]Literal
	asked *int // rounds so far that asked about the formula as a whole
}

// replica says that a variable y is a function of another, x: value a of x makes it value of[a].
type replica struct {
	x  int
	of []int32 // nil: it is no replica
}

// budget returns the work counter's limit for a part of a round.
func (s *simplifier) budget(share int64) int64 { return s.p.Work + max(0, s.left-s.p.Work)/share }

// over reports whether the context or the budget has ended; from is the work before.
func (s *simplifier) over(until int64, from *int64) bool {
	done := s.p.Work - *from
	*from = s.p.Work
	return s.pace.Over(1+done) || s.p.Work >= until || s.p.False
}

// round runs all parts, and reports whether one found anything.
func (s *simplifier) round(last bool) bool {
	if s.p.False {
		return false
	}
	found := s.probe()
	found = s.subsume() || found
	found = s.vivify() || found
	if found = s.equivalences() || found; found {
		return true // equivalent literals are replaced first
	}
	if *s.asked < mostStrengthen {
		*s.asked++
		if s.strengthen() {
			return true
		}
	}
	return s.eliminate() && !last
}

// result is a formula's parts after a round.
type result struct {
	clauses [][]Literal
	truth   []int8
	same    []replica
	drop    []bool
}

func (s *simplifier) changes() result {
	out := result{same: s.same, drop: s.drop}
	for a := range s.f.Atoms() {
		out.truth = append(out.truth, s.p.value(Literal(2*a)))
	}
	for n, c := range s.p.clauses {
		if !s.p.gone[n] {
			out.clauses = append(out.clauses, c)
		}
	}
	return out
}

// nothing is a round that has found nothing.
func nothing(f *Formula) result {
	return result{clauses: f.Clauses, truth: make([]int8, f.Atoms()), drop: make([]bool, len(f.Domains))}
}

// overBudget is the error of tables that have become too large.
func overBudget() error {
	return fault.New(fault.OverBudget, "formula: simplified tables take more than %d bytes", query.DefaultMemory)
}
