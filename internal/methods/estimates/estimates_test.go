package estimates

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/sampled"
	"github.com/basetensor/basetensor/internal/methods/truncated/ladder"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestShares: what a trial of contractions and a pilot of draws say decides the budget of the draws.
func TestShares(t *testing.T) {
	const few, many = policy.Resolved / 2, policy.Unresolved * 2
	for name, c := range map[string]struct {
		trial  ladder.Verdict
		spread float64
		modes  int
		want   float64
	}{
		"no trial":                           {ladder.Verdict{}, 1, 0, 0.5},
		"resolved":                           {ladder.Verdict{Tried: true, Discarded: few, Unresolved: policy.Unresolved}, 1, 0, leastShare},
		"resolved, but for a hidden mode":    {ladder.Verdict{Tried: true, Discarded: few, Unresolved: policy.Unresolved}, 1, 1, 0.5},
		"not resolved, even weights":         {ladder.Verdict{Tried: true, Discarded: many, Unresolved: policy.Unresolved}, 1, 0, 1 - leastShare},
		"not resolved, uneven weights":       {ladder.Verdict{Tried: true, Discarded: many, Unresolved: policy.Unresolved}, 100, 0, 0.5},
		"cut short, so that nobody can tell": {ladder.Verdict{Tried: true, Discarded: many, Unresolved: math.Inf(1)}, 1, 0, 0.5},
	} {
		draws := &sampled.Annealing{Base: sampled.Base{Spread: c.spread, Modes: c.modes}}
		if got := shareOfDraws(t.Context(), c.trial, draws); got != c.want {
			t.Errorf("%s: %v of the budget, want %v", name, got, c.want)
		}
	}
}

// TestMerged: estimates of both sequences keep their order, whatever has taken less comes first.
func TestMerged(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 100 {
		var of [2][]btn.Estimate
		for k := range of {
			for range rng.IntN(6) {
				of[k] = append(of[k], btn.Estimate{Slices: int64(k), Cost: query.Cost{Flops: 1 + rng.Float64()}})
			}
		}
		var at [2]int
		var spent [2]float64
		all := mergeByCost(of[0], of[1])
		for _, e := range all {
			k := e.Slices
			if e.Cost.Flops != of[k][at[k]].Cost.Flops {
				t.Fatal("another sequence")
			}
			spent[k] += e.Cost.Flops
			other := math.Inf(1)
			if o := 1 - k; at[o] < len(of[o]) {
				other = spent[o] + of[o][at[o]].Cost.Flops
			}
			if spent[k] > other {
				t.Fatal("the dearer one comes first")
			}
			at[k]++
		}
		if len(all) != len(of[0])+len(of[1]) {
			t.Fatal("some are lost")
		}
	}
}
