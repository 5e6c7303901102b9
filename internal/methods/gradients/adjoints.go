package gradients

// C = B with its derivatives by the numbers of its cores.

import (
	"context"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/query"
)

// formKey is the key of the prepared network among the forms of a problem that are computed once.
type formKey struct{}

// PreparedOf returns the problem's network prepared for derivatives (Prepare). It is computed once. Errors: those of Prepare.
func PreparedOf(ctx context.Context, p *problem.Problem) (*Prepared, error) {
	return problem.Form(ctx, p, formKey{}, nil, func() (*Prepared, error) { return Prepare(ctx, p.Net) })
}

// Cost implements contraction.Priced: the predicted flops of the part's slices.
func (p *Adjoints) Cost(*problem.Problem) query.Cost {
	return query.Cost{Flops: p.Plan.Flops * float64(p.To-p.From)}
}

// Contract implements contraction.Contractor: it contracts the slices p.From ≤ s < p.To of the network forth and back, and returns their Z.
// As far as they are wanted it also returns derivatives, marginals, and Z and derivatives with a target observed.
func (p *Adjoints) Contract(ctx context.Context, instance *problem.Problem, want btn.Want) (btn.Value, error) {
	if err := contraction.RefuseJoint(want); err != nil { // these parts have no joint marginals
		return btn.Value{}, err
	}
	j, err := contraction.Begin(ctx, instance, want)
	if err != nil {
		return btn.Value{}, err
	}
	prepared, err := PreparedOf(ctx, instance)
	if err != nil {
		return btn.Value{}, err
	}
	a, err := prepared.Answer(ctx, p.Plan, Options{
		Memory:    j.Memory,
		Threads:   j.Threads,
		From:      p.From,
		To:        p.To,
		Marginals: want.Marginals,
		Target:    want.Target,
	})
	if err != nil {
		return btn.Value{}, err
	}

	// What is wanted of the answer.
	value := btn.Value{Z: a.Z, Flops: a.Flops, Digits: a.Digits, Doubt: a.Doubt}
	sizes := prepared.ParameterCounts()
	if want.Derivatives || want.Target != nil {
		value.Derivatives = btn.NewDerivatives(sizes, a.Derivatives)
	}
	if want.Target != nil {
		value.Target = &btn.TargetValue{Z: a.TargetZ, Derivatives: btn.NewDerivatives(sizes, a.TargetDerivatives)}
	}
	if j.Marginals != nil {
		value.Marginals = j.MarginalsOf(a.Marginals)
	}
	return value, nil
}
