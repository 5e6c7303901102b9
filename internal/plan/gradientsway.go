package plan

// Derivatives by the numbers of a model: an elimination of their own, exactly.

import (
	"context"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/families/gradients"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// signedDerivatives is what exactness means for derivatives whose terms have both signs: they may cancel further than Z does.
const signedDerivatives = "terms of the derivatives have both signs: each is right to 1e-11 of the sum of their absolute values, " +
	"which may be more than it is itself"

// gradients assigns an elimination with a pass back to every number of the network, or by method circuit a circuit whose leaves
// they are. There is no other way to them: methods that are not exact are unsupported, and method auto does not fall back to them.
func (a *assigner) gradients(q query.Query) (btn.Assignment, error) {
	switch a.settings.Method {
	case btn.MethodExact, btn.MethodAuto, btn.MethodCircuit:
	case btn.MethodSymmetryCP, btn.MethodTruncated, btn.MethodRegions, btn.MethodSampled:
		return btn.Assignment{}, fault.New(fault.Unsupported,
			"plan: gradients are computed exactly only, not by method %s", a.settings.Method)
	default:
		return btn.Assignment{}, fault.New(fault.BadInput, "plan: unknown method %q", a.settings.Method)
	}
	if len(q.Joint) > 0 {
		return btn.Assignment{}, fault.New(fault.Unsupported,
			"plan: gradients and a joint marginal are two queries of a job")
	}

	assignment, err := a.differentiated(q)
	if err != nil {
		return btn.Assignment{}, err
	}
	if q.Sensitivity != nil {
		assignment.Sensitivity = &btn.Sensitivity{Target: *q.Sensitivity, Alone: !q.Gradients, Cores: lower.Numbers(a.net)}
	}
	return assignment, nil
}

// differentiated assigns what Z and its derivatives are computed by.
func (a *assigner) differentiated(q query.Query) (btn.Assignment, error) {
	if a.settings.Method == btn.MethodCircuit {
		return a.parametricCircuit()
	}
	p, err := gradients.Of(a.ctx, a.current())
	if err != nil {
		return btn.Assignment{}, err
	}
	settings := fmt.Sprintf("gradients marginals=%t", q.Marginals)
	plan, hit, err := a.remember(settings, p.Hypergraph(), func(ctx context.Context) (*btn.Plan, error) {
		return a.gradientsPlan(ctx, p, q.Marginals)
	})
	if err != nil {
		return btn.Assignment{}, err
	}
	cost := plan.Estimates[0].Cost
	assignment := btn.Assignment{Plan: plan, Cache: hit, LnLinks: math.Inf(-1), Cost: &cost}
	if p.Signed() {
		assignment.Warnings = []string{signedDerivatives}
	}
	return assignment, nil
}

// gradientsPlan cuts the slices of a plan into parts.
func (a *assigner) gradientsPlan(ctx context.Context, p *gradients.Prepared, marginals bool) (*btn.Plan, error) {
	of, cost, err := p.Plan(ctx, gradients.PlanOptions{
		Memory:    a.settings.Memory,
		Flops:     exactLimit(a.settings),
		Marginals: marginals,
	})
	if err != nil {
		return nil, err
	}
	chunks := gradients.Chunks(of, policy.SliceTaskFlops)
	parts := make([]btn.Part, chunks)
	for k := range chunks {
		parts[k] = &gradients.Adjoints{Plan: of, From: bound(of.Count, chunks, k), To: bound(of.Count, chunks, k+1)}
	}
	return exactOf(cost, parts...), nil
}
