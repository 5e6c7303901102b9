package regions

// Slices outside (Lemma 5): which variables to fix, one slice per combination of their values.

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// influential returns variables in the sequence of how far clamping them moves the Bethe value,
//
//	|ln Σ_a exp(ln Z_BP(x_v = a)) − ln Z_BP|,
//
// which is 0 where belief propagation is right about them. Variables that share a factor with one before them
// are left out. Candidates are those whose beliefs are least certain, weighted by their degree. states are
// what belief propagation came to. Clamping takes policy.ClampShare of a budget in flops, or one candidate: those that
// are not clamped follow.
func influential(
	ctx context.Context, conditioned *btn.Network, e *sumproduct.Expression, states []*bp.State, budget float64,
) ([]int, error) {
	state := states[0]
	degree := make([]int, len(e.Dims))
	near := make([]map[int]bool, len(e.Dims))
	for _, t := range e.Tables {
		for _, i := range t.Scope {
			if near[i] == nil {
				near[i] = map[int]bool{}
			}
			for _, j := range t.Scope {
				near[i][j] = true
			}
			if len(t.Scope) > 1 {
				degree[i]++
			}
		}
	}

	type scored struct {
		variable int
		score    float64
	}
	var all []scored
	seen := make([]bool, len(e.Dims))
	for v, i := range e.Variables {
		if e.Dims[i] < 2 || seen[i] || degree[i] == 0 {
			continue
		}
		seen[i] = true
		all = append(all, scored{v, float64(degree[i]) * (1 - slices.Max(state.Belief(i)))})
	}

	best := func(a, b scored) int {
		return cmp.Or(-cmp.Compare(a.score, b.score), cmp.Compare(a.variable, b.variable))
	}
	slices.SortFunc(all, best)

	// Spread over the model: candidates next to one another say the same.
	var candidates []scored
	taken := make([]bool, len(e.Dims))
	for _, c := range all {
		i := e.Variables[c.variable]
		if len(candidates) == policy.ClampCandidates || taken[i] {
			continue
		}
		for j := range near[i] {
			taken[j] = true
		}
		candidates = append(candidates, c)
	}

	var messages []float64
	if len(states) == 1 && state.Converged {
		messages = state.Messages()
	}
	// A candidate of two values takes as long as clampUpdates lets it, unless messages are near.
	each := float64(2*clampUpdates(e)) * policy.UpdateFlops
	if messages == nil {
		each *= policy.ClampStarts
	}
	some := max(1, int(min(policy.ClampShare*budget/each, policy.ClampCandidates)))
	clamped := candidates[:min(some, len(candidates))]
	for k := range clamped {
		moved, err := clamp(ctx, conditioned, clamped[k].variable, state.LnZ(), e, messages)
		if err != nil {
			return nil, err
		}
		clamped[k].score = moved
	}

	slices.SortFunc(clamped, best)
	var out []int
	for _, c := range candidates {
		out = append(out, c.variable)
	}
	return out, nil
}

// clampUpdates bounds the updates of a run under a clamped variable.
func clampUpdates(e *sumproduct.Expression) int64 {
	return int64(policy.ClampUpdates * (len(e.Tables) + 1))
}

// clamp returns how far fixing a variable to each of its values moves the Bethe value. Where belief
// propagation on e came to one state from all its starts it begins with the messages of that; nil: from
// clampStarts cold ones.
func clamp(
	ctx context.Context, conditioned *btn.Network, variable int, lnZ float64, from *sumproduct.Expression,
	messages []float64,
) (float64, error) {
	top, terms := math.Inf(-1), []float64{}
	for a := range conditioned.Variables[variable].Domain {
		net, err := conditioned.Condition(factorgraph.Observe(map[int]int{variable: a}))
		if err != nil {
			return 0, err
		}
		e, err := expressionOf(ctx, net)
		if err != nil {
			return 0, err
		}
		if e.Scale.IsZero() {
			continue
		}
		o, starts := bp.Options{Updates: clampUpdates(e)}, policy.ClampStarts
		if messages != nil {
			starts = 1
			if o.Warm, err = bp.Carry(from, e, messages); err != nil {
				return 0, err
			}
		}

		states, err := bp.FixedPoints(ctx, e, starts, o)
		if err != nil {
			return 0, err
		}
		s := states[0]
		if z := s.LnZ(); !math.IsNaN(z) && !math.IsInf(z, 0) {
			terms = append(terms, z)
			top = max(top, z)
		}
	}

	sum := 0.0
	for _, z := range terms {
		sum += math.Exp(z - top)
	}
	return math.Abs(top + math.Log(sum) - lnZ), nil
}
