package gradients_test

import (
	"context"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/gradients"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/enginetest"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// contract plans and contracts the problem with every factor as a core, in some dozen slices where they are wanted.
func contract(ctx context.Context, p *enginetest.Problem, w enginetest.Want) (a gradients.Answer, slices int64, err error) {
	net, err := reparam.Build(ctx, p.Model, reparam.Options{Parametric: true})
	if err != nil {
		return a, 0, err
	}
	if net, err = net.Condition(p.Evidence); err != nil {
		return a, 0, err
	}
	ready, err := gradients.Prepare(ctx, net)
	if err != nil {
		return a, 0, err
	}
	o := gradients.PlanOptions{Memory: w.Memory, Marginals: w.Marginals}
	plan, cost, err := ready.Plan(ctx, o)
	if err != nil {
		return a, 0, err
	}
	for o.Memory = int64(cost.Bytes) - 8; w.Sliced && plan.Count < 64; o.Memory = int64(cost.Bytes) - 8 {
		next, c, err := ready.Plan(ctx, o)
		if fault.CodeOf(err) == fault.OverBudget && err != nil {
			break
		}
		if err != nil {
			return a, 0, err
		}
		plan, cost = next, c
	}
	to := w.To
	if to == 0 {
		to = plan.Count
	}
	a, err = ready.Answer(ctx, plan, gradients.Options{
		Memory: w.Memory, Threads: w.Threads, From: w.From, To: to, Marginals: w.Marginals,
	})
	if err == nil && a.Doubt != "" {
		err = enginetest.ErrDeclined
	}
	return a, plan.Count, err
}

// TestGradientsEngine: the common suite, with derivatives by every number.
func TestGradientsEngine(t *testing.T) {
	enginetest.Exercise(t, enginetest.Engine{
		Contract: func(ctx context.Context, p *enginetest.Problem, w enginetest.Want) (v enginetest.Value, err error) {
			a, slices, err := contract(ctx, p, w)
			return enginetest.Value{Z: a.Z, Marginals: enginetest.Normalised(a.Z, a.Marginals), Slices: slices}, err
		},
		Differentiate: func(ctx context.Context, p *enginetest.Problem, w enginetest.Want) ([]scaled.Number, error) {
			a, _, err := contract(ctx, p, w)
			return a.Derivatives, err
		},
		Lacks: map[enginetest.Property]string{
			enginetest.Expressions: "it lowers networks itself",
			enginetest.OverBudget:  "it looks for slices before it refuses: the orders it prices are garbage larger than the bound",
			enginetest.Joint:       "joint marginals are another query",
		},
	})
}
