package plan

// The exact way of networks that neither a tree nor one circuit answers: a search, split into cubes for many workers.

import (
	"context"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/formula"
	"github.com/basetensor/basetensor/internal/logic"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/pkg/fault"
)

// cubes assigns the cubes of a search of what the evidence leaves of the network: nil where method auto looks for an
// estimate instead, for nobody knows what a search takes, and where the network is none for a search.
func (a *assigner) cubes(conditioned *btn.Network) (*btn.Assignment, error) {
	if a.settings.Method == btn.MethodAuto {
		return nil, nil
	}
	settings, net := "cubes along an order", a.net
	if !a.evidence.IsEmpty() {
		settings, net = fmt.Sprintf("cubes along an order given %x", conditioned.Digest()), conditioned
	}
	o := logic.Options{Memory: a.settings.Memory}
	if work := int64(a.settings.Budget / policy.CircuitFlops); work < policy.CircuitLeast {
		o.Work = max(work, 1) // what was too much for a circuit is split
		settings += fmt.Sprintf(" work=%d", o.Work)
	}
	plan, hit, err := a.remember(settings, contractionorder.Hypergraph{}, func(ctx context.Context) (*btn.Plan, error) {
		return cubesPlan(ctx, net, !a.evidence.IsEmpty(), o)
	})
	if code := fault.CodeOf(err); err != nil && (code == fault.OverBudget || code == fault.Unsupported) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	cost := plan.Estimates[0].Cost
	return &btn.Assignment{Plan: plan, Cache: hit, LnLinks: math.Inf(-1), Cost: &cost}, nil
}

// cubesPlan splits the search of a network.
func cubesPlan(ctx context.Context, net *btn.Network, given bool, o logic.Options) (*btn.Plan, error) {
	cubes, err := logic.Split(ctx, net, o, policy.Cubes, policy.CubesAgain)
	if err != nil {
		return nil, err
	}
	split := &btn.Split{
		Order: cubes.Order, Given: given, Functional: cubes.Functional,
		Work: policy.CubeWork, Bytes: min(policy.CircuitBytes, o.Memory/4),
	}
	parts := make([]btn.Part, len(cubes.Literals))
	for i, c := range cubes.Literals {
		split.Cubes = append(split.Cubes, words(c))
		parts[i] = &btn.Cube{Of: split, At: i}
	}
	if len(parts) == 0 {
		return nil, fault.New(fault.OverBudget, "plan: a search has nothing to split")
	}
	return exactOf(btn.Cost{Flops: policy.CircuitFlops * policy.CubeWork * float64(len(parts)), Bytes: float64(o.Memory)}, parts...), nil
}

// words are literals as parts have them.
func words(c []formula.Literal) []int32 {
	out := make([]int32, len(c))
	for i, l := range c {
		out[i] = int32(l)
	}
	return out
}
