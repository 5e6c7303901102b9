package plan_test

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"sync"
	"testing"

	"github.com/basetensor/basetensor/internal/answer/plan"
	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// wideNetwork is a Bayesian network of n variables with three parents each, drawn from all before them: too wide for an exact answer
// about all variables from n = 200 on. Its numbers have few digits.
func wideNetwork(n int) *factorgraph.Model {
	rng := rand.New(rand.NewPCG(uint64(n), 7))
	m := &factorgraph.Model{Bayes: true}
	for v := range n {
		m.Domains = append(m.Domains, 2)
		scope, shape, rows := []int{}, []int{}, 1
		for _, parent := range rng.Perm(v)[:min(v, 3)] {
			scope, shape, rows = append(scope, parent), append(shape, 2), 2*rows
		}
		var data []float64
		for range rows {
			p := math.Round((0.1+0.8*rng.Float64())*1e6) / 1e6
			data = append(data, p, math.Round((1-p)*1e6)/1e6-1e-6)
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: append(scope, v), Table: &tensor.Dense{Shape: append(shape, 2), Data: data}})
	}
	return m
}

// memory is a memo in memory.
type memory struct {
	mu    sync.Mutex
	plans map[string]*btn.Plan
}

func (m *memory) Do(ctx context.Context, key string, compute func(context.Context) (*btn.Plan, error)) (*btn.Plan, bool, error) {
	m.mu.Lock()
	known := m.plans[key]
	m.mu.Unlock()
	if known != nil {
		return known, true, nil
	}
	made, err := compute(ctx)
	if err == nil {
		m.mu.Lock()
		m.plans[key] = made
		m.mu.Unlock()
	}
	return made, false, err
}

// TestQuestionsArePlannedOnTheirPart: of a network too wide for exact answers, a question about variables with few ancestors has an exact
// plan, whose price is that of its part. Two sets of observations that leave the same part have one plan. A small network stays whole.
func TestQuestionsArePlannedOnTheirPart(t *testing.T) {
	net, err := stage.Reparameterise(t.Context(), wideNetwork(200), query.Settings{})
	if err != nil || !net.Directed {
		t.Fatalf("%v, directed %t", err, net.Directed)
	}
	queries := []query.Query{
		{Targets: []int{5}, Marginals: true},
		{Evidence: factorgraph.Observe(map[int]int{2: 1}), Targets: []int{5}, Marginals: true},
		{Evidence: factorgraph.Observe(map[int]int{5: 1, 0: 0})},
		{Joint: []int{4, 1}},
		{Map: []int{3}},
	}
	assignments, err := plan.Assign(t.Context(), net, stage.Demands(net, queries), query.Settings{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	for k, a := range assignments {
		if a.Error != nil || !a.Relevant || !a.Plan.Exact() || a.Cost == nil || a.Cost.Flops > 1e4 {
			t.Errorf("query %d: %+v", k, a)
		}
	}
	if assignments[0].Plan != assignments[1].Plan {
		t.Error("another evidence on the same part has another plan")
	}
	if got := assignments[3].Want.Joint; !slices.Equal(got, []int{4, 1}) {
		t.Errorf("the joint marginal is of %v", got)
	}
	if got := assignments[4].Want.Map; !slices.Equal(got, []int{3}) {
		t.Errorf("the assignment is of %v", got)
	}

	small, err := stage.Reparameterise(t.Context(), wideNetwork(12), query.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if assignments, err = plan.Assign(t.Context(), small, stage.Demands(small, queries), query.Settings{}, nil, nil); err != nil {
		t.Fatal(err)
	}
	for k, a := range assignments {
		if a.Error != nil || a.Relevant {
			t.Errorf("small network, query %d: %+v", k, a)
		}
	}
}

// TestPartsHaveTheSameBits: cold, with remembered plans, singly and in batches.
func TestPartsHaveTheSameBits(t *testing.T) {
	m := wideNetwork(200)
	var queries []query.Query
	rng := rand.New(rand.NewPCG(1, 9))
	for range 12 {
		e := factorgraph.Observe(map[int]int{rng.IntN(8): rng.IntN(2), rng.IntN(8): rng.IntN(2)})
		queries = append(queries, query.Query{Evidence: e, Targets: rng.Perm(8)[:2]})
	}
	memo := &memory{plans: map[string]*btn.Plan{}}
	ask := func(queries []query.Query, memo *memory) []query.Result {
		request := stage.Request{Job: "j", Model: m, Queries: queries}
		var results []query.Result
		var err error
		if memo == nil {
			results, err = stage.Run(t.Context(), request, nil)
		} else {
			results, err = stage.Run(t.Context(), request, memo)
		}
		if err != nil {
			t.Fatal(err)
		}
		return results
	}
	first, cold, hit := ask(queries, nil), ask(queries, memo), ask(queries, memo)
	for k := range queries {
		for name, r := range map[string]query.Result{"cold": cold[k], "hit": hit[k], "by itself": ask(queries[k:k+1], nil)[0]} {
			same := r.Exact && r.LogZ != nil && *r.LogZ == *first[k].LogZ && reflect.DeepEqual(r.Marginals, first[k].Marginals)
			if !same {
				t.Errorf("query %d, %s: %+v, first %+v", k, name, r, first[k])
			}
		}
	}
	if hit[0].Cache != btn.CacheHit {
		t.Errorf("the plans are not remembered: %s", hit[0].Cache)
	}
}
