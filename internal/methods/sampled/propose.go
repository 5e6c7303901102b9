package sampled

// Proposals: sampled components alone.

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
var Method = proposal.Method{Name: query.MethodSampled, Propose: Propose, Grows: true, Weighs: true}

// Propose is the proposal of components of a random decomposition, as many as the budget holds. How long the chains are depends on a pilot
// of the first query whose evidence leaves this shape; what they weigh is unbiased for any length. Where the time for planning is over, a
// small pilot has to do.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	return chosen(ctx, j, ask, query.MethodSampled, Choose)
}

// ProposeLearned is the proposal of draws from a mixture that is learned for the network under the query's evidence: see Learn. Errors:
// unsupported where entries are below 0, or an index has more than 256 values.
func ProposeLearned(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	return chosen(ctx, j, ask, query.MethodSymmetryCP, Learn)
}

// choice chooses how components are drawn within a budget; whole is false where the time for it ended first.
type choice func(context.Context, *Chains, query.Settings) (along Sampling, whole bool, err error)

// chosen is the proposal of components that are drawn as a choice says.
func chosen(ctx context.Context, j *proposal.Job, ask proposal.Ask, method query.Method, choose choice) (*btn.Assignment, error) {
	own, err := truncated.Of(ctx, j.Problem(), ask.Marginals)
	if err != nil {
		return nil, err
	}
	if own.Decided() {
		return exact.ProposeTree(ctx, j, ask)
	}
	chains, err := ChainsOf(ctx, j.Problem(), ask.Marginals)
	if err != nil {
		return nil, err
	}
	beside, err := bounding.Key(ctx, j, ask.Marginals)
	if err != nil {
		return nil, err
	}
	if method == query.MethodSymmetryCP { // what is learned depends on the values of the evidence, not on its shape alone
		beside += fmt.Sprintf(" under %v", j.Evidence)
	}
	plan, hit, err := j.RememberComplete(ctx, j.GrowthKey(string(method)+beside, ask.Marginals), own.Hypergraph(),
		func(computing context.Context) (*btn.Plan, bool, error) {
			planning, cancel := proposal.PlanningContext(computing, 1)
			defer cancel()
			plan, whole, err := planOf(planning, j, chains, ask.Marginals, method, choose)
			if !proposal.IsOutOfTime(computing, err) {
				return plan, whole, err
			}
			plan = &btn.Plan{Method: method, Accuracy: j.Settings.Accuracy}
			plan.Estimates, err = Hasty(computing, j, chains, ask.Marginals)
			return plan, false, err
		})
	if err != nil {
		return nil, err
	}
	return proposal.Approximate(plan, hit, own.Expression()), nil
}

// planOf is a plan of sampled components and bounds alone; whole is false where the time for planning ended first.
func planOf(
	ctx context.Context, j *proposal.Job, c *Chains, marginals bool, method query.Method, choose choice,
) (plan *btn.Plan, whole bool, err error) {
	along, whole, err := choose(ctx, c, j.Settings)
	if err != nil {
		return nil, false, err
	}
	plan = &btn.Plan{Method: method, Accuracy: j.Settings.Accuracy}
	if plan.Estimates, err = Components(c, along, j.Settings, marginals); err != nil {
		return nil, false, err
	}
	return bounding.Insert(ctx, j, 0, plan, whole)
}

// Hasty returns chains from a small pilot, for half of the budget.
func Hasty(ctx context.Context, j *proposal.Job, c *Chains, marginals bool) ([]btn.Estimate, error) {
	along, err := quickPilot(ctx, j, c.Model)
	if err != nil {
		return nil, err
	}
	along.Shape = c.Prepared.Shape()
	half := j.Settings
	half.Budget /= 2
	return Components(c, along, half, marginals)
}

// hastyShare reduces the budget for the pilot where the time for planning is over.
// Chosen: some milliseconds of a second.
const hastyShare = 1.0 / 8

// quickPilot chooses chains by a small pilot alone, whatever the time.
func quickPilot(ctx context.Context, j *proposal.Job, m *annealing.Model) (*Annealing, error) {
	little := j.Settings
	little.Budget *= hastyShare
	along, _, err := Pilot(ctx, m, little)
	return along, err
}

// ChainsInTime returns the chains that components are drawn from. For a large network they have a share of the planning time.
func ChainsInTime(ctx context.Context, j *proposal.Job, marginals bool) (chains *Chains, err error) {
	if len(j.Net.Cores) <= policy.MostHasty {
		return ChainsOf(ctx, j.Problem(), marginals)
	}
	err = proposal.Within(ctx, policy.PrepareShare, "the simplification for chains", func(ctx context.Context) error {
		chains, err = ChainsOf(ctx, j.Problem(), marginals)
		return err
	})
	return chains, err
}
