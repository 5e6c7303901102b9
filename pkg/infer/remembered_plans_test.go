package infer

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// scattered is a model of random factors over up to four variables each, with a random share of zeros.
func scattered(rng *rand.Rand) *factorgraph.Model {
	m := &factorgraph.Model{}
	n := 10 + rng.IntN(30)
	for range n {
		m.Domains = append(m.Domains, 1+rng.IntN(4))
	}
	zeros := []float64{0, 0, 0.1, 0.3, 0.5}[rng.IntN(5)]
	for range int(float64(n) * (0.7 + 1.5*rng.Float64())) {
		t := &tensor.Dense{}
		scope := rng.Perm(n)[:1+rng.IntN(4)]
		size := 1
		for _, v := range scope {
			t.Shape = append(t.Shape, m.Domains[v])
			size *= m.Domains[v]
		}
		t.Data = make([]float64, size)
		for k := range t.Data {
			if rng.Float64() >= zeros {
				t.Data[k] = math.Exp(2 * rng.NormFloat64())
			}
		}
		t.Data[rng.IntN(size)] = 1
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: t})
	}
	return m
}

// TestQueriesOfOneShapeHaveTheirOwnPlans: evidence on a variable that simplification removes does not change the network's
// shape, but plans that take evidence as masks cannot represent it.
func TestQueriesOfOneShapeHaveTheirOwnPlans(t *testing.T) {
	const models = 150
	for i := range uint64(models) {
		rng := rand.New(rand.NewPCG(27, i))
		m := scattered(rng)
		marginals := rng.IntN(2) == 0
		var queries []query.Query
		for k := range 4 {
			q := query.Query{Marginals: marginals}
			for v, d := range m.Domains {
				if rng.IntN(len(m.Domains)) < k {
					q.Evidence.Hard = append(q.Evidence.Hard, factorgraph.Observation{Var: v, Value: rng.IntN(d)})
				}
			}
			queries = append(queries, q)
		}
		s := query.Settings{Method: query.MethodAuto, NoExact: true, Budget: 1e7, Seed: i}
		results, err := Run(t.Context(), Request{Model: m, Queries: queries, Settings: s})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range results {
			if r.Error != nil && r.Error.Code == fault.Internal {
				t.Errorf("model %d, query %d: %s", i, r.Query, r.Error.Message)
			}
		}
	}
}

// TestBoundsBesideMarginalsAreOfTheirOwnNetwork: without marginals more is summed out, and in one of two queries the evidence
// on variable n leaves a table of rank one over variables 0 and 1, which falls apart. With marginals both have one shape.
func TestBoundsBesideMarginalsAreOfTheirOwnNetwork(t *testing.T) {
	const n = 20
	rng := rand.New(rand.NewPCG(1, 1))
	m := &factorgraph.Model{}
	add := func(d []float64, scope ...int) {
		shape := []int{m.Domains[scope[0]], m.Domains[scope[1]]}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: &tensor.Dense{Shape: shape, Data: d}})
	}
	for i := range n {
		m.Domains = append(m.Domains, 2)
		for j := range i {
			if i == 1 || i > 9 && rng.IntN(2) == 0 {
				continue
			}
			var d []float64
			for range 4 {
				d = append(d, math.Exp(rng.NormFloat64()))
			}
			add(d, j, i)
		}
	}
	m.Domains = append(m.Domains, 3)
	add([]float64{1, 1, 1, 1, 2, 3}, 0, n)
	add([]float64{1, 1, 1, 2, 3, 1}, 1, n)

	apart := query.Query{Marginals: true}
	apart.Evidence.Soft = []factorgraph.Likelihood{{Var: n, Weights: []float64{1, 1, 0.25}}}
	queries := []query.Query{{Marginals: true}, apart}
	s := query.Settings{Method: query.MethodSampled, Budget: 1e7}
	results, err := Run(t.Context(), Request{Model: m, Queries: queries, Settings: s})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range results {
		if r.Error != nil || r.Bounds == nil || r.Bounds.Upper == nil {
			t.Errorf("query %d: no bound above: %+v, error %+v", r.Query, r.Bounds, r.Error)
		}
	}
}
