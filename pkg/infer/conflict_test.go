package infer

import (
	"context"
	"math/bits"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestConflictsAreSmallest: of random models with many zeros and impossible evidence the subset that is named conflicts, nothing can be
// spared, and no subset is smaller, by enumeration of all subsets.
func TestConflictsAreSmallest(t *testing.T) {
	found, several, likelihoods := 0, 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 17))
		m := modeltest.Small(rng, modeltest.SmallOptions{
			Variables: 4 + rng.IntN(3), Factors: 4 + rng.IntN(5), MinDomain: 2, MaxDomain: 2,
			MaxArity: 3, MaxStates: 1 << 8, Zeros: 0.12,
		})
		var hard []factorgraph.Observation
		var soft []factorgraph.Likelihood
		for v := range m.Domains {
			switch rng.IntN(4) {
			case 0, 1:
				hard = append(hard, factorgraph.Observation{Var: v, Value: rng.IntN(2)})
			case 2:
				soft = append(soft, factorgraph.Likelihood{Var: v, Weights: [][]float64{{0, 1}, {0.5, 2}, {1, 0}}[rng.IntN(3)]})
			}
		}
		ev, err := factorgraph.NewEvidence(hard, soft)
		if err != nil {
			t.Fatal(err)
		}
		asked := []query.Query{{Evidence: ev, Conflict: true}, {Evidence: ev}}
		results, err := Run(context.Background(), Request{Job: "t", Model: m, Queries: asked})
		if err != nil {
			t.Fatal(err)
		}
		r := results[0]
		if !r.Zero || ev.IsEmpty() {
			if r.Conflict != nil {
				t.Errorf("seed %d: a conflict of possible evidence: %+v", seed, r.Conflict)
			}
			continue
		}
		if r.Conflict == nil || results[1].Conflict != nil {
			t.Fatalf("seed %d: %+v", seed, r)
		}
		found++
		n := len(hard) + len(soft)
		of := func(set uint) (e factorgraph.Evidence) {
			for i := range n {
				switch {
				case set>>i&1 == 0:
				case i < len(hard):
					e.Hard = append(e.Hard, hard[i])
				default:
					e.Soft = append(e.Soft, soft[i-len(hard)])
				}
			}
			return e
		}
		fewest := n
		for set := range uint(1) << n {
			if bits.OnesCount(set) < fewest && oracle.Z(m, of(set)).Sign() == 0 {
				fewest = bits.OnesCount(set)
			}
		}
		set := uint(0)
		for _, o := range r.Conflict.Observations {
			at := slices.IndexFunc(hard, func(h factorgraph.Observation) bool {
				return o.Value != nil && h == factorgraph.Observation{Var: o.Variable, Value: *o.Value}
			})
			if o.Value == nil {
				at = len(hard) + slices.IndexFunc(soft, func(l factorgraph.Likelihood) bool { return l.Var == o.Variable })
				likelihoods++
			}
			if at < 0 {
				t.Fatalf("seed %d: %+v is no observation", seed, o)
			}
			set |= 1 << at
		}
		if oracle.Z(m, of(set)).Sign() != 0 || bits.OnesCount(set) != fewest || !r.Conflict.Smallest {
			t.Errorf("seed %d: %+v of %+v, the smallest have %d", seed, r.Conflict, ev, fewest)
		}
		if fewest > 1 {
			several++
		}
	}
	if found < 50 || several < 20 || likelihoods < 5 {
		t.Errorf("%d conflicts, %d of several observations, %d likelihoods", found, several, likelihoods)
	}
}
