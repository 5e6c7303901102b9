package truth

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestRoundingOfBothSignsIsStated estimates ln Z of sums with terms of both signs, which nearly cancel, by truncated legs: no error exceeds
// three times the stated uncertainty.
func TestRoundingOfBothSignsIsStated(t *testing.T) {
	inaccurate, stated, unstated := 0, 0, 0
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 17))
		c := &Case{Name: fmt.Sprint("signs-", seed), Route: RoutePlain, Model: cancelling(rng), Queries: []query.Query{{}},
			Settings: query.Settings{Method: query.MethodTruncated, Bond: 2 + rng.IntN(7), Budget: 1e6}}
		truth := Solve(c.Model, c.Queries)
		o := Run(c, DefaultLimits)
		if o.Err != nil {
			t.Fatalf("seed %d: %v", seed, o.Err)
		}
		r := &o.Results[0]
		if r.LogZ == nil || r.Uncertainty == nil {
			unstated++
			continue
		}
		e := math.Abs(*r.LogZ - truth[0].LnZ)
		if e > 3**r.Uncertainty+estimateFloor*max(1, math.Abs(truth[0].LnZ)) {
			t.Errorf("seed %d: ln Z %v ± %v, truth %v", seed, *r.LogZ, *r.Uncertainty, truth[0].LnZ)
		}
		stated++
		if e > 1e-9 {
			inaccurate++
		}
	}
	if inaccurate < 10 || stated < 100 {
		t.Errorf("%d estimates, %d of them off by more than 1e-9: nothing cancels; without a statement %d", stated, inaccurate, unstated)
	}
}

// cancelling draws a chain of tables over two neighbours each, and one more factor: the difference of two products of vectors that differ
// in one entry by a relative change of 1 to 1e-15, so that all its other entries cancel.
func cancelling(rng *rand.Rand) *factorgraph.Model {
	n := 3 + rng.IntN(4)
	m := &factorgraph.Model{}
	for range n {
		m.Domains = append(m.Domains, 2+rng.IntN(2))
	}
	draw := func(k int) []float64 {
		out := make([]float64, k)
		for i := range out {
			out[i] = math.Exp(2 * rng.NormFloat64())
		}
		return out
	}

	// The chain.
	for v := range n - 1 {
		a, b := m.Domains[v], m.Domains[v+1]
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v, v + 1}, Table: &tensor.Dense{Shape: []int{a, b}, Data: draw(a * b)}})
	}

	// The factor over u and v ≠ u: left ⊗ right − left ⊗ changed.
	u, v := rng.IntN(n), rng.IntN(n-1)
	if v >= u {
		v++
	}
	a, b := m.Domains[u], m.Domains[v]
	left, right := draw(a), draw(b)
	changed := slices.Clone(right)
	changed[rng.IntN(b)] *= 1 - math.Pow(10, -15*rng.Float64())
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{u, v}, Table: &tensor.CP{Shape: []int{a, b}, Weights: []float64{1, -1},
		Vectors: [][]float64{slices.Concat(left, left), slices.Concat(right, changed)}}})
	return m
}
