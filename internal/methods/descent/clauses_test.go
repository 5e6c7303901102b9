package descent_test

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/descent"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestLongClauses: the most probable assignment and samples of clauses of ten literals and a parity, which are chains of states
// here, against all assignments.
func TestLongClauses(t *testing.T) {
	const n = 12
	rng := rand.New(rand.NewPCG(5, 5))
	for range 4 {
		m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, n)}
		for v := range n {
			m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v},
				Table: &tensor.Dense{Shape: []int{2}, Data: []float64{1, 0.1 * rng.Float64()}}})
		}
		for range 3 {
			m.Factors = append(m.Factors, factorgraph.Factor{Scope: rng.Perm(n)[:10],
				Table: factorgraph.Clause(slices.Repeat([]bool{true}, 10)...)})
		}
		odd, err := factorgraph.Parity(9, true)
		if err != nil {
			t.Fatal(err)
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: rng.Perm(n)[:9], Table: odd})
		or, err := factorgraph.NoisyOr(0.1, slices.Repeat([]float64{0.4}, 9)...)
		if err != nil {
			t.Fatal(err)
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: rng.Perm(n)[:10], Table: or})

		var best []int
		most := 0.0
		weight := func(x []int) float64 {
			w := 1.0
			for _, f := range m.Factors {
				at := make([]int, len(f.Scope))
				for k, v := range f.Scope {
					at[k] = x[v]
				}
				e, _ := oracle.Entry(f.Table, at).Float64()
				w *= e
			}
			return w
		}
		oracle.Each(m.Domains, func(x []int) {
			if w := weight(x); w > most {
				best, most = slices.Clone(x), w
			}
		})
		net := network(t, m)
		found, _ := ask(t, net, nil, 0)
		if !slices.Equal(found.Values, best) || math.Abs(found.Weight.LogAbs()-math.Log(most)) > 1e-12 {
			t.Errorf("%+v, want %v with ln %v", found, best, math.Log(most))
		}

		p, err := descent.Prepare(context.Background(), net, btn.AskSamples, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		path, _, err := p.Plan(context.Background(), descent.PlanOptions{})
		if err != nil {
			t.Fatal(err)
		}
		const draws = 4000
		drawn, err := p.Draw(context.Background(), path, draws, 7, descent.Options{To: path.Count})
		if err != nil {
			t.Fatal(err)
		}
		if want := oracle.Z(m, factorgraph.Evidence{}); oracle.RelativeError(drawn.Weight.Mant, drawn.Weight.Exp, want) > 1e-12 {
			t.Errorf("the draws are of %v, want %v", drawn.Weight, want)
		}
		for v, row := range oracle.Marginals(m, factorgraph.Evidence{}) {
			ones := 0
			for i := range draws {
				ones += drawn.Values[i*n+v]
			}
			if off := float64(ones)/draws - row[1]; math.Abs(off) > 5*math.Sqrt(row[1]*row[0]/draws)+1e-9 {
				t.Errorf("variable %d: %v of the draws are off %v by %v", v, float64(ones)/draws, row[1], off)
			}
		}
		for i := range draws {
			if weight(drawn.Values[i*n:][:n]) == 0 {
				t.Fatalf("draw %d is impossible", i)
			}
		}
	}
}
