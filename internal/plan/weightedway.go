package plan

// Weighted samples: states where chains end, where assignments cannot be drawn exactly.

import (
	"context"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/engine/annealing"
	"github.com/basetensor/basetensor/internal/families/sampled"
	"github.com/basetensor/basetensor/internal/families/truncated"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/internal/proposal"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// weighs reports whether what a query asks for may be answered by weighted samples: samples, and beside them Z and marginals alone.
func weighs(q query.Query) bool {
	return q.Samples > 0 && !q.MPE && len(q.Map) == 0 && len(q.Joint) == 0 && !btn.Parametric(q)
}

// weighted assigns chains over all variables, as many as the budget holds and at least one a sample, and bounds. There is one estimate:
// samples are of all chains.
func (a *assigner) weighted(q query.Query) (btn.Assignment, error) {
	terms, model, err := sampled.WalkOf(a.Ctx, a.Problem())
	if err != nil {
		return btn.Assignment{}, err
	}
	own, err := truncated.Of(a.Ctx, a.Problem(), false)
	if err != nil {
		return btn.Assignment{}, err
	}
	if own.Decided() { // nothing is left to draw for
		return a.exactDescents(q)
	}
	key := fmt.Sprintf("%s samples=%d", a.growthKey("weighted, bounds of "+own.Shape(), q.Marginals), q.Samples)
	plan, hit, err := a.RememberWhole(key, terms.Hypergraph(), func(ctx context.Context) (*btn.Plan, bool, error) {
		planning, cancel := proposal.Planning(ctx, 1)
		defer cancel()
		along, whole, err := pilot(planning, model, a.Settings)
		if proposal.OutOfTime(ctx, planning, err) {
			along, err = a.quickPilot(ctx, model)
		}
		if err != nil {
			return nil, false, err
		}
		along.Shape = terms.Shape()
		plan, err := weightedPlan(model, along, a.Settings, int64(q.Samples), len(a.Net.Variables))
		if err != nil {
			return nil, false, err
		}
		bounds, err := boundsOf(planning, own, a.Settings)
		if proposal.OutOfTime(ctx, planning, err) {
			return plan, false, nil
		}
		plan.Estimates = append(plan.Estimates, bounds...)
		return plan, whole, err
	})
	if err != nil {
		return btn.Assignment{}, err
	}
	e := terms.Terms()
	return btn.Assignment{
		Plan: plan, Cache: hit, LnLinks: math.Inf(-1), Hard: forbids(e), Unsure: beyondRange(e),
		Descents: &btn.Descents{Samples: q.Samples, Seed: q.Seed},
	}, nil
}

// weightedPlan divides a budget into chains whose states are drawn.
func weightedPlan(m *annealing.Model, along *sampled.Sampling, s btn.Settings, samples int64, variables int) (*btn.Plan, error) {
	budget := s.Budget * (1 - policy.PilotShare)
	_, setup := chainFlops(m, along)
	budget -= setup
	along.Rungs = max(2, min(along.Rungs, int(rungs(m, along, budget/float64(samples)))))
	each, _ := chainFlops(m, along)
	along.Of = int64(min(budget/each, float64(sampled.MostComponents)))
	along.Of = max(annealing.Group, along.Of/annealing.Group*annealing.Group)
	bytes := func(part int64) float64 {
		return m.Bytes(sampled.Path(along), part, 1, true) + 8*float64(samples)*float64(part)/float64(along.Of)*float64(variables+1)
	}
	part := fitting(groups(float64(along.Of)/policy.SampledParts), s.Memory, bytes)
	along.Of = min(along.Of, part*policy.MostSampledParts)
	if bytes(part) > float64(s.Memory) {
		return nil, fault.New(fault.OverBudget, "plan: chains need %.3g bytes, %d are allowed", bytes(part), s.Memory)
	}
	e := btn.Estimate{
		Rule: btn.Pooled, Track: string(btn.FamilySampled), Slices: 1, Level: math.Log2(float64(along.Of)),
		Cost: btn.Cost{Flops: each * float64(along.Of), Bytes: bytes(part)},
	}
	for from := int64(0); from < along.Of; from += part {
		e.Parts = append(e.Parts, &sampled.Sampled{Along: along, From: from, To: min(from+part, along.Of)})
	}
	plan := &btn.Plan{Method: btn.MethodSampled, Accuracy: s.Accuracy, Estimates: []btn.Estimate{e}}
	if along.Of < samples {
		plan.Warnings = append(plan.Warnings, fmt.Sprintf("the budget holds %d chains: there are no more samples than that", along.Of))
	}
	return plan, nil
}
