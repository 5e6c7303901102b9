package contract

// C = B with its derivatives by the numbers of its cores.

import (
	"context"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/gradients"
	"github.com/basetensor/basetensor/internal/problem"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// adjoints contracts slices of the network as it is, forth and back.
type adjoints struct{}

// Cost implements Engine.
func (adjoints) Cost(_ *problem.Problem, part btn.Part) btn.Cost {
	q := part.(*btn.Adjoints)
	return btn.Cost{Flops: q.Plan.Flops * float64(q.To-q.From)}
}

// Contract implements Engine.
func (adjoints) Contract(
	ctx context.Context, p *problem.Problem, part btn.Part, want problem.Want,
) (btn.Value, error) {
	if err := noJoint(want); err != nil {
		return btn.Value{}, err
	}
	j, err := begin(ctx, p, want)
	if err != nil {
		return btn.Value{}, err
	}

	q := part.(*btn.Adjoints)
	prepared, err := p.Gradients(ctx)
	if err != nil {
		return btn.Value{}, err
	}
	a, err := prepared.Answer(ctx, q.Plan, gradients.Options{
		Memory:    j.memory,
		Threads:   j.threads,
		From:      q.From,
		To:        q.To,
		Marginals: want.Marginals,
		Target:    want.Target,
	})
	if err != nil {
		return btn.Value{}, err
	}

	value := btn.Value{Z: a.Z, Flops: a.Flops, Digits: a.Digits, Doubt: a.Doubt}
	sizes := prepared.Sizes()
	if want.Derivatives || want.Target != nil {
		value.Derivatives = btn.NewDerivatives(sizes, a.By)
	}
	if want.Target != nil {
		value.Target = &btn.TargetValue{Z: a.TargetZ, Derivatives: btn.NewDerivatives(sizes, a.TargetBy)}
	}
	if j.m != nil {
		for v, row := range a.Marginals {
			copy(j.m.at[j.m.offset[v]:], row)
		}
		value.Marginals = j.m.result(scaled.One)
	}
	return value, nil
}
