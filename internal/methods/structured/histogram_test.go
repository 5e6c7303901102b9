package structured_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/structured"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// whole draws a model of statistics that are integers in some basis, with fields: domains of two or three values, couplings of either
// sign.
func whole(rng *rand.Rand, domains []int, statistics int, strength float64) *factorgraph.Model {
	m := &factorgraph.Model{Domains: domains}
	basis := make([]float64, statistics*statistics) // any form Nᵀ G N is one of statistics in a basis that nobody knows
	for x := range basis {
		basis[x] = strength * rng.NormFloat64() / float64(len(domains))
	}
	n := make([][][]float64, len(domains))
	for i, d := range domains {
		for range d {
			var own []float64
			for range statistics {
				own = append(own, float64(rng.IntN(7)-3))
			}
			n[i] = append(n[i], own)
		}
	}
	for i, di := range domains {
		field := &tensor.Dense{Shape: []int{di}}
		for range di {
			field.Data = append(field.Data, math.Exp(rng.NormFloat64()))
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{i}, Table: field})
		for j := i + 1; j < len(domains); j++ {
			t := &tensor.Dense{Shape: []int{di, domains[j]}}
			for a := range di {
				for b := range domains[j] {
					ln := 0.0
					for p := range statistics {
						for q := range statistics {
							g := basis[p*statistics+q] + basis[q*statistics+p]
							ln += g * n[i][a][p] * n[j][b][q]
						}
					}
					t.Data = append(t.Data, math.Exp(ln))
				}
			}
			m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{i, j}, Table: t})
		}
	}
	return m
}

// TestIntegersAgainstEnumeration: Z within its bound, marginals, a joint marginal and draws of integer statistics, with evidence, beside
// enumeration, from weak couplings to those whose terms leave the range of float64.
func TestIntegersAgainstEnumeration(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		domains    []int
		statistics int
	}{
		{[]int{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, 1},
		{[]int{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, 2},
		{[]int{3, 2, 2, 3, 2, 2, 2, 2, 3, 2, 2, 2}, 1},
		{[]int{2, 2, 3, 3, 2, 2, 3, 2, 2, 2, 2, 2}, 2},
		{[]int{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}, 3},
	} {
		for seed, strength := range []float64{0.3, 2, 100} {
			rng := rand.New(rand.NewPCG(uint64(seed), uint64(len(c.domains)+c.statistics)))
			m := whole(rng, c.domains, c.statistics, strength)
			net, err := reparam.Build(ctx, m, reparam.Options{})
			if err != nil {
				t.Fatal(err)
			}
			plan, err := structured.Plan(ctx, net, 1<<30)
			if err == nil && plan == nil && c.statistics > 2 { // completion does not find every one in so few variables
				continue
			}
			if err != nil || plan == nil {
				t.Fatalf("%v, %d statistics, strength %v: %+v, %v", c.domains, c.statistics, strength, plan, err)
			}
			part := plan.Parts[0].(*structured.Nodes)
			if part.Fit.Integers == nil || len(plan.Parts) > 1 {
				t.Fatalf("%v, %d statistics, strength %v: no integers are found", c.domains, c.statistics, strength)
			}
			if err := part.Fits(net); err != nil {
				t.Fatal(err)
			}
			evidence := factorgraph.Evidence{}
			if seed > 0 {
				evidence.Hard = []factorgraph.Observation{{Var: 4, Value: 1}}
				evidence.Soft = []factorgraph.Likelihood{{Var: 5, Weights: []float64{0.2, 1.5}}}
			}
			conditioned, err := net.Condition(evidence)
			if err != nil {
				t.Fatal(err)
			}
			p := problem.New(conditioned, problem.Options{})
			joint := []int{0, 8}
			v, err := contraction.Part(ctx, p, part, btn.Want{Marginals: true, Joint: joint})
			if err != nil {
				t.Fatal(err)
			}
			exact := oracle.SumModel(m, evidence)
			off, bound := oracle.RelativeError(v.Z.Mant, v.Z.Exp, exact.Z), v.Rounding.Div(v.Z).Float64()
			if off > bound || bound > 1e-10 {
				t.Errorf("%v, %d statistics, strength %v: ln Z %v, off by %.2g, %.2g is stated",
					c.domains, c.statistics, strength, v.Z.LogAbs(), off, bound)
			}
			at := 0
			for u, row := range exact.Marginals() {
				for x, q := range row {
					if got := scaled.Make(v.Marginals.Mant[at], v.Marginals.Exp).Div(v.Z).Float64(); math.Abs(got-q) > 2*bound {
						t.Errorf("%v, %d statistics, strength %v: P(%d = %d) = %v, want %v", c.domains, c.statistics, strength, u, x, got, q)
					}
					at++
				}
			}
			// The cells add up to the marginals of both variables.
			d := c.domains[joint[1]]
			rows := exact.Marginals()
			for a := range c.domains[joint[0]] {
				sum := 0.0
				for b := range d {
					sum += scaled.Make(v.Joint.Mant[a*d+b], v.Joint.Exp).Div(v.Z).Float64()
				}
				if q := rows[joint[0]][a]; math.Abs(sum-q) > 2*bound {
					t.Errorf("the cells of %d = %d add up to %v, want %v", joint[0], a, sum, q)
				}
			}
			const samples = 2000
			asked := structured.DrawingParts(plan.Parts, btn.AskSamples)
			drawn, err := asked[0].(*structured.Nodes).Contract(ctx, p, btn.Want{Samples: samples, Seed: 1})
			if err != nil {
				t.Fatal(err)
			}
			counts := make([]float64, len(v.Joint.Mant))
			for s := range samples {
				x := drawn.Drawn.Values[s*len(c.domains):][:len(c.domains)]
				counts[x[joint[0]]*d+x[joint[1]]]++
			}
			for cell, n := range counts {
				q := scaled.Make(v.Joint.Mant[cell], v.Joint.Exp).Div(v.Z).Float64()
				if off := math.Abs(n/samples - q); off > 5*math.Sqrt(q*(1-q)/samples)+1e-9 {
					t.Errorf("cell %d: %v of the draws, the joint marginal is %v", cell, n/samples, q)
				}
			}
			// What takes more memory is refused before it is allocated.
			if own, err := structured.Plan(ctx, net, 20); own != nil || err != nil {
				t.Errorf("20 bytes: %+v, %v", own, err)
			}
			small := problem.New(conditioned, problem.Options{Memory: 200})
			if _, err := contraction.Part(ctx, small, part, btn.Want{}); fault.CodeOf(err) != fault.OverBudget {
				t.Errorf("200 bytes: %v", err)
			}
		}
	}
}
