package infer

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// P(event | given) by enumeration against the ratio of two queries, the event asked before and after the condition.
func TestConditionalProbabilitiesByRatio(t *testing.T) {
	for seed := uint64(0); seed < 30; seed++ {
		rng := rand.New(rand.NewPCG(seed, 5))
		m := modeltest.Small(rng,
			modeltest.SmallOptions{Variables: 6, Factors: 7, Zeros: 0.1 * float64(seed%3)})
		given := factorgraph.Observe(map[int]int{1: rng.IntN(m.Domains[1])})
		v := 2 + rng.IntN(4)
		event, err := factorgraph.NewEvidence(slices.Concat(given.Hard,
			[]factorgraph.Observation{{Var: v, Value: rng.IntN(m.Domains[v])}}), nil)
		if err != nil {
			t.Fatal(err)
		}
		queries := []query.Query{{Evidence: event, Over: 2}, {Evidence: given},
			{Evidence: event, Over: 2}}
		results, err := Run(
			context.Background(),
			Request{Job: "t", Model: m, Queries: queries,
				Settings: query.Settings{Method: query.MethodExact}})

		if err != nil {
			t.Fatal(err)
		}
		zGiven, zBoth := oracle.Z(m, given), oracle.Z(m, event)
		for _, q := range []int{0, 2} {
			r := results[q]
			switch {
			case zGiven.Sign() == 0:
				if r.Ratio != nil ||
					!strings.Contains(strings.Join(r.Warnings, ";"), "Z of query 1") {
					t.Errorf("seed %d: ratio %v over 0, warnings %q", seed, r.Ratio, r.Warnings)
				}
			case zBoth.Sign() == 0:
				if r.Ratio == nil || r.Ratio.Ln != nil || !r.Zero {
					t.Errorf("seed %d: ratio %v of 0", seed, r.Ratio)
				}
			case r.Ratio == nil ||
				math.Abs(*r.Ratio.Ln-(oracle.Ln(zBoth)-oracle.Ln(zGiven))) > 1e-12:
				t.Errorf("seed %d: ratio %v, want %v",
					seed, r.Ratio, oracle.Ln(zBoth)-oracle.Ln(zGiven))
			}
			if r.Run == nil || results[1].Ratio != nil {
				t.Errorf("seed %d: run %v, ratio of the query asked over nothing %v",
					seed, r.Run, results[1].Ratio)
			}
		}
	}
}

func TestRatiosOverNothing(t *testing.T) {
	for over, want := range map[int]string{
		-1: "over: -1 names no query", 3: "over: 3 names no query: 0, or 1 + the position of " +
			"one of 2",
		2: "over: 2 is the query itself",
	} {
		_, err := Run(context.Background(),
			Request{Job: "t", Model: ising(3), Queries: []query.Query{{}, {Over: over}}})

		if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), want) {
			t.Errorf("over %d: %v, want %q", over, err, want)
		}
	}
}
