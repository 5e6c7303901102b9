package sampled

// Proposals of weighted samples, which are states where chains end.

import (
	"context"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/bounding"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/sampled/annealing"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// mostSampledParts is the largest number of parts of a plan, which matters if the memory holds only small ones.
// Chosen: the size of a plan in a message.
const mostSampledParts = 1024

// weightedPlan returns a plan of one estimate: as many chains as the budget holds, from whose ends states are drawn. It sets the number of
// components in sampler.Of, and reduces the rungs of the chains, the steps of each, until the budget holds a component for each sample. If
// it still does not, the plan has a warning. variables is the number of variables of a state.
func weightedPlan(m *annealing.Model, sampler *Annealing, s query.Settings, samples int64, variables int) (*btn.Plan, error) {
	// The number of rungs and of components follow from the budget.
	budget := s.Budget * (1 - pilotShare)
	_, setupFlops := sampler.flops(m)
	budget -= setupFlops
	sampler.Rungs = max(2, min(sampler.Rungs, int(sampler.rungsFor(m, budget/float64(samples)))))
	componentFlops, _ := sampler.flops(m) // with these rungs; setupFlops stays
	sampler.Of = int64(min(budget/componentFlops, float64(MaxComponents)))
	sampler.Of = max(annealing.GroupSize, sampler.Of/annealing.GroupSize*annealing.GroupSize)

	// The number of components in a part follows from the memory, which holds chains and drawn states.
	bytes := func(part int64) float64 {
		// The last states of chains are kept. A part has its share of the samples, each with its values and the logarithm of its weight.
		const threads, keepsStates = 1, true
		return m.Bytes(sampler.Path(), part, threads, keepsStates) +
			8*float64(samples)*float64(part)/float64(sampler.Of)*float64(variables+1)
	}
	part := fitToMemory(wholeGroups(float64(sampler.Of)/policy.SampledParts), s.Memory, bytes)
	sampler.Of = min(sampler.Of, part*mostSampledParts)
	if bytes(part) > float64(s.Memory) {
		return nil, fault.New(fault.OverBudget, "plan: chains need %.3g bytes, %d are allowed", bytes(part), s.Memory)
	}

	e := btn.Estimate{
		Rule: btn.Pooled, Track: string(query.FamilySampled), Slices: 1, Level: math.Log2(float64(sampler.Of)),
		Cost: query.Cost{Flops: componentFlops * float64(sampler.Of), Bytes: bytes(part)},
	}
	for from := int64(0); from < sampler.Of; from += part {
		e.Parts = append(e.Parts, &Sampled{Sampling: sampler, From: from, To: min(from+part, sampler.Of)})
	}
	plan := &btn.Plan{Method: query.MethodSampled, Accuracy: s.Accuracy, Estimates: []btn.Estimate{e}}
	if sampler.Of < samples {
		plan.Warnings = append(plan.Warnings, fmt.Sprintf("the budget holds %d chains: there are no more samples than that", sampler.Of))
	}
	return plan, nil
}

// ProposeStates proposes chains over all variables for a question that asks for states, and bounds. There are as many chains as the budget
// holds, if possible one for each sample. They are in one estimate, since samples are drawn from all chains. It returns nil if
// simplification has left nothing to sum.
func ProposeStates(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	terms, model, err := PrepareStateChains(ctx, j.Problem())
	if err != nil {
		return nil, err
	}
	const withoutMarginals = false
	prepared, err := truncated.Simplify(ctx, j.Problem(), withoutMarginals)
	if err != nil {
		return nil, err
	}
	if prepared.IsDecided() {
		return nil, nil
	}
	key := fmt.Sprintf("%s samples=%d", j.GrowthKey("weighted, bounds of "+prepared.Shape(), ask.Marginals), ask.Samples)
	plan, cacheState, err := j.RememberComplete(ctx, key, terms.Hypergraph(), func(computing context.Context) (*btn.Plan, bool, error) {
		return planStates(computing, j, ask, model, terms.Shape())
	})
	if err != nil {
		return nil, err
	}
	return proposal.NewApproximateAssignment(plan, cacheState, terms.Terms()), nil
}

// planStates returns the plan of ProposeStates. shape is that of the tables that the model is made of. If the time for planning ends, a
// small pilot chooses the chains, and isComplete is false.
func planStates(
	ctx context.Context, j *proposal.Job, ask proposal.Ask, model *annealing.Model, shape string,
) (plan *btn.Plan, isComplete bool, err error) {
	planning, cancel := proposal.PlanningContext(ctx, 1) // 1: all of the time that remains for planning
	defer cancel()
	sampler, isComplete, err := Pilot(planning, model, j.Settings)
	if proposal.IsOutOfTime(ctx, err) {
		sampler, err = quickPilot(ctx, j, model)
	}
	if err != nil {
		return nil, false, err
	}
	sampler.Shape = shape
	if plan, err = weightedPlan(model, sampler, j.Settings, int64(ask.Samples), len(j.Net.Variables)); err != nil {
		return nil, false, err
	}
	return bounding.Insert(planning, j, len(plan.Estimates), plan, isComplete) // bounds come after all estimates
}
