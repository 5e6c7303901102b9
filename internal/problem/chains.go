package problem

import (
	"context"

	"github.com/basetensor/basetensor/internal/engine/annealing"
	"github.com/basetensor/basetensor/internal/truncated"
)

// Chains are the simplified network and the model that chains walk over.
type Chains struct {
	Prepared *truncated.Prepared
	Model    *annealing.Model
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
