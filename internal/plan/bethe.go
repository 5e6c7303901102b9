package plan

// The value of belief propagation before everything else: what a job with a deadline answers with if nothing
// better is there in time.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/bp"
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/families/bounding"
	"github.com/basetensor/basetensor/internal/families/exact"
	"github.com/basetensor/basetensor/internal/families/regions"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/internal/proposal"
)

// betheEstimate is the value of belief propagation.
func betheEstimate() btn.Estimate {
	return regionsEstimate(betheLevel, family{kind: btn.KindBethe}, nil, 1, 1)
}

// betheUnseen is a plan of that value alone for a large network whose time for planning is over: messages are passed where it is
// contracted, once.
func betheUnseen(s btn.Settings) *btn.Plan {
	e := betheEstimate()
	e.Parts[0].(*regions.Regions).Updates = 1
	return &btn.Plan{Method: btn.MethodRegions, Accuracy: s.Accuracy, Estimates: []btn.Estimate{e}}
}

// betheFirst puts the value of belief propagation before estimates of truncated legs or of sampled components;
// legs is why there are none, nil where there are. Where the first of them is cheap and there are bounds, or belief propagation has
// no value, nothing changes.
func (a *assigner) betheFirst(to *btn.Assignment, conditioned *btn.Network, legs error) error {
	var from *btn.Plan
	if legs == nil {
		from = to.Plan
		enough := a.Settings.Method != btn.MethodAuto || hasBounds(from)
		if !from.Grows() || enough && untilFirst(from) <= policy.SoonShare*a.Settings.Budget {
			return nil
		}
	}

	e, err := lower.Build(a.Ctx, conditioned)
	if err != nil {
		return err
	}
	if exact.Decided(e.Hypergraph()) {
		return legs
	}

	enough, cancel := proposal.Planning(a.Ctx, policy.MessageShare)
	defer cancel()
	short := a.Settings
	short.Budget *= policy.BetheShare / policy.MessageShare
	states, err := bp.Propagate(a.Ctx, e, bp.PropagateOptions{
		Seed:    a.Settings.Seed,
		Updates: updatesFor(e, short),
		Starts:  1,
		Enough:  enough,
	})
	if err != nil {
		return err
	}

	p := report(states)
	if s := states[0]; p.LogZ == nil || s.Contradiction >= 0 && !s.Signed {
		return legs
	}
	if legs != nil {
		*to = btn.Assignment{Cache: a.CacheState(), LnLinks: math.Inf(-1), Hard: proposal.Forbids(e), Unsure: proposal.BeyondRange(e),
			Warnings: []string{"there is the value of belief propagation only: " + legs.Error()}}
	}
	to.Propagation, to.Messages, to.Plan = p, states[0].Messages(), a.afterBethe(from)
	return nil
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

// boundedAtOnce returns a plan with the bound by messages after the value of belief propagation, where it begins with that.
func (a *assigner) boundedAtOnce(from *btn.Plan) *btn.Plan {
	bethe, ok := from.Estimates[0].Parts[0].(*regions.Regions)
	if !ok || bethe.Kind != btn.KindBethe {
		return from
	}
	if plan := a.atOnce[from]; plan != nil {
		return plan
	}
	plan := *from
	bound := btn.Estimate{Rule: btn.Bounding, Slices: 1, Parts: []btn.Part{&bounding.Bound{
		Kind: bounding.Messages, Rounds: int(bethe.Updates),
	}}}
	plan.Estimates = slices.Insert(slices.Clone(from.Estimates), 1, bound)
	if a.atOnce == nil {
		a.atOnce = map[*btn.Plan]*btn.Plan{}
	}
	a.atOnce[from] = &plan
	return &plan
}

// afterBethe returns the plan with the estimates of another one, nil for none, behind the value of belief propagation.
func (a *assigner) afterBethe(from *btn.Plan) *btn.Plan {
	if plan := a.bethe[from]; plan != nil {
		return plan
	}
	plan := &btn.Plan{
		Method:    btn.MethodTruncated,
		Accuracy:  a.Settings.Accuracy,
		Estimates: []btn.Estimate{betheEstimate()},
	}
	if from != nil {
		plan.Method, plan.Accuracy = from.Method, from.Accuracy
		plan.Estimates = append(plan.Estimates, from.Estimates...)
	}
	if a.bethe == nil {
		a.bethe = map[*btn.Plan]*btn.Plan{}
	}
	a.bethe[from] = plan
	return plan
}
