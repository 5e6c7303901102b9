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
//	Σ_x F(x) Π_v λ_v(x_v) = Π_{a ∈ FixedAtoms} λ_a · Σ_y G(y) Π_u Π_{a ∈ StandsFor[u, y_u]} λ_a
//
// for every λ. So an assignment y of G stands for exactly one assignment of F's links: it has the values FixedAtoms, and those that the
// atoms of y stand for. An atom of F that is in neither list is never taken.
type Reduced struct {
	Formula    *Formula
	StandsFor  [][]int32 // by atom of Formula: atoms of the original, in increasing order
	FixedAtoms []int32   // atoms of the original that every assignment has, in increasing order
	Work       int64     // steps that Simplify took
}

// DefaultWork is Simplify's default limit of propagation steps.
const DefaultWork = 64 << 20

// The parts of a round may take 1/share of the remaining work each.
const (
	probeShare      = 6
	subsumeShare    = 8
	vivifyShare     = 6
	eliminateShare  = 8
	impliedShare    = 3
	strengthenShare = 2
	mostStrengthen  = 2 // the largest number of rounds that ask about the formula as a whole
	mostRounds      = 6
)

// Simplify returns a formula that f reduces to. It puts one variable in the place of literals of which exactly one holds (join). Then it
// removes, round after round until nothing changes:
//
//   - literals that unit propagation fixes, and those whose opposite it refutes, or that both values of a variable imply;
//   - variables that are functions of another variable, since literals of both are equivalent: cycles of implications show that, and
//     consequences of both values of a variable;
//   - clauses that others subsume (they contain another one), and literals that resolution with one other clause takes away;
//   - literals that no assignment needs, and equivalences, that a search for assignments finds: see strengthen;
//   - literals that are superfluous since propagation of the clause's other literals shows that (vivification), and last the clauses that
//     unit propagation finds to follow from the others: neither changes which assignments there are;
//   - auxiliary variables of two values that the network's variables determine, by resolution, if that makes nothing longer.
//
// Pure literals, whose opposites are in no clause, are not made true: there would be fewer assignments. If no assignment is left, Formula
// has an empty clause.
//
// work bounds the steps of propagation (0: DefaultWork); all that was found by then is used. The same f gives the same result.
// Errors: over_budget for tables that would not fit query.DefaultMemory; the context's.
func Simplify(ctx context.Context, f *Formula, work int64) (*Reduced, error) {
	if work <= 0 {
		work = DefaultWork
	}
	r := &Reduced{Formula: f}
	for a := range f.Atoms() {
		r.StandsFor = append(r.StandsFor, []int32{int32(a)})
	}

	// Clauses in their normal form, and joined variables.
	p, workLimit := pace.New(ctx), work
	r, err := rebuild(ctx, r, unchanged(f))
	if err == nil {
		r, err = join(ctx, r)
	}

	strengthened := 0 // rounds that asked about the formula as a whole (strengthen); their number is limited
	for round := 0; err == nil && round < mostRounds; round++ {
		s := newSimplifier(r.Formula, p, work)
		s.strengthened = &strengthened
		mayFindMore := s.runRound()
		work -= s.prop.Work // of this round, since each has a propagator of its own
		if err = p.Err(); err != nil {
			break
		}
		if s.prop.IsContradictory {
			return r.unsatisfiable(workLimit - work), nil
		}
		if r, err = rebuild(ctx, r, s.result()); !mayFindMore || work <= 0 {
			break // an error is looked at behind the loop
		}
	}
	if err != nil {
		return nil, err
	}
	return dropImplied(ctx, r, p, work, workLimit)
}

// newSimplifier returns a simplifier for a round that may take the given work. It has found nothing yet.
func newSimplifier(f *Formula, p *pace.Pace, work int64) *simplifier {
	return &simplifier{f: f, prop: newPropagator(f), pace: p, workLimit: work, eliminated: make([]bool, len(f.Domains))}
}

// dropImplied returns r without the clauses that follow from the remaining ones, and sets its Work. It comes last, since these clauses help
// to find everything else. work is what remains of workLimit.
func dropImplied(ctx context.Context, r *Reduced, p *pace.Pace, work, workLimit int64) (*Reduced, error) {
	s := newSimplifier(r.Formula, p, work)
	s.removeImplied()
	work -= s.prop.Work
	if err := p.Err(); err != nil {
		return nil, err
	}
	if s.prop.IsContradictory {
		return r.unsatisfiable(workLimit - work), nil
	}
	rebuilt, err := rebuild(ctx, r, s.result())
	if err == nil {
		rebuilt.Work = workLimit - work
	}
	return rebuilt, err
}

// unsatisfiable returns the formula without assignments that r becomes: one empty clause, no variables, and the work done so far.
func (r *Reduced) unsatisfiable(work int64) *Reduced {
	empty := Formula{Domains: []int{}, Functional: []bool{}, Clauses: [][]Literal{{}}, Scale: r.Formula.Scale}
	f, err := New(empty)
	if err != nil {
		panic(err) // it has nothing that could be wrong
	}
	return &Reduced{Formula: f, StandsFor: [][]int32{}, Work: work}
}

// simplifier is a formula in a round of simplification, with what the round has found so far.
type simplifier struct {
	f            *Formula
	prop         *propagator
	pace         *pace.Pace
	workLimit    int64        // of the round
	replicas     []replica    // by variable: the other variable that determines it
	eliminated   []bool       // by variable: it was summed out
	equivalent   [][2]Literal // pairs of literals that probing has found to be equivalent
	strengthened *int         // the number of rounds so far that asked about the formula as a whole (strengthen)
}

// replica states that a variable is a function of another one, x: if x has the value a, it has the value of[a].
type replica struct {
	x       int
	valueOf []int32 // by value of x; nil: the variable is no replica
}

// workEndFor returns the value of the work counter at which a part of a round is to end that may take 1/share of the round's remaining
// work.
func (s *simplifier) workEndFor(share int64) int64 {
	return s.prop.Work + max(0, s.workLimit-s.prop.Work)/share
}

// isOver reports whether a part of a round is to end: the context has ended, the work counter has reached workEnd, or a contradiction was
// found. *workBefore is the counter at the last call; it is updated.
func (s *simplifier) isOver(workEnd int64, workBefore *int64) bool {
	workSince := s.prop.Work - *workBefore
	*workBefore = s.prop.Work
	return s.pace.Over(1+workSince) || s.prop.Work >= workEnd || s.prop.IsContradictory
}

// runRound runs the parts of a round, and reports whether a further round may find more. The costly parts run only if the cheap ones have
// found nothing. If they have, the round ends, so that the formula is rebuilt with what they have found before anything else is looked for.
func (s *simplifier) runRound() bool {
	if s.prop.IsContradictory {
		return false
	}

	// Cheap parts.
	hasFound := s.probe()
	hasFound = s.subsume() || hasFound
	hasFound = s.vivify() || hasFound
	if hasFound = s.findReplicas() || hasFound; hasFound {
		return true
	}

	// Costly parts. All rounds together ask for assignments of the formula (strengthen) at most mostStrengthen times.
	if *s.strengthened < mostStrengthen {
		*s.strengthened++
		if s.strengthen() {
			return true
		}
	}
	return s.eliminate()
}

// result is what a round of simplification has found about the variables of a formula, and the clauses that it has left.
type result struct {
	clauses    [][]Literal
	truth      []int8    // by atom: 1 if the value is taken in every assignment, −1 if in none, 0 if that is open
	replicas   []replica // by variable: the other variable that determines it; nil if there is none
	eliminated []bool    // by variable: it was summed out
}

// result returns the findings of the round: for each atom whether it is true (1), false (−1) or open (0), the variables that are functions
// of others or summed out, and the remaining clauses. An atom states that a variable has a value; literal 2·a states atom a.
func (s *simplifier) result() result {
	r := result{replicas: s.replicas, eliminated: s.eliminated}
	for a := range s.f.Atoms() {
		r.truth = append(r.truth, s.prop.value(Literal(2*a))) // the literal that the value is taken
	}
	for n, c := range s.prop.clauses {
		if !s.prop.removed[n] {
			r.clauses = append(r.clauses, c)
		}
	}
	return r
}

// unchanged returns the result of a round that has found nothing.
func unchanged(f *Formula) result {
	return result{clauses: f.Clauses, truth: make([]int8, f.Atoms()), eliminated: make([]bool, len(f.Domains))}
}

// overBudget returns the error of tables that have become too large.
func overBudget() error {
	return fault.New(fault.OverBudget, "formula: simplified tables take more than %d bytes", query.DefaultMemory)
}
