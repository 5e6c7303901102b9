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
	return newEstimate(betheLevel, btn.KindBethe, 0, 1)
}

// hastyBethePlan returns a plan whose only estimate is the value of belief propagation, for a large network whose time for planning is
// over. Belief propagation runs where the plan is contracted, with one update of each message.
func hastyBethePlan(s query.Settings) *btn.Plan {
	e := betheEstimate()
	e.Parts[0].(*Regions).Updates = 1
	return &btn.Plan{Method: query.MethodRegions, Accuracy: s.Accuracy, Estimates: []btn.Estimate{e}}
}

// BethePlan returns a plan whose only estimate is the value of belief propagation. It runs belief propagation until the context enough
// ends, but computes every message at least once. It keeps the state in the problem, where the parts of the plan find it. It returns nil if
// belief propagation has no value.
func BethePlan(ctx, enough context.Context, p *problem.Problem, s query.Settings) (*btn.Assignment, error) {
	var states []*bp.State
	ground, err := makeGround(ctx, p, func(e *sumproduct.Expression) ([]*bp.State, error) {
		var err error
		states, err = propagateOnce(ctx, enough, e, s)
		return states, err
	})
	// There is no state if Z is 0. states is nil if the problem had a ground before, with messages of another run.
	if err != nil || ground.State == nil || states == nil {
		return nil, err
	}
	assignment := proposal.NewApproximateAssignment(hastyBethePlan(s), btn.CacheOff, ground.Expression)
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

// propagateOnce runs belief propagation from one start, for at most betheShare of the budget, until the context enough ends.
func propagateOnce(ctx, enough context.Context, e *sumproduct.Expression, s query.Settings) ([]*bp.State, error) {
	s.Budget *= betheShare / messageShare
	return bp.Propagate(ctx, e, bp.PropagateOptions{Seed: s.Seed, Updates: updatesFor(e, s), Starts: 1, Enough: enough})
}

// InsertBethe inserts the value of belief propagation before the estimates of an assignment, so that a job has a value early. If the first
// estimate with a value is cheap anyway, and for method auto the plan has bounds, it only calls ReportPhases. The plan stays as it is if
// belief propagation has no value. A phase is a state in which belief propagation ends.
func InsertBethe(ctx context.Context, j *proposal.Job, assignment *btn.Assignment) (*btn.Assignment, error) {
	isSoon := flopsBeforeValue(assignment.Plan) <= soonShare*j.Settings.Budget
	if isSoon && (!j.IsAuto() || hasBounds(assignment.Plan)) {
		return assignment, ReportPhases(ctx, j, assignment)
	}

	e, err := expressionOf(ctx, j.Conditioned)
	if err != nil {
		return nil, err
	}
	if exact.IsDecided(e.Hypergraph()) { // nothing is left to sum
		return assignment, nil
	}
	phases, err := propagateForShare(ctx, j, e)
	if err != nil {
		return nil, err
	}
	report, first := phases.report(), phases.states[0]
	isImpossible := first.Contradiction >= 0 && !first.Signed // messages exclude all values of an index: Z is 0 if no entry is below 0
	if report.LogZ == nil || isImpossible {
		return assignment, nil
	}
	assignment.Propagation, assignment.Messages, assignment.Plan = report, phases.messages(), insertBethe(j, assignment.Plan)
	return assignment, nil
}

// propagateForShare runs belief propagation from one start, and then from starts near maxima of the product of all tables (findPhases). If
// a share of the time for planning is over (enough), the first run ends with the messages that it has.
func propagateForShare(ctx context.Context, j *proposal.Job, e *sumproduct.Expression) (*phaseSet, error) {
	enough, cancel := proposal.PlanningContext(ctx, messageShare)
	defer cancel()
	states, err := propagateOnce(ctx, enough, e, j.Settings)
	if err != nil {
		return nil, err
	}
	return findPhases(ctx, j, e, states)
}

// ReportPhases runs belief propagation and, if it ends in several states, the phases, puts its report into the assignment: estimates that
// reach only one phase do not show the others. It takes a share of the flops of the plan, or leastUpdates updates of messages if that is
// more.
func ReportPhases(ctx context.Context, j *proposal.Job, assignment *btn.Assignment) error {
	e, err := expressionOf(ctx, j.Conditioned)
	if err != nil || exact.IsDecided(e.Hypergraph()) {
		return err
	}
	planFlops := 0.0
	for k := range assignment.Plan.Estimates {
		planFlops += assignment.Plan.Estimates[k].Cost.Flops
	}
	s := j.Settings
	// Belief propagation takes shares of the budget; orderedShare of this one is at least leastUpdates updates.
	s.Budget = min(s.WithDefaults().Budget, max(planFlops, leastUpdates*policy.UpdateFlops/orderedShare))
	phases, err := propagateForShare(ctx, j.WithSettings(s), e)
	if err == nil && len(phases.states) > 1 {
		assignment.Propagation = phases.report()
	}
	return err
}

// flopsBeforeValue returns the flops of the estimates of a plan up to the first one that has a value. Bounds have none.
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
