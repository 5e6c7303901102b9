package infer

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Sixty causes and two hundred noisy comparisons of two of them each: nothing is observed, so every
// comparison is barren but to itself. All marginals from one pass would need tables of more than
// 2^30 entries; one by one they are sums over two causes.
func TestMarginalsOfBarrenVariables(t *testing.T) {
	rng := rand.New(rand.NewPCG(69, 1908))
	m := &factorgraph.Model{}
	p := make([]float64, 60)
	for v := range p {
		p[v] = 0.1 + 0.8*rng.Float64()
		m.Domains = append(m.Domains, 2)
		m.Factors = append(m.Factors,
			factorgraph.Factor{Scope: []int{v},
				Table: &tensor.Dense{Shape: []int{2}, Data: []float64{1 - p[v], p[v]}}})
	}
	var want []float64
	for range 200 {
		pair, v := rng.Perm(len(p))[:2], len(m.Domains)
		m.Domains = append(m.Domains, 2)
		m.Factors = append(m.Factors,
			factorgraph.Factor{Scope: []int{pair[0], pair[1], v},
				Table: &tensor.Dense{Shape: []int{2, 2, 2},
					Data: []float64{0.8, 0.2, 0.1, 0.9, 0.3, 0.7, 0.75, 0.25}}})
		a, b := p[pair[0]], p[pair[1]]
		want = append(want, 0.2*(1-a)*(1-b)+0.9*(1-a)*b+0.7*a*(1-b)+0.25*a*b)
	}
	r := runOne(t, m, query.Query{Marginals: true}, query.Settings{})
	if r.Error != nil || !r.Exact || math.Abs(*r.LogZ) > 1e-12 {
		t.Fatalf("%+v", r)
	}
	for v, row := range r.Marginals {
		q := 0.0
		if v < len(p) {
			q = p[v]
		} else {
			q = want[v-len(p)]
		}
		if math.Abs(row.P[1]-q) > 1e-12 {
			t.Errorf("P(x_%d = 1) = %v, want %v", v, row.P[1], q)
		}
	}
}

// TestTargetsHaveThePriceOfTargets: two targets of an undirected network take, and are planned to take, a small part of all marginals.
func TestTargetsHaveThePriceOfTargets(t *testing.T) {
	rng := rand.New(rand.NewPCG(69, 1909))
	m := &factorgraph.Model{}
	for range 60 {
		prior := &tensor.Dense{Shape: []int{2}, Data: []float64{0.25, 0.75}}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{len(m.Domains)}, Table: prior})
		m.Domains = append(m.Domains, 2)
	}
	for range 200 {
		pair, v := rng.Perm(60)[:2], len(m.Domains)
		m.Domains = append(m.Domains, 2)
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{pair[0], pair[1], v},
			Table: &tensor.Dense{Shape: []int{2, 2, 2}, Data: []float64{0.8, 0.2, 0.1, 0.9, 0.3, 0.7, 0.75, 0.25}}})
	}
	all := runOne(t, m, query.Query{Marginals: true}, query.Settings{})
	some := runOne(t, m, query.Query{Targets: []int{70, 3}}, query.Settings{})
	if some.Plan == nil || all.Plan == nil || some.Plan.Flops > all.Plan.Flops/2 || some.Run.Flops > some.Plan.Flops {
		t.Fatalf("two targets take %+v, all marginals %+v", some.Plan, all.Plan)
	}
	for i, v := range []int{70, 3} {
		if math.Abs(some.Marginals[i].P[1]-all.Marginals[v].P[1]) > 1e-12 {
			t.Errorf("P(x_%d = 1) = %v, among all %v", v, some.Marginals[i].P[1], all.Marginals[v].P[1])
		}
	}
}
