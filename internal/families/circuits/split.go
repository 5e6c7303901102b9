package circuits

// Proposals: a search, split into cubes for many workers, where neither a tree nor one circuit answers.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/logic"
	"github.com/basetensor/basetensor/internal/logic/compiler"
	"github.com/basetensor/basetensor/internal/logic/formula"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/proposal"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// errNoCubes says that a network was not split yet. It is not remembered.
var errNoCubes = errors.New("plan: the network was not split yet")

// knownCubes assigns the cubes of a model whose search was split without evidence before: their circuits serve every query. nil where
// it was not, and where cubes are nil.
func knownCubes(j *proposal.Job) (*btn.Assignment, error) {
	settings, _ := splitting(j)
	return split(j, settings, func(context.Context) (*btn.Plan, error) { return nil, errNoCubes })
}

// cubes assigns the cubes of a search of what the evidence leaves of the network: nil where method auto looks for an
// estimate instead, for nobody knows what a search takes, and where the network is none for a search.
func cubes(j *proposal.Job) (*btn.Assignment, error) {
	settings, o := splitting(j)
	net, given := j.Net, !j.Evidence.IsEmpty()
	if given {
		net, settings = j.Conditioned, fmt.Sprintf("%s given %x", settings, j.Conditioned.Digest())
	}
	return split(j, settings, func(ctx context.Context) (*btn.Plan, error) { return cubesPlan(ctx, net, given, o) })
}

// oneCube assigns the search of what the evidence leaves of the network as one cube. It makes that search to know whether it ends; a
// contraction in the same process takes the number that it found. The assignment is nil if the search does not end within so many steps
// of work, and if the query is not for Z alone or another one may follow. Its price is that of all these steps.
func oneCube(j *proposal.Job, work int64) (*btn.Assignment, error) {
	if !once(j) {
		return nil, nil
	}
	given := !j.Evidence.IsEmpty()
	cube := &Cube{Of: &Split{Cubes: [][]int32{{}}, Given: given, Counted: true, Work: work, Bytes: policy.CircuitBytes}}
	_, err := cube.count(j.Ctx, j.Problem())
	if code := fault.CodeOf(err); err != nil && (code == fault.OverBudget || code == fault.Unsupported) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	j.Missed()
	cost := query.Cost{Flops: policy.CircuitFlops * float64(work), Bytes: float64(j.Settings.Memory)}
	return proposal.Priced(proposal.Exact(cost, cube), btn.CacheMiss), nil
}

// once reports whether a query is for Z alone, and method exact searches for it, and no other query of the model may follow.
func once(j *proposal.Job) bool {
	return j.Once && j.Settings.Method == query.MethodExact && !proposal.Recurs(j.Ctx)
}

// splitting are the settings under which splits are remembered, and the options of a split.
func splitting(j *proposal.Job) (string, logic.Options) {
	settings := "cubes by their work"
	o := logic.Options{Memory: j.Settings.Memory}
	if work := int64(j.Settings.Budget / policy.CircuitFlops); work < policy.CircuitLeast {
		o.Work = max(work, 1) // what was too much for a circuit is split
		settings += fmt.Sprintf(" work=%d", o.Work)
	}
	return settings, o
}

// split assigns a split that is remembered, or computed.
func split(j *proposal.Job, settings string, compute func(context.Context) (*btn.Plan, error)) (*btn.Assignment, error) {
	if j.Settings.Method == query.MethodAuto {
		return nil, nil
	}
	plan, hit, err := j.Remember(settings, contractionorder.Hypergraph{}, compute)
	if code := fault.CodeOf(err); err != nil && (errors.Is(err, errNoCubes) || code == fault.OverBudget || code == fault.Unsupported) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if hit != btn.CacheHit && j.Once && !proposal.Recurs(j.Ctx) {
		plan = withoutCircuits(plan)
	}
	return proposal.Priced(plan, hit), nil
}

// withoutCircuits is the plan of a split for a query for Z alone that no other may follow: circuits take more than half the time.
func withoutCircuits(plan *btn.Plan) *btn.Plan {
	out, e := *plan, plan.Estimates[0]
	split := *e.Parts[0].(*Cube).Of
	split.Counted = true
	e.Parts = slices.Clone(e.Parts)
	for i := range e.Parts {
		e.Parts[i] = &Cube{Of: &split, At: i}
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
	split := &Split{
		Order: cubes.Order, Given: given, Functional: cubes.Functional,
		Work: policy.CubesWork / int64(len(parts)), Bytes: min(policy.CircuitBytes, o.Memory/4),
	}
	for i, c := range cubes.Literals {
		split.Cubes = append(split.Cubes, words(c))
		parts[i] = &Cube{Of: split, At: i}
	}
	steps := min(policy.CubesMargin*cubes.Steps, policy.CubesWork)
	return proposal.Exact(query.Cost{Flops: policy.CircuitFlops * steps, Bytes: float64(o.Memory)}, parts...), nil
}

// words are literals as parts have them.
func words(c []formula.Literal) []int32 {
	out := make([]int32, len(c))
	for i, l := range c {
		out[i] = int32(l)
	}
	return out
}

// Finding implements proposal.Finder.
func (p *Cube) Finding(_ *proposal.Job, parts []btn.Part, ask btn.Ask) ([]btn.Part, error) {
	if !answers(ask, p.Of.Functional) {
		return nil, nil
	}
	list := make([]btn.Part, len(parts))
	for i := range parts {
		list[i] = &Cube{Of: p.Of, At: i, Ask: ask}
	}
	return list, nil
}
