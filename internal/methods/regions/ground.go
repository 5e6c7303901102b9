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

// Ground is what regions are computed from. It does not change once it is made.
type Ground struct {
	Expression *sumproduct.Expression
	State      *bp.State // nil: Z is 0
	LnBethe    float64   // nats
	// Phases are the fixed points of belief propagation whose Bethe values add up, State the first; nil for one.
	Phases []*bp.State

	problem  *problem.Problem
	prepared *region.Prepared // without a family; nil before the first family
}

// slot is the slot of a problem for its ground.
type slot struct{}

// GroundOf returns the ground of a problem, which the first call makes. On a large network that takes longer than the regions do. updates
// bounds the updates of belief propagation; 0: package bp does.
func GroundOf(ctx context.Context, p *problem.Problem, updates int64) (*Ground, error) {
	return groundBy(ctx, p, func(e *sumproduct.Expression) ([]*bp.State, error) { return propagate(ctx, p, e, updates) })
}

// groundBy is GroundOf with the states of belief propagation that pass returns. Error: unsupported if messages of both signs cancel.
func groundBy(ctx context.Context, p *problem.Problem, pass func(*sumproduct.Expression) ([]*bp.State, error)) (*Ground, error) {
	return problem.Form(ctx, p, slot{}, nil, func() (g *Ground, err error) {
		g = &Ground{problem: p}
		if g.Expression, err = expressionOf(ctx, p.Net); err != nil {
			return nil, err
		}
		if g.Expression.Scale.IsZero() {
			return g, nil
		}
		states, err := pass(g.Expression)
		if err != nil {
			return nil, err
		}
		if state := states[0]; state.Contradiction < 0 || state.Signed {
			g.State = state
			g.LnBethe, _ = state.Z()
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

// expressionOf returns the network as an expression for belief propagation. If it has numbers below 0 and chains of states have none, it
// is written with chains, since messages of both signs cancel. Errors and cost: those of lower.BuildUnsigned.
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

// propagate returns the states that planning ended with. If there are none, it runs belief propagation.
func propagate(ctx context.Context, p *problem.Problem, e *sumproduct.Expression, updates int64) ([]*bp.State, error) {
	if p.Messages != nil {
		if states, err := restore(e, p.Messages); err == nil || fault.CodeOf(err) != fault.BadInput {
			return states, err
		}
	}

	states, err := bp.Propagate(ctx, e, bp.PropagateOptions{Updates: updates})
	if err != nil {
		return nil, err
	}
	return states[:1], nil
}

// restore returns the states of messages, which may be those of several phases one after the other. If there are several phases and one
// is no fixed point, the messages are those of another expression, and the error is bad_input.
func restore(e *sumproduct.Expression, messages []float64) (states []*bp.State, err error) {
	each := bp.Entries(e)
	if each == 0 || len(messages)%each != 0 {
		each = len(messages)
	}
	for at := 0; at == 0 || at < len(messages); at += each {
		s, err := bp.Restore(e, messages[at:at+each])
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

// lnOtherPhases returns ln Σ_k Z_k/Z_1 over the Bethe values of all phases, in nats, which the regions of a family do not correct. It is
// 0 if there is one phase, or if the only region of the family is the network. f is nil for belief propagation without regions.
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

// mix mixes the beliefs of all other phases into the marginals of the first, weighted by their Bethe values. lnPhases is the value of
// lnOtherPhases.
func (g *Ground) mix(marginals [][]float64, lnPhases float64) {
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

// familySlot is the slot of a problem for the regions that were planned last. Their options are the variant.
type familySlot struct{}

// Family returns regions planned on this ground. It returns the last ones if the options are the same, since an estimate has many parts.
// Errors: those of region.Plan.
func (g *Ground) Family(ctx context.Context, o region.Options) (*region.Family, error) {
	return problem.Form(ctx, g.problem, familySlot{}, o, func() (*region.Family, error) {
		return region.Plan(ctx, g.Expression.Hypergraph(), o)
	})
}

// For returns the regions of a family, ready to be contracted on this ground.
func (g *Ground) For(ctx context.Context, f *region.Family) (*region.Prepared, error) {
	if g.prepared != nil {
		return g.prepared.With(f), nil
	}
	prepared, err := region.Prepare(ctx, g.Expression, g.State, f)
	if err != nil {
		return nil, err
	}

	with := *g
	with.prepared = prepared.With(nil)
	problem.Keep(g.problem, slot{}, nil, &with)
	return prepared, nil
}
