package sampled

// Chains, and the network they walk over.

import (
	"context"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/engine/annealing"
	"github.com/basetensor/basetensor/internal/families/descent"
	"github.com/basetensor/basetensor/internal/families/truncated"
	"github.com/basetensor/basetensor/internal/problem"
)

// Chains are the simplified network and the model that chains walk over.
type Chains struct {
	Prepared *truncated.Prepared
	Model    *annealing.Model
}

// Path is how annealed components are carried.
func Path(along *Sampling) annealing.Path {
	path := annealing.Path{Rungs: along.Rungs, Product: along.Product, Knots: along.Knots, Seed: along.Seed, Modes: along.Modes}
	switch {
	case along.Metropolis:
		path.Step = annealing.Metropolis
	case along.Forests:
		path.Step = annealing.Forests
	}
	return path
}

// Places among the forms of a problem.
type (
	chainsSlot   struct{ marginals bool }
	proposalSlot struct{ marginals bool }
	walkSlot     struct{}
)

// ChainsOf returns the chains that components of a problem are drawn from. Errors: those of truncated.Of and of annealing.New.
func ChainsOf(ctx context.Context, p *problem.Problem, marginals bool) (*Chains, error) {
	return problem.Form(ctx, p, chainsSlot{marginals}, nil, func() (*Chains, error) {
		prepared, err := truncated.Of(ctx, p, marginals)
		if err != nil {
			return nil, err
		}
		model, err := annealing.New(prepared.Expression())
		if err != nil {
			return nil, err
		}
		return &Chains{prepared, model}, nil
	})
}

// WalkOf returns the model that chains walk over where their states are asked for: over the tables of terms of package descent, of which
// no index is summed out. Errors: those of descent.Of and of annealing.New.
func WalkOf(ctx context.Context, p *problem.Problem) (*descent.Prepared, *annealing.Model, error) {
	terms, err := descent.Of(ctx, p, btn.AskSamples, nil)
	if err != nil {
		return nil, nil, err
	}
	model, err := problem.Form(ctx, p, walkSlot{}, nil, func() (*annealing.Model, error) { return annealing.New(terms.Terms()) })
	return terms, model, err
}
