package sampled

// Proposals of method sampled, and of draws from learned mixtures.

import (
	"context"
	"fmt"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/bounding"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/sampled/annealing"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// Method is method sampled.
var Method = proposal.Method{Name: query.MethodSampled, Propose: Propose, Grows: true, DrawsWeightedSamples: true}

// Propose proposes as many components as the budget holds, drawn as a pilot chooses (ChooseSampling). The pilot runs for the first query
// whose evidence leaves a network of this shape, and its choice serves later ones: weights are unbiased for any choice. If the time for
// planning ends, a small pilot chooses chains.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	return proposeDraws(ctx, j, ask, query.MethodSampled, ChooseSampling)
}

// ProposeLearned proposes draws from a mixture that is learned for the network under the evidence of the query (LearnSampling). Errors:
// unsupported if entries are below 0, or an index has more than 256 values.
func ProposeLearned(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	return proposeDraws(ctx, j, ask, query.MethodSymmetryCP, LearnSampling)
}

// chooser chooses how components are drawn within a budget. isComplete is false if the time for planning ended first.
type chooser func(context.Context, *Chains, query.Settings) (sampler Sampling, isComplete bool, err error)

// proposeDraws proposes components that are drawn as choose decides, and bounds. If simplification has left nothing to sum, it proposes a
// contraction tree instead. The plan is taken from the plan cache if it is there.
func proposeDraws(ctx context.Context, j *proposal.Job, ask proposal.Ask, method query.Method, choose chooser) (*btn.Assignment, error) {
	prepared, err := truncated.Simplify(ctx, j.Problem(), ask.Marginals)
	if err != nil {
		return nil, err
	}
	if prepared.IsDecided() {
		return exact.ProposeTree(ctx, j, ask)
	}
	chains, err := PrepareChains(ctx, j.Problem(), ask.Marginals)
	if err != nil {
		return nil, err
	}
	boundsKey, err := bounding.Key(ctx, j, ask.Marginals)
	if err != nil {
		return nil, err
	}
	if method == query.MethodSymmetryCP { // a learned mixture depends on the values of the evidence
		boundsKey += fmt.Sprintf(" under %v", j.Evidence)
	}

	plan, cacheState, err := j.RememberComplete(ctx, j.GrowthKey(string(method)+boundsKey, ask.Marginals), prepared.Hypergraph(),
		func(computing context.Context) (*btn.Plan, bool, error) {
			planning, cancel := proposal.PlanningContext(computing, 1) // 1: all of the time that remains for planning
			defer cancel()
			plan, isComplete, err := buildPlan(planning, j, chains, ask.Marginals, method, choose)
			if !proposal.IsOutOfTime(computing, err) {
				return plan, isComplete, err
			}
			// The time for planning is over, and that of the job is not.
			plan = &btn.Plan{Method: method, Accuracy: j.Settings.Accuracy}
			plan.Estimates, err = HastyEstimates(computing, j, chains, ask.Marginals)
			return plan, false, err
		})
	if err != nil {
		return nil, err
	}
	return proposal.NewApproximateAssignment(plan, cacheState, prepared.Expression()), nil
}

// buildPlan returns a plan of sampled components and bounds. isComplete is false if the time for planning ended first.
func buildPlan(
	ctx context.Context, j *proposal.Job, c *Chains, marginals bool, method query.Method, choose chooser,
) (plan *btn.Plan, isComplete bool, err error) {
	sampler, isComplete, err := choose(ctx, c, j.Settings)
	if err != nil {
		return nil, false, err
	}
	plan = &btn.Plan{Method: method, Accuracy: j.Settings.Accuracy}
	if plan.Estimates, err = PlanEstimates(c, sampler, j.Settings, marginals); err != nil {
		return nil, false, err
	}
	const first = 0 // bounds come before all estimates
	return bounding.Insert(ctx, j, first, plan, isComplete)
}

// HastyEstimates returns estimates by chains for half of the budget, a choice. It is for plans whose time for planning is over. A small
// pilot, which runs to its end all the same, chooses the number and the kind of the steps with which the chains walk over c.Model
// (quickPilot).
func HastyEstimates(ctx context.Context, j *proposal.Job, c *Chains, marginals bool) ([]btn.Estimate, error) {
	sampler, err := quickPilot(ctx, j, c.Model)
	if err != nil {
		return nil, err
	}
	sampler.Shape = c.Prepared.Shape()
	half := j.Settings
	half.Budget /= 2
	return PlanEstimates(c, sampler, half, marginals)
}

// hastyShare is the share of the budget by which a pilot is reduced if the time for planning is over.
// Chosen: some milliseconds of a second.
const hastyShare = 1.0 / 8

// quickPilot chooses chains when the time for planning is over. It differs from the usual pilot in two ways: its budget is smaller, by the
// factor hastyShare, and it runs to its end, because callers give it a context that the time for planning does not end.
func quickPilot(ctx context.Context, j *proposal.Job, m *annealing.Model) (*Annealing, error) {
	little := j.Settings
	little.Budget *= hastyShare
	sampler, _, err := Pilot(ctx, m, little) // it need not be complete: the plan counts as incomplete in any case
	return sampler, err
}

// PrepareChainsInTime returns the simplified network and the model that chains walk over (PrepareChains). If the network is large,
// simplification has a share of the time for planning, and the error is over budget if that ends.
func PrepareChainsInTime(ctx context.Context, j *proposal.Job, marginals bool) (chains *Chains, err error) {
	if len(j.Net.Cores) <= policy.MostHasty {
		return PrepareChains(ctx, j.Problem(), marginals)
	}
	err = proposal.RunInTimeShare(ctx, policy.PrepareShare, "the simplification for chains", func(ctx context.Context) error {
		chains, err = PrepareChains(ctx, j.Problem(), marginals)
		return err
	})
	return chains, err
}
