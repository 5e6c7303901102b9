package plan

// Exact plans that may end without an answer, and estimates behind them.

import (
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
)

// unsettled reports whether a plan of method auto contracts terms of both signs at a cost beyond wide numbers: where all digits
// cancel, nothing settles what is left.
func (a *assigner) unsettled(found *btn.Assignment, marginals bool) bool {
	e := &found.Plan.Estimates[0]
	if !a.Auto() || found.Summed || e.Cost.Flops <= policy.WideFlops {
		return false
	}
	if e.Parts[0].About().Slices == 0 {
		return false
	}
	p, err := exact.Of(a.Ctx, a.Problem(), marginals, nil)
	return err == nil && p.Signed()
}

// orElse puts an exact plan among the estimates of the query, behind the first of them: it is the answer if it has one, and else they
// go on.
func (a *assigner) orElse(d btn.Demand, found *btn.Assignment) (*btn.Assignment, error) {
	estimates, err := a.approximate(d, nil)
	if err != nil || !estimates.Plan.Grows() {
		return found, a.Ctx.Err()
	}
	estimates.Plan = a.Derived(fmt.Sprintf("else %p", found.Plan), estimates.Plan, func() *btn.Plan {
		plan := *estimates.Plan
		at := 1
		for at < len(plan.Estimates) && plan.Estimates[at].Rule == btn.Bounding {
			at++
		}
		plan.Estimates = slices.Insert(slices.Clone(plan.Estimates), at, found.Plan.Estimates[0])
		return &plan
	})
	return estimates, nil
}

// onto returns an assigner of queries to another network, which is asked about once.
func (a *assigner) onto(net *btn.Network) *assigner {
	facts := new(Known).factsOf(net)
	return &assigner{facts: facts, exactly: new(exactly), alone: a.alone, method: a.method, hasLikelihoods: true, Job: &proposal.Job{
		Ctx: a.Ctx, Net: net, Settings: a.Settings, Memo: a.Memo, Facts: facts.Facts, Problems: new(problem.Shared), Options: a.Options,
	}}
}
