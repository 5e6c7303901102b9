package regions

// The ground of regions: the expression of the network, and the state of belief propagation on it.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/methods/regions/region"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Ground has what regions are computed from. It does not change once it is made.
type Ground struct {
	Expression *sumproduct.Expression
	State      *bp.State // of belief propagation; nil if Z is 0
	LnBethe    float64   // ln of its Bethe value, nats
	// Phases are the fixed points of belief propagation whose Bethe values add up. State is the first. It is nil if there is only one.
	Phases []*bp.State

	problem  *problem.Problem
	prepared *region.Prepared // without a family; nil before the first family
}

// slot is the key under which a problem keeps its ground.
type slot struct{}

// ProblemGround returns the ground of a problem: its expression and the state of belief propagation on it. The first call makes it, which
// takes longer on a large network than the regions do. updates limits the updates of messages; 0 stands for the limit of package bp.
func ProblemGround(ctx context.Context, p *problem.Problem, updates int64) (*Ground, error) {
	return makeGround(ctx, p, func(e *sumproduct.Expression) ([]*bp.State, error) { return propagate(ctx, p, e, updates) })
}

// makeGround returns the ground of a problem. If the problem has none yet, runPropagation returns the states of belief propagation for it.
// The error is unsupported if messages of both signs cancel. A ground is the expression of the network with the states of belief
// propagation. Its State is nil if Z is 0.
func makeGround(
	ctx context.Context, p *problem.Problem, runPropagation func(*sumproduct.Expression) ([]*bp.State, error),
) (*Ground, error) {
	// The problem keeps the ground in the slot for later calls; nil: there are no variants of it.
	return problem.Form(ctx, p, slot{}, nil, func() (g *Ground, err error) {
		g = &Ground{problem: p}
		if g.Expression, err = expressionOf(ctx, p.Net); err != nil {
			return nil, err
		}
		if g.Expression.Scale.IsZero() {
			return g, nil
		}
		states, err := runPropagation(g.Expression)
		if err != nil {
			return nil, err
		}
		state := states[0]
		isImpossible := state.Contradiction >= 0 && !state.Signed // messages contradict each other: Z is 0
		if !isImpossible {
			g.State = state
			g.LnBethe, _ = state.Z() // ln |Z|, without its sign
			if math.IsInf(g.LnBethe, 0) {
				return nil, fault.New(fault.Unsupported, "regions: messages of both signs cancel, and belief propagation has no value")
			}
		}
		if len(states) > 1 {
			g.Phases = states
		}
		return g, nil
	})
}

// expressionOf returns the network as an expression for belief propagation. Messages of entries below 0 would cancel. So if the expression
// has such entries, it writes the network in another form, with chains of states (lower.BuildUnsigned). It returns the new form if that has
// no entries below 0 and fits float64. Otherwise it returns the first form. Errors and cost: those of lower.BuildUnsigned.
func expressionOf(ctx context.Context, net *btn.Network) (*sumproduct.Expression, error) {
	star, err := lower.Build(ctx, net)
	if err != nil || !star.Signed() {
		return star, err
	}
	chains, err := lower.BuildUnsigned(ctx, net, star)
	if err != nil || chains.Unfit != "" || chains.Signed() {
		return star, err
	}
	return chains, nil
}

// propagate returns the states of belief propagation that planning ended with, from the messages of the problem. If there are none, or they
// are for another expression, it runs belief propagation and returns its first state.
func propagate(ctx context.Context, p *problem.Problem, e *sumproduct.Expression, updates int64) ([]*bp.State, error) {
	if p.Messages != nil {
		if states, err := restore(e, p.Messages); err == nil || fault.CodeOf(err) != fault.BadInput { // bad input: of another expression
			return states, err
		}
	}

	states, err := bp.Propagate(ctx, e, bp.PropagateOptions{Updates: updates})
	if err != nil {
		return nil, err
	}
	return states[:1], nil
}

// restore returns the states of belief propagation that have the given messages: those of one phase, or of several, one after the other.
// The error is bad_input if there are several phases and one is no fixed point, since the messages are for another expression then. A phase
// is a state in which belief propagation ends.
func restore(e *sumproduct.Expression, messages []float64) (states []*bp.State, err error) {
	phaseSize := bp.MessageEntries(e)                   // number of message entries of one phase
	if phaseSize == 0 || len(messages)%phaseSize != 0 { // no whole phases: bp.Restore gets all messages and decides
		phaseSize = len(messages)
	}
	for first := 0; first == 0 || first < len(messages); first += phaseSize { // at least one phase, even without messages
		s, err := bp.Restore(e, messages[first:first+phaseSize])
		if err != nil {
			return nil, err
		}
		states = append(states, s)
	}
	for _, s := range states[1:] {
		if !(s.Change <= largestPhaseChange) {
			return nil, fault.New(fault.BadInput, "regions: messages of a phase that still change by %v", s.Change)
		}
	}
	return states, nil
}

// largestPhaseChange is the largest change of the messages of a phase for which it counts as a fixed point: converged messages change by
// rounding.
const largestPhaseChange = 1e-9

// lnOtherPhases returns ln Σ_k Z_k/Z_1 over the Bethe values Z_k of all phases, in nats. That is what the phases beside the first add to
// ln Z. Regions correct the first phase only. The result is 0 if there is one phase, or if the only region of the family f is the whole
// network, which has all phases. f is nil if there are no regions.
func (g *Ground) lnOtherPhases(f *region.Family) float64 {
	if g.Phases == nil || f != nil && f.Regions == 1 {
		return 0
	}
	sum := 0.0
	for _, s := range g.Phases {
		sum += math.Exp(s.LnZ() - g.LnBethe)
	}
	return math.Log(sum)
}

// mixPhases replaces the marginals of the first phase by a mixture with the beliefs of all other phases, weighted by their Bethe values.
// lnPhases is ln of the sum of these weights over that of the first (lnOtherPhases). A phase is a state in which belief propagation ends,
// and its Bethe value is exp of its ln Z.
func (g *Ground) mixPhases(marginals [][]float64, lnPhases float64) {
	for i, row := range marginals {
		for k, s := range g.Phases {
			weight := math.Exp(s.LnZ() - g.LnBethe - lnPhases)
			belief := s.Belief(i)
			for x := range row {
				if k == 0 {
					row[x] *= weight
				} else {
					row[x] += weight * belief[x]
				}
			}
		}
	}
}

// familySlot is the key under which a problem keeps the regions that were planned last, with their options.
type familySlot struct{}

// Family returns the regions with the given options, planned for the expression of the ground. It returns the same ones as the last call if
// the options are the same, since an estimate has many parts. Errors: those of region.Plan.
func (g *Ground) Family(ctx context.Context, o region.Options) (*region.Family, error) {
	return problem.Form(ctx, g.problem, familySlot{}, o, func() (*region.Family, error) {
		return region.Plan(ctx, g.Expression.Hypergraph(), o)
	})
}

// Prepare returns the regions of a family, ready to be contracted on this ground: the network of a problem with the messages of belief
// propagation. The tables in the gauge of the messages, scaled so that the value of belief propagation is 1, do not depend on the family.
// The first call computes these tables. It then puts a copy of the ground that has the tables into the problem, for later calls.
func (g *Ground) Prepare(ctx context.Context, f *region.Family) (*region.Prepared, error) {
	if g.prepared != nil {
		return g.prepared.WithFamily(f), nil
	}
	prepared, err := region.Prepare(ctx, g.Expression, g.State, f)
	if err != nil {
		return nil, err
	}

	preparedGround := *g
	preparedGround.prepared = prepared.WithFamily(nil)       // only the tables: later calls have families of their own
	problem.SetForm(g.problem, slot{}, nil, &preparedGround) // the problem keeps one ground; nil: there are no variants of it
	return prepared, nil
}
