package regions

// The value of belief propagation as the first estimate of a plan, with which a job answers if nothing better is there by its deadline.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/query"
)

// betheEstimate returns the estimate that is the value of belief propagation.
func betheEstimate() btn.Estimate {
	return estimate(betheLevel, btn.KindBethe, 0, 1)
}

// hastyBethePlan returns a plan that has only that value, for a large network whose time for planning is over. Its messages are passed
// where it is contracted, each once.
func hastyBethePlan(s query.Settings) *btn.Plan {
	e := betheEstimate()
	e.Parts[0].(*Regions).Updates = 1
	return &btn.Plan{Method: query.MethodRegions, Accuracy: s.Accuracy, Estimates: []btn.Estimate{e}}
}

// Unplanned assigns a plan that has only the value of belief propagation. It passes messages on the problem, where the parts of the plan
// find them, until enough ends, and every message at least once. It returns nil if there is no such value.
func Unplanned(ctx, enough context.Context, p *problem.Problem, s query.Settings) (*btn.Assignment, error) {
	var states []*bp.State
	ground, err := groundBy(ctx, p, func(e *sumproduct.Expression) ([]*bp.State, error) {
		var err error
		states, err = propagateOnce(ctx, enough, e, s)
		return states, err
	})
	if err != nil || ground.State == nil || states == nil {
		return nil, err
	}
	assignment := proposal.Approximate(hastyBethePlan(s), btn.CacheOff, ground.Expression)
	if assignment.Propagation = (&phaseSet{states: states}).report(); assignment.Propagation.LogZ == nil {
		return nil, nil
	}
	return assignment, nil
}

// soonShare is a share of the budget: if the first estimate takes less, it is certain to be there in time, and the Bethe value is not
// computed before it. betheShare is the share of the budget that the Bethe value may take otherwise.
// Chosen: 35 of 99 models have a first estimate within a factor of four of soonShare, and it says
// only whether the Bethe value comes first, decision 20.
const (
	soonShare  = 1.0 / 256
	betheShare = 1.0 / 16
)

// propagateOnce passes messages from one start until enough ends, for betheShare of the budget.
func propagateOnce(ctx, enough context.Context, e *sumproduct.Expression, s query.Settings) ([]*bp.State, error) {
	s.Budget *= betheShare / messageShare
	return bp.Propagate(ctx, e, bp.PropagateOptions{Seed: s.Seed, Updates: updatesFor(e, s), Starts: 1, Enough: enough})
}

// First inserts the value of belief propagation before the estimates of an assignment. If the first of them is cheap and the plan has
// bounds, it only calls Witness. The plan stays as it is if belief propagation has no value.
func First(ctx context.Context, j *proposal.Job, assignment *btn.Assignment) (*btn.Assignment, error) {
	hasBoundsIfAuto := !j.IsAuto() || hasBounds(assignment.Plan)
	if hasBoundsIfAuto && flopsBeforeValue(assignment.Plan) <= soonShare*j.Settings.Budget {
		return assignment, Witness(ctx, j, assignment)
	}

	e, err := expressionOf(ctx, j.Conditioned)
	if err != nil {
		return nil, err
	}
	if exact.Decided(e.Hypergraph()) {
		return assignment, nil
	}
	phases, err := propagateForShare(ctx, j, e)
	if err != nil {
		return nil, err
	}
	report := phases.report()
	if s := phases.states[0]; report.LogZ == nil || s.Contradiction >= 0 && !s.Signed {
		return assignment, nil
	}
	assignment.Propagation, assignment.Messages, assignment.Plan = report, phases.messages(), insertBethe(j, assignment.Plan)
	return assignment, nil
}

// propagateForShare runs belief propagation from one start and from near maxima, for a share of the time for planning.
func propagateForShare(ctx context.Context, j *proposal.Job, e *sumproduct.Expression) (*phaseSet, error) {
	enough, cancel := proposal.PlanningContext(ctx, messageShare)
	defer cancel()
	states, err := propagateOnce(ctx, enough, e, j.Settings)
	if err != nil {
		return nil, err
	}
	return findPhases(ctx, j, e, states)
}

// Witness notes in an assignment how belief propagation ends if it has several fixed points, since estimates that reach only one phase do
// not show that. It takes a share of the flops of the plan, or of leastUpdates if that is more.
func Witness(ctx context.Context, j *proposal.Job, assignment *btn.Assignment) error {
	e, err := expressionOf(ctx, j.Conditioned)
	if err != nil || exact.Decided(e.Hypergraph()) {
		return err
	}
	planned := 0.0
	for k := range assignment.Plan.Estimates {
		planned += assignment.Plan.Estimates[k].Cost.Flops
	}
	s := j.Settings
	s.Budget = min(s.WithDefaults().Budget, max(planned, leastUpdates*policy.UpdateFlops/orderedShare))
	phases, err := propagateForShare(ctx, j.WithSettings(s), e)
	if err == nil && len(phases.states) > 1 {
		assignment.Propagation = phases.report()
	}
	return err
}

// flopsBeforeValue returns the flops of a plan until there is a value, which bounds are not.
func flopsBeforeValue(p *btn.Plan) (flops float64) {
	for k := range p.Estimates {
		flops += p.Estimates[k].Cost.Flops
		if p.Estimates[k].Rule != btn.Bounding {
			break
		}
	}
	return flops
}

// hasBounds reports whether a plan has an estimate of bounds.
func hasBounds(p *btn.Plan) bool {
	return slices.ContainsFunc(p.Estimates, func(e btn.Estimate) bool { return e.Rule == btn.Bounding })
}

// insertBethe returns a plan with the value of belief propagation before the estimates of base.
func insertBethe(j *proposal.Job, base *btn.Plan) *btn.Plan {
	return j.DerivePlan("after bethe", base, func() *btn.Plan {
		plan := *base
		plan.Estimates = slices.Insert(slices.Clone(plan.Estimates), 0, betheEstimate())
		return &plan
	})
}
