package regions

// The value of belief propagation before everything else: what a job with a deadline answers with if nothing
// better is there in time.

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

// betheEstimate is the value of belief propagation.
func betheEstimate() btn.Estimate {
	return estimate(betheLevel, btn.KindBethe, 0, 1)
}

// betheUnseen is a plan of that value alone for a large network whose time for planning is over: messages are passed where it is
// contracted, once.
func betheUnseen(s query.Settings) *btn.Plan {
	e := betheEstimate()
	e.Parts[0].(*Regions).Updates = 1
	return &btn.Plan{Method: query.MethodRegions, Accuracy: s.Accuracy, Estimates: []btn.Estimate{e}}
}

// Unplanned assigns the value of belief propagation, nothing else, and passes its messages on the problem, on which the parts of the
// plan find them: until enough ends, and every message once at least. It is nil where there is no such value.
func Unplanned(ctx, enough context.Context, p *problem.Problem, s query.Settings) (*btn.Assignment, error) {
	var passed []*bp.State
	g, err := groundBy(ctx, p, func(e *sumproduct.Expression) (states []*bp.State, err error) {
		passed, err = first(ctx, enough, e, s)
		return passed, err
	})
	if err != nil || g.State == nil || passed == nil {
		return nil, err
	}
	found := proposal.Approximate(betheUnseen(s), btn.CacheOff, g.Expression)
	if found.Propagation = (&phased{states: passed}).report(); found.Propagation.LogZ == nil {
		return nil, nil
	}
	return found, nil
}

// soonShare is the part of a budget within which the first estimate of truncated legs is certain
// to be there: the Bethe value is not computed before it then. betheShare is the part that it
// may take where it is.
// Chosen: 35 of 99 models have a first estimate within a factor of four of soonShare, and it says
// only whether the Bethe value comes first, decision 20.
const (
	soonShare  = 1.0 / 256
	betheShare = 1.0 / 16
)

// first passes messages from one start until enough ends, for a small part of the budget.
func first(ctx, enough context.Context, e *sumproduct.Expression, s query.Settings) ([]*bp.State, error) {
	s.Budget *= betheShare / messageShare
	return bp.Propagate(ctx, e, bp.PropagateOptions{Seed: s.Seed, Updates: updatesFor(e, s), Starts: 1, Enough: enough})
}

// First puts the value of belief propagation before estimates of truncated legs or of sampled components. If the first of them is cheap
// and there are bounds, belief propagation is a Witness alone. If it has no value, nothing changes.
func First(ctx context.Context, j *proposal.Job, to *btn.Assignment) (*btn.Assignment, error) {
	bounded := !j.IsAuto() || hasBounds(to.Plan)
	if bounded && untilFirst(to.Plan) <= soonShare*j.Settings.Budget {
		return to, Witness(ctx, j, to)
	}

	e, err := expressionOf(ctx, j.Conditioned)
	if err != nil {
		return nil, err
	}
	if exact.Decided(e.Hypergraph()) {
		return to, nil
	}
	ordered, err := once(ctx, j, e)
	if err != nil {
		return nil, err
	}
	p := ordered.report()
	if s := ordered.states[0]; p.LogZ == nil || s.Contradiction >= 0 && !s.Signed {
		return to, nil
	}
	to.Propagation, to.Messages, to.Plan = p, ordered.messages(), afterBethe(j, to.Plan)
	return to, nil
}

// once is belief propagation from one start and from maxima, for a share of the budget.
func once(ctx context.Context, j *proposal.Job, e *sumproduct.Expression) (*phased, error) {
	enough, cancel := proposal.PlanningContext(ctx, messageShare)
	defer cancel()
	states, err := first(ctx, enough, e, j.Settings)
	if err != nil {
		return nil, err
	}
	return further(ctx, j, e, states)
}

// Witness puts down how belief propagation ends where it has several fixed points: estimates that see one phase alone show nothing of it.
// It takes a share of what the plan takes, or what is granted to any run.
func Witness(ctx context.Context, j *proposal.Job, to *btn.Assignment) error {
	e, err := expressionOf(ctx, j.Conditioned)
	if err != nil || exact.Decided(e.Hypergraph()) {
		return err
	}
	planned := 0.0
	for k := range to.Plan.Estimates {
		planned += to.Plan.Estimates[k].Cost.Flops
	}
	s := j.Settings
	s.Budget = min(s.WithDefaults().Budget, max(planned, leastUpdates*policy.UpdateFlops/orderedShare))
	ordered, err := once(ctx, j.WithSettings(s), e)
	if err == nil && len(ordered.states) > 1 {
		to.Propagation = ordered.report()
	}
	return err
}

// untilFirst is what a plan takes until there is a value, flops: bounds are none.
func untilFirst(p *btn.Plan) (flops float64) {
	for k := range p.Estimates {
		flops += p.Estimates[k].Cost.Flops
		if p.Estimates[k].Rule != btn.Bounding {
			break
		}
	}
	return flops
}

// hasBounds reports whether some estimate of a plan is of bounds.
func hasBounds(p *btn.Plan) bool {
	return slices.ContainsFunc(p.Estimates, func(e btn.Estimate) bool { return e.Rule == btn.Bounding })
}

// afterBethe returns the plan with the estimates of another one behind the value of belief propagation.
func afterBethe(j *proposal.Job, from *btn.Plan) *btn.Plan {
	return j.DerivePlan("after bethe", from, func() *btn.Plan {
		plan := *from
		plan.Estimates = slices.Insert(slices.Clone(plan.Estimates), 0, betheEstimate())
		return &plan
	})
}
