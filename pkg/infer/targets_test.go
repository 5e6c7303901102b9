package infer

import (
	"context"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestTargetsAreRowsOfTheMarginals: by every method a query with targets has those rows of all
// marginals that it names, in its sequence and to the last bit, and everything else as without.
func TestTargetsAreRowsOfTheMarginals(t *testing.T) {
	compared := map[query.Method]int{}
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 71))
		m := modeltest.Small(rng, modeltest.SmallOptions{
			Variables: 3 + rng.IntN(4), Factors: 2 + rng.IntN(6), MinDomain: 1, MaxDomain: 3,
			MaxArity: 3, MaxStates: 1 << 9, Zeros: 0.1,
		})
		asked := query.Query{Evidence: modeltest.Evidence(rng, m), Marginals: true}
		targets := rng.Perm(len(m.Domains))[:1+rng.IntN(3)]
		cut := query.Query{Evidence: asked.Evidence, Targets: targets, Marginals: rng.IntN(2) == 0}
		s := []query.Settings{
			{Method: query.MethodExact}, {Method: query.MethodExact, Memory: 8 << 10},
			{Method: query.MethodTruncated, Bond: 2}, {Method: query.MethodRegions},
			{Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Components: 2},
		}[rng.IntN(5)]
		results, err := Run(context.Background(),
			Request{Job: "t", Model: m, Queries: []query.Query{asked, cut}, Settings: s})

		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		all, some := results[0], results[1]
		if all.Marginals == nil {
			if some.Marginals != nil && all.Status == query.StatusOK && all.Zero {
				t.Errorf("seed %d, %+v: marginals of Z = 0: %+v", seed, s, some)
			}
			continue
		}
		if *all.LogZ != *some.LogZ || all.Exact != some.Exact || len(some.Marginals) != len(targets) {
			t.Fatalf("seed %d, %+v: %+v, with all marginals %+v", seed, s, some, all)
		}
		for i, v := range targets {
			if !reflect.DeepEqual(some.Marginals[i], all.Marginals[v]) {
				t.Errorf("seed %d, %+v: target %d has %v, without targets %v", seed, s, v, some.Marginals[i], all.Marginals[v])
			}
		}
		compared[all.Method]++
	}
	for _, method := range []query.Method{query.MethodExact, query.MethodTruncated, query.MethodSymmetryCP} {
		if compared[method] < 5 {
			t.Errorf("%d answers by %s: %v", compared[method], method, compared)
		}
	}
}
