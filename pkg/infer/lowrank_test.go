package infer_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestLowRankFactors: 3,000 spins that are coupled all with all by one factor, with fields and under evidence, agree with the sum over the
// number of spins up: ln Z and marginals.
func TestLowRankFactors(t *testing.T) {
	const n = 3000
	r := rand.New(rand.NewPCG(29, 10))
	m := &factorgraph.Model{}
	statistic := make([][]float64, n)
	scope := make([]int, n)
	fields := make([]float64, n)
	for i := range n {
		m.Domains = append(m.Domains, 2)
		scope[i], statistic[i], fields[i] = i, []float64{-1, 1}, 0.2*r.Float64()-0.1
		own := &tensor.Dense{Shape: []int{2}, Data: []float64{math.Exp(-fields[i]), math.Exp(fields[i])}}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{i}, Table: own})
	}
	all, err := tensor.ExpSquare(1.2/n, statistic)
	if err != nil {
		t.Fatal(err)
	}
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: all})

	observed := map[int]int{3: 1, 40: 0, 2999: 1}
	queries := []query.Query{{}, {Evidence: factorgraph.Observe(observed), Marginals: true, Targets: []int{0, 1}}}
	results, err := infer.Run(t.Context(), infer.Request{Job: "dense", Model: m, Queries: queries})
	if err != nil {
		t.Fatal(err)
	}
	total := func(given map[int]int) float64 { return sumOverCounts(fields, 1.2/n, given) }
	for k, given := range []map[int]int{nil, observed} {
		want := total(given)
		if got := results[k]; got.LogZ == nil || !got.Exact || math.Abs(*got.LogZ-want) > 1e-11*want {
			t.Errorf("query %d: %+v, ln Z = %v", k, got, want)
		}
	}
	for k, v := range queries[1].Targets {
		with := map[int]int{v: 1}
		for u, x := range observed {
			with[u] = x
		}
		if got, want := results[1].Marginals[k].P[1], math.Exp(total(with)-total(observed)); math.Abs(got-want) > 1e-9 {
			t.Errorf("variable %d is up with %v, want %v", v, got, want)
		}
	}
}

// sumOverCounts is ln Σ_x e^{½ λ s(x)² + Σ_i h_i σ_i} over the states with these values, by the number of spins up.
func sumOverCounts(fields []float64, lambda float64, given map[int]int) float64 {
	ln := []float64{0} // of the weight of so many up
	for i, h := range fields {
		x, fixed := given[i]
		next := make([]float64, len(ln)+1)
		for k := range next {
			next[k] = math.Inf(-1)
			if k < len(ln) && !(fixed && x == 1) {
				next[k] = ln[k] - h
			}
			if k > 0 && !(fixed && x == 0) {
				next[k] = logAdd(next[k], ln[k-1]+h)
			}
		}
		ln = next
	}
	sum := math.Inf(-1)
	for k, l := range ln {
		s := float64(2*k - len(fields))
		sum = logAdd(sum, l+lambda*s*s/2)
	}
	return sum
}

// logAdd is ln (e^a + e^b).
func logAdd(a, b float64) float64 {
	if a < b {
		a, b = b, a
	}
	if math.IsInf(b, -1) {
		return a
	}
	return a + math.Log1p(math.Exp(b-a))
}
