package sampled

// Proposals: weighted samples, states where chains end.

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/engine/annealing"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/pkg/fault"
)

// WeightedPlan divides a budget into chains whose states are drawn.
func WeightedPlan(m *annealing.Model, along *Annealing, s btn.Settings, samples int64, variables int) (*btn.Plan, error) {
	budget := s.Budget * (1 - policy.PilotShare)
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
	along.Of = min(along.Of, part*policy.MostSampledParts)
	if bytes(part) > float64(s.Memory) {
		return nil, fault.New(fault.OverBudget, "plan: chains need %.3g bytes, %d are allowed", bytes(part), s.Memory)
	}
	e := btn.Estimate{
		Rule: btn.Pooled, Track: string(btn.FamilySampled), Slices: 1, Level: math.Log2(float64(along.Of)),
		Cost: btn.Cost{Flops: each * float64(along.Of), Bytes: bytes(part)},
	}
	for from := int64(0); from < along.Of; from += part {
		e.Parts = append(e.Parts, &Sampled{Along: along, From: from, To: min(from+part, along.Of)})
	}
	plan := &btn.Plan{Method: btn.MethodSampled, Accuracy: s.Accuracy, Estimates: []btn.Estimate{e}}
	if along.Of < samples {
		plan.Warnings = append(plan.Warnings, fmt.Sprintf("the budget holds %d chains: there are no more samples than that", along.Of))
	}
	return plan, nil
}
