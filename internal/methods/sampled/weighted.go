package sampled

// Proposals: weighted samples, states where chains end.

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

// mostSampledParts is the maximum number of parts where the memory holds only small ones.
// Chosen: the size of a plan in a message.
const mostSampledParts = 1024

// weightedPlan divides a budget into chains whose states are drawn.
func weightedPlan(m *annealing.Model, along *Annealing, s query.Settings, samples int64, variables int) (*btn.Plan, error) {
	budget := s.Budget * (1 - pilotShare)
	_, setup := along.flops(m)
	budget -= setup
	along.Rungs = max(2, min(along.Rungs, int(along.rungs(m, budget/float64(samples)))))
	each, _ := along.flops(m)
	along.Of = int64(min(budget/each, float64(MostComponents)))
	along.Of = max(annealing.Group, along.Of/annealing.Group*annealing.Group)
	bytes := func(part int64) float64 {
		return m.Bytes(along.Path(), part, 1, true) + 8*float64(samples)*float64(part)/float64(along.Of)*float64(variables+1)
	}
	part := fitting(groups(float64(along.Of)/policy.SampledParts), s.Memory, bytes)
	along.Of = min(along.Of, part*mostSampledParts)
	if bytes(part) > float64(s.Memory) {
		return nil, fault.New(fault.OverBudget, "plan: chains need %.3g bytes, %d are allowed", bytes(part), s.Memory)
	}
	e := btn.Estimate{
		Rule: btn.Pooled, Track: string(query.FamilySampled), Slices: 1, Level: math.Log2(float64(along.Of)),
		Cost: query.Cost{Flops: each * float64(along.Of), Bytes: bytes(part)},
	}
	for from := int64(0); from < along.Of; from += part {
		e.Parts = append(e.Parts, &Sampled{Along: along, From: from, To: min(from+part, along.Of)})
	}
	plan := &btn.Plan{Method: query.MethodSampled, Accuracy: s.Accuracy, Estimates: []btn.Estimate{e}}
	if along.Of < samples {
		plan.Warnings = append(plan.Warnings, fmt.Sprintf("the budget holds %d chains: there are no more samples than that", along.Of))
	}
	return plan, nil
}

// ProposeStates is the proposal of chains over all variables, as many as the budget holds and at least one a sample, and bounds; nil where
// nothing is left to draw for. There is one estimate: samples are of all chains.
func ProposeStates(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	terms, model, err := WalkOf(ctx, j.Problem())
	if err != nil {
		return nil, err
	}
	own, err := truncated.Of(ctx, j.Problem(), false)
	if err != nil {
		return nil, err
	}
	if own.Decided() {
		return nil, nil
	}
	key := fmt.Sprintf("%s samples=%d", j.GrowthKey("weighted, bounds of "+own.Shape(), ask.Marginals), ask.Samples)
	plan, hit, err := j.RememberComplete(ctx, key, terms.Hypergraph(), func(computing context.Context) (*btn.Plan, bool, error) {
		planning, cancel := proposal.PlanningContext(computing, 1)
		defer cancel()
		along, whole, err := Pilot(planning, model, j.Settings)
		if proposal.IsOutOfTime(computing, err) {
			along, err = quickPilot(computing, j, model)
		}
		if err != nil {
			return nil, false, err
		}
		along.Shape = terms.Shape()
		plan, err := weightedPlan(model, along, j.Settings, int64(ask.Samples), len(j.Net.Variables))
		if err != nil {
			return nil, false, err
		}
		return bounding.Insert(planning, j, len(plan.Estimates), plan, whole)
	})
	if err != nil {
		return nil, err
	}
	found := proposal.Approximate(plan, hit, terms.Terms())
	return found, nil
}
