package sampled

// Independent draws, and what they are drawn from.

import (
	"context"

	"github.com/basetensor/basetensor/internal/engine/beliefs"
	"github.com/basetensor/basetensor/internal/engine/cutset"
	"github.com/basetensor/basetensor/internal/engine/importance"
	"github.com/basetensor/basetensor/internal/engine/minibuckets"
	"github.com/basetensor/basetensor/internal/families/truncated"
	"github.com/basetensor/basetensor/internal/families/truncated/sweeps"
	"github.com/basetensor/basetensor/internal/problem"
	"github.com/basetensor/basetensor/pkg/fault"
)

// proposalOf returns the proposal that components of a problem are drawn from independently, and the network simplified. The problem keeps
// the proposal of the last description. Errors: those of truncated.Of and Propose.
func proposalOf(
	ctx context.Context, p *problem.Problem, along *Sampling, marginals bool,
) (*importance.Proposal, *truncated.Prepared, error) {
	prepared, err := truncated.Of(ctx, p, marginals)
	if err != nil {
		return nil, nil, err
	}
	made, err := problem.Form(ctx, p, proposalSlot{marginals}, along, func() (*importance.Proposal, error) {
		return Propose(ctx, prepared, along, p.Memory)
	})
	return made, prepared, err
}

// Propose makes what is drawn from as described. Errors: internal where the description is for a network of another shape; over budget
// where the tables of mini-buckets, the states of a sweep, messages or those of a slice do not fit the memory, before they are made; those
// of packages minibuckets, beliefs, mps and cutset; the context's.
func Propose(ctx context.Context, prepared *truncated.Prepared, along *Sampling, memory int64) (*importance.Proposal, error) {
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
	if along.Kind == BySlices {
		rest, err := cutset.New(ctx, e, plan.Order, along.Rest, left)
		if err != nil {
			return nil, err
		}
		return importance.NewSlices(e, bound, rest, along.Rest)
	}
	if along.Kind == ByBeliefs {
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
	if along.Kind == BySweep {
		if sweep, err = prepared.Sampler(ctx, along.Sweep, along.Bond, left); err != nil {
			return nil, err
		}
	}
	return importance.New(e, bound, sweep, along.Defence)
}
