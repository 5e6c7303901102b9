package plan

// The exact way of networks that neither a tree nor one circuit answers: a search, split into cubes for many workers.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/compiler"
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/families/circuits"
	"github.com/basetensor/basetensor/internal/formula"
	"github.com/basetensor/basetensor/internal/logic"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/pkg/fault"
)

// errNoCubes says that a network was not split yet. It is not remembered.
var errNoCubes = errors.New("plan: the network was not split yet")

// knownCubes assigns the cubes of a model whose search was split without evidence before: their circuits serve every query. nil where
// it was not, and where cubes are nil.
func (a *assigner) knownCubes() (*btn.Assignment, error) {
	settings, _ := a.splitting()
	return a.split(settings, func(context.Context) (*btn.Plan, error) { return nil, errNoCubes })
}

// cubes assigns the cubes of a search of what the evidence leaves of the network: nil where method auto looks for an
// estimate instead, for nobody knows what a search takes, and where the network is none for a search.
func (a *assigner) cubes(conditioned *btn.Network) (*btn.Assignment, error) {
	settings, o := a.splitting()
	net, given := a.net, !a.evidence.IsEmpty()
	if given {
		net, settings = conditioned, fmt.Sprintf("%s given %x", settings, conditioned.Digest())
	}
	return a.split(settings, func(ctx context.Context) (*btn.Plan, error) { return cubesPlan(ctx, net, given, o) })
}

// splitting are the settings under which splits are remembered, and the options of a split.
func (a *assigner) splitting() (string, logic.Options) {
	settings := "cubes by their work"
	o := logic.Options{Memory: a.settings.Memory}
	if work := int64(a.settings.Budget / policy.CircuitFlops); work < policy.CircuitLeast {
		o.Work = max(work, 1) // what was too much for a circuit is split
		settings += fmt.Sprintf(" work=%d", o.Work)
	}
	return settings, o
}

// split assigns a split that is remembered, or computed.
func (a *assigner) split(settings string, compute func(context.Context) (*btn.Plan, error)) (*btn.Assignment, error) {
	if a.settings.Method == btn.MethodAuto {
		return nil, nil
	}
	plan, hit, err := a.remember(settings, contractionorder.Hypergraph{}, compute)
	if code := fault.CodeOf(err); err != nil && (errors.Is(err, errNoCubes) || code == fault.OverBudget || code == fault.Unsupported) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if hit != btn.CacheHit && a.once && !recurring(a.ctx) {
		plan = withoutCircuits(plan)
	}
	cost := plan.Estimates[0].Cost
	return &btn.Assignment{Plan: plan, Cache: hit, LnLinks: math.Inf(-1), Cost: &cost}, nil
}

// withoutCircuits is the plan of a split for a query for Z alone that no other may follow: circuits take more than half the time.
func withoutCircuits(plan *btn.Plan) *btn.Plan {
	out, e := *plan, plan.Estimates[0]
	split := *e.Parts[0].(*circuits.Cube).Of
	split.Counted = true
	e.Parts = slices.Clone(e.Parts)
	for i := range e.Parts {
		e.Parts[i] = &circuits.Cube{Of: &split, At: i}
	}
	out.Estimates = []btn.Estimate{e}
	return &out
}

// cubesPlan splits the search of a network.
func cubesPlan(ctx context.Context, net *btn.Network, given bool, o logic.Options) (*btn.Plan, error) {
	cubes, err := logic.Split(ctx, net, o, compiler.SplitOptions{
		Most: policy.Cubes, Largest: policy.CubeLargest, Again: policy.CubesAgain,
	})
	if err != nil {
		return nil, err
	}
	parts := make([]btn.Part, len(cubes.Literals))
	if len(parts) == 0 {
		return nil, fault.New(fault.OverBudget, "plan: a search has nothing to split")
	}
	split := &circuits.Split{
		Order: cubes.Order, Given: given, Functional: cubes.Functional,
		Work: policy.CubesWork / int64(len(parts)), Bytes: min(policy.CircuitBytes, o.Memory/4),
	}
	for i, c := range cubes.Literals {
		split.Cubes = append(split.Cubes, words(c))
		parts[i] = &circuits.Cube{Of: split, At: i}
	}
	steps := min(policy.CubesMargin*cubes.Steps, policy.CubesWork)
	return exactOf(btn.Cost{Flops: policy.CircuitFlops * steps, Bytes: float64(o.Memory)}, parts...), nil
}

// words are literals as parts have them.
func words(c []formula.Literal) []int32 {
	out := make([]int32, len(c))
	for i, l := range c {
		out[i] = int32(l)
	}
	return out
}
