package infer

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// pairs is P(t, c | ev) by enumeration, nil where the evidence is impossible.
func pairs(m *factorgraph.Model, ev factorgraph.Evidence, target, candidate int) [][]float64 {
	z := oracle.Z(m, ev)
	if z.Sign() == 0 {
		return nil
	}
	p := make([][]float64, m.Domains[target])
	for t := range p {
		for c := range m.Domains[candidate] {
			both, err := factorgraph.NewEvidence(append(slices.Clone(ev.Hard),
				factorgraph.Observation{Var: target, Value: t}, factorgraph.Observation{Var: candidate, Value: c}), ev.Soft)
			if err != nil {
				panic(err)
			}
			n := oracle.Z(m, both)
			x, _ := n.Quo(n, z).Float64()
			p[t] = append(p[t], x)
		}
	}
	return p
}

// uncertainty is the entropy of weights over their sum, times their sum.
func uncertainty(p []float64) (h float64) {
	total := 0.0
	for _, x := range p {
		total += x
	}
	for _, x := range p {
		if x > 0 {
			h -= x * math.Log(x/total)
		}
	}
	return h
}

// worth is the utility of the best action under weights of the target's values.
func worth(utility [][]float64, p []float64) float64 {
	most := math.Inf(-1)
	for _, row := range utility {
		sum := 0.0
		for t := range p {
			sum += row[t] * p[t]
		}
		most = math.Max(most, sum)
	}
	return most
}

// TestInformationEqualsEnumeration: entropies, information and gains of random models with evidence of both kinds, zeros and slices.
func TestInformationEqualsEnumeration(t *testing.T) {
	informed, decided := 0, 0
	for seed := range uint64(150) {
		rng := rand.New(rand.NewPCG(seed, 91))
		m := modeltest.Small(rng, modeltest.SmallOptions{
			Variables: 3 + rng.IntN(4), Factors: 3 + rng.IntN(6), MinDomain: 1, MaxDomain: 3,
			MaxArity: 3, MaxStates: 1 << 9, Zeros: 0.1,
		})
		ev := modeltest.Evidence(rng, m)
		target := rng.IntN(len(m.Domains))
		ev.Hard = slices.DeleteFunc(ev.Hard, func(o factorgraph.Observation) bool { return o.Var == target })
		ask := &query.Ask{Target: target}
		if rng.IntN(2) == 0 {
			for range 1 + rng.IntN(3) {
				row := make([]float64, m.Domains[target])
				for x := range row {
					row[x] = 10 * rng.NormFloat64()
				}
				ask.Utility = append(ask.Utility, row)
			}
		}
		s := []query.Settings{{Method: query.MethodExact}, {Method: query.MethodExact, Memory: 8 << 10}, {}}[rng.IntN(3)]
		asked := []query.Query{{Marginals: true}, {Evidence: ev, Information: ask}, {Evidence: ev}, {Information: &query.Ask{Target: target}}}
		results, err := Run(context.Background(), Request{Job: "t", Model: m, Queries: asked, Settings: s})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if len(results) != len(asked) || results[0].Information != nil || results[2].Information != nil {
			t.Fatalf("seed %d: %d results of %d queries: %+v", seed, len(results), len(asked), results)
		}
		r := results[1]
		if r.Zero {
			if r.Information != nil {
				t.Errorf("seed %d: information of impossible evidence: %+v", seed, r.Information)
			}
			continue
		}
		info := r.Information
		if info == nil || info.Exact != r.Exact || info.Target != target || results[3].Information == nil && !results[3].Zero {
			t.Fatalf("seed %d: %+v", seed, r)
		}
		last := math.Inf(1)
		for _, o := range info.Candidates {
			p := pairs(m, ev, target, o.Variable)
			ofTarget := make([]float64, len(p))
			after, then := 0.0, 0.0
			for c := range p[0] {
				column := make([]float64, len(p))
				for x := range p {
					column[x] = p[x][c]
					ofTarget[x] += p[x][c]
				}
				after += uncertainty(column)
				then += worth(ask.Utility, column)
			}
			near := func(what string, got, want float64) {
				if !(math.Abs(got-want) <= 1e-9) {
					t.Errorf("seed %d, candidate %d: %s %v, enumeration %v", seed, o.Variable, what, got, want)
				}
			}
			near("entropy", info.Entropy, uncertainty(ofTarget))
			near("expected entropy", o.ExpectedEntropy, after)
			near("information", o.MutualInfo, uncertainty(ofTarget)-after)
			rank := o.MutualInfo
			if ask.Utility != nil {
				now := worth(ask.Utility, ofTarget)
				near("expected utility", *info.ExpectedUtility, now)
				near("utility of the action", worth(ask.Utility[*info.Action:*info.Action+1], ofTarget), now)
				near("gain", *o.UtilityGain, then-now)
				rank = *o.UtilityGain
				decided++
			} else if o.UtilityGain != nil || info.ExpectedUtility != nil {
				t.Errorf("seed %d: a gain without a utility", seed)
			}
			if rank > last {
				t.Errorf("seed %d: %v after %v", seed, rank, last)
			}
			last = rank
			informed++
		}
		if got, want := len(info.Candidates), len(m.Domains)-1-len(ev.Hard); got != want {
			t.Errorf("seed %d: %d candidates, want %d", seed, got, want)
		}
	}
	if informed < 100 || decided < 50 {
		t.Errorf("only %d candidates, %d with a utility", informed, decided)
	}
}
