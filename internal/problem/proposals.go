package problem

import (
	"context"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/engine/beliefs"
	"github.com/basetensor/basetensor/internal/engine/cutset"
	"github.com/basetensor/basetensor/internal/engine/importance"
	"github.com/basetensor/basetensor/internal/engine/minibuckets"
	"github.com/basetensor/basetensor/internal/families/truncated"
	"github.com/basetensor/basetensor/internal/families/truncated/sweeps"
	"github.com/basetensor/basetensor/pkg/fault"
)

// proposal is what is drawn from and how it was described.
type proposal struct {
	of   *btn.Sampling
	made *importance.Proposal
}

// Proposal returns what sampled components are drawn from independently, of the network simplified. It keeps that of the last description.
// Errors: those of Truncated and Propose.
func (p *Problem) Proposal(ctx context.Context, along *btn.Sampling, marginals bool) (*importance.Proposal, *truncated.Prepared, error) {
	prepared, err := p.Truncated(ctx, marginals)
	if err != nil {
		return nil, nil, err
	}
	p.mu.Lock()
	known := p.proposals[marginals]
	p.mu.Unlock()
	if known != nil && known.of == along {
		return known.made, prepared, nil
	}

	made, err := Propose(ctx, prepared, along, p.Memory)
	if err != nil {
		return nil, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.proposals == nil {
		p.proposals = map[bool]*proposal{}
	}
	p.proposals[marginals] = &proposal{along, made}
	return made, prepared, nil
}

// Propose makes what is drawn from as described. Errors: internal where the description is for a network of another shape; over budget
// where the tables of mini-buckets, the states of a sweep, messages or those of a slice do not fit the memory, before they are made; those
// of packages minibuckets, beliefs, mps and cutset; the context's.
func Propose(ctx context.Context, prepared *truncated.Prepared, along *btn.Sampling, memory int64) (*importance.Proposal, error) {
	if prepared.Shape() != along.Shape {
		return nil, fault.New(fault.Internal, "the components are drawn for a network of another shape")
	}
	e := prepared.Expression()
	plan, err := minibuckets.NewPlan(e.Hypergraph(), along.Order, along.Entries)
	if err != nil {
		return nil, err
	}
	if plan.Bytes > float64(memory) {
		return nil, fault.New(fault.OverBudget, "mini-buckets need %.3g bytes, %d are allowed", plan.Bytes, memory)
	}
	bound, err := minibuckets.Run(ctx, e, plan, 0)
	if err != nil {
		return nil, err
	}
	left := memory - int64(plan.Bytes)
	if along.Kind == btn.SampledBySlices {
		rest, err := cutset.New(ctx, e, plan.Order, along.Rest, left)
		if err != nil {
			return nil, err
		}
		return importance.NewSlices(e, bound, rest, along.Rest)
	}
	if along.Kind == btn.SampledByBeliefs {
		if bytes := beliefs.Bytes(e); bytes > float64(left) {
			return nil, fault.New(fault.OverBudget, "messages need %.3g bytes, %d are allowed", bytes, left)
		}
		state, err := beliefs.Messages(ctx, e)
		if err != nil {
			return nil, err
		}
		messages, err := beliefs.New(ctx, e, state, along.Follow)
		if err != nil {
			return nil, err
		}
		return importance.NewBeliefs(e, bound, messages, along.Defence)
	}
	var sweep *sweeps.Sampler
	if along.Kind == btn.SampledBySweep {
		if sweep, err = prepared.Sampler(ctx, along.Sweep, along.Bond, left); err != nil {
			return nil, err
		}
	}
	return importance.New(e, bound, sweep, along.Defence)
}
