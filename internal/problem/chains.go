package problem

import (
	"context"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/descent"
	"github.com/basetensor/basetensor/internal/engine/annealing"
	"github.com/basetensor/basetensor/internal/families/truncated"
)

// Chains are the simplified network and the model that chains walk over.
type Chains struct {
	Prepared *truncated.Prepared
	Model    *annealing.Model
}

// Path is how annealed components are carried.
func Path(along *btn.Sampling) annealing.Path {
	path := annealing.Path{Rungs: along.Rungs, Product: along.Product, Knots: along.Knots, Seed: along.Seed, Modes: along.Modes}
	switch {
	case along.Metropolis:
		path.Step = annealing.Metropolis
	case along.Forests:
		path.Step = annealing.Forests
	}
	return path
}

// Chains returns what sampled components are drawn from. Errors: those of Truncated and of annealing.New.
func (p *Problem) Chains(ctx context.Context, marginals bool) (*Chains, error) {
	p.mu.Lock()
	known := p.chains[marginals]
	p.mu.Unlock()
	if known != nil {
		return known, nil
	}

	prepared, err := p.Truncated(ctx, marginals)
	if err != nil {
		return nil, err
	}
	model, err := annealing.New(prepared.Expression())
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.chains == nil {
		p.chains = map[bool]*Chains{}
	}
	p.chains[marginals] = &Chains{prepared, model}
	return p.chains[marginals], nil
}

// Walk returns what chains walk over where their states are asked for: the model over the tables of terms of Descent, of which no index is
// summed out. Errors: those of Descent and of annealing.New.
func (p *Problem) Walk(ctx context.Context) (*descent.Prepared, *annealing.Model, error) {
	terms, err := p.Descent(ctx, btn.AskSamples, nil)
	if err != nil {
		return nil, nil, err
	}
	p.mu.Lock()
	known := p.walk
	p.mu.Unlock()
	if known != nil {
		return terms, known, nil
	}
	model, err := annealing.New(terms.Terms())
	if err != nil {
		return nil, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.walk = model
	return terms, model, nil
}
