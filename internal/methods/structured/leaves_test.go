package structured_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	_ "github.com/basetensor/basetensor/internal/methods" // for messages
	"github.com/basetensor/basetensor/internal/methods/structured"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// withLeaves replaces the tables of some pairs by two tables over them and a variable of their own, and its weights: the sum is the table.
func withLeaves(rng *rand.Rand, m *factorgraph.Model, pairs [][2]int, domain int) {
	for _, p := range pairs {
		leaf := len(m.Domains)
		m.Domains = append(m.Domains, domain)
		weights := make([]float64, domain)
		for f := range weights {
			weights[f] = math.Exp(rng.NormFloat64())
		}
		for k, factor := range m.Factors {
			if len(factor.Scope) != 2 || factor.Scope[0] != p[0] || factor.Scope[1] != p[1] {
				continue
			}
			di, dj := m.Domains[p[0]], m.Domains[p[1]]
			first := make([]float64, di*dj*domain)  // over i, j, leaf
			second := make([]float64, dj*domain*di) // over j, leaf, i
			for a := range di {
				for b := range dj {
					share, total := make([]float64, domain), 0.0
					for f := range share {
						share[f] = rng.ExpFloat64()
						total += share[f]
					}
					for f := range share {
						x := math.Exp(rng.NormFloat64())
						first[(a*dj+b)*domain+f] = x
						second[(b*domain+f)*di+a] = factor.Table.(*tensor.Dense).Data[a*dj+b] * share[f] / total / weights[f] / x
					}
				}
			}
			m.Factors[k] = factorgraph.Factor{Scope: []int{p[0], p[1], leaf}, Table: &tensor.Dense{Shape: []int{di, dj, domain}, Data: first}}
			m.Factors = append(m.Factors,
				factorgraph.Factor{Scope: []int{p[1], leaf, p[0]}, Table: &tensor.Dense{Shape: []int{dj, domain, di}, Data: second}},
				factorgraph.Factor{Scope: []int{leaf}, Table: &tensor.Dense{Shape: []int{domain}, Data: weights}})
			break
		}
	}
}

// TestLeavesAgainstEnumeration: Z, marginals, a joint marginal and draws of models with variables that are summed out, with evidence on
// these and on others, beside enumeration. The leaves of 0, 1 and 2 are of one part of the rest where two of them are observed.
func TestLeavesAgainstEnumeration(t *testing.T) {
	pairs := [][2]int{{0, 1}, {0, 2}, {1, 2}, {5, 9}}
	const first = 12 // leaf
	one := func(v, x int) factorgraph.Observation { return factorgraph.Observation{Var: v, Value: x} }
	evidences := []factorgraph.Evidence{
		{},
		{Hard: []factorgraph.Observation{one(1, 0), one(3, 1)}},
		{Hard: []factorgraph.Observation{one(first, 1), one(first+2, 0)}},
		{
			Soft: []factorgraph.Likelihood{{Var: first + 3, Weights: []float64{0.2, 1.5}}},
			Hard: []factorgraph.Observation{one(9, 1), one(first, 0)},
		},
	}
	for _, lambda := range [][]float64{{3}, {-4}, {4, -3}} {
		t.Run(fmt.Sprint(lambda), func(t *testing.T) {
			rng := rand.New(rand.NewPCG(4, 9))
			domains := []int{2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2}
			m := latent(rng, domains, lambda, 0, 0, 0)
			withLeaves(rng, m, pairs, 2)
			net, err := reparam.Build(t.Context(), m, reparam.Options{})
			if err != nil {
				t.Fatal(err)
			}
			plan, err := structured.Plan(t.Context(), net, 1<<30)
			if err != nil || plan == nil {
				t.Fatalf("%+v, %v", plan, err)
			}
			bytes, err := message.EncodePlan(&btn.Plan{Method: query.MethodExact, Estimates: []btn.Estimate{*plan}})
			if err != nil {
				t.Fatal(err)
			}
			decoded, err := message.DecodePlan(bytes)
			if err != nil {
				t.Fatal(err)
			}
			fit := decoded.Estimates[0].Parts[0].(*structured.Nodes).Fit
			if len(fit.Leaves) != len(pairs) || len(fit.Lambda) != len(lambda) || len(fit.Rest) > 0 {
				t.Fatalf("%d leaves, λ %v, %d tables of the rest", len(fit.Leaves), fit.Lambda, len(fit.Rest))
			}
			for k, e := range evidences {
				conditioned, err := net.Condition(e)
				if err != nil {
					t.Fatal(err)
				}
				p := problem.New(conditioned, problem.Options{})
				joint := []int{2, first + 1, first + 3}
				z, bound, shares, cells := sumParts(t, p, fit, 2, btn.Want{Marginals: true, Joint: joint})
				exact := oracle.SumModel(m, e)
				if off := oracle.RelativeError(z.Mant, z.Exp, exact.Z); off > 1e-11 || off > bound {
					t.Errorf("evidence %d: ln Z %v, off by %.2g", k, z.LogAbs(), off)
				}
				// Without the joint marginal leaves stay summed out.
				_, _, without, _ := sumParts(t, p, fit, 1, btn.Want{Marginals: true})
				for v, row := range exact.Marginals() {
					for x, q := range row {
						for _, got := range []float64{shares[2*v+x].Div(z).Float64(), without[2*v+x].Div(z).Float64()} {
							if math.Abs(got-q) > 1e-11 {
								t.Errorf("evidence %d: P(%d = %d) = %v, want %v", k, v, x, got, q)
							}
						}
					}
				}
				probabilities := make([]float64, len(cells))
				for c := range cells {
					given := factorgraph.Evidence{Soft: e.Soft, Hard: append([]factorgraph.Observation(nil), e.Hard...)}
					for place, v := range joint {
						given.Hard = append(given.Hard, one(v, c>>(2-place)&1))
					}
					probabilities[c] = cells[c].Div(z).Float64()
					if given, err = factorgraph.NewEvidence(given.Hard, given.Soft); err != nil {
						continue // another value is observed
					}
					want := math.Exp(oracle.Ln(oracle.Z(m, given)) - oracle.Ln(exact.Z))
					if math.Abs(probabilities[c]-want) > 1e-11 {
						t.Errorf("evidence %d: cell %d is %v, want %v", k, c, probabilities[c], want)
					}
				}
				if lambda[len(lambda)-1] > 0 {
					drawnLike(t, p, fit, joint, probabilities)
				}
			}
		})
	}
}

// drawnLike compares the draws of a fit with the joint marginal of three binary variables.
func drawnLike(t *testing.T, p *problem.Problem, fit *structured.Fit, joint []int, probabilities []float64) {
	t.Helper()
	const samples = 4000
	draws := &structured.Nodes{Fit: fit, To: structured.WholeShare, Ask: btn.AskSamples}
	drawn, err := draws.Contract(t.Context(), p, btn.Want{Samples: samples, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	n := len(p.Net.Variables)
	counts := make([]float64, len(probabilities))
	for s := range samples {
		x := drawn.Drawn.Values[s*n:][:n]
		counts[4*x[joint[0]]+2*x[joint[1]]+x[joint[2]]]++
	}
	for c, q := range probabilities {
		if off := math.Abs(counts[c]/samples - q); off > 5*math.Sqrt(q*(1-q)/samples) {
			t.Errorf("cell %d: %v of the draws, the joint marginal is %v", c, counts[c]/samples, q)
		}
	}
}

// TestCrowded holds IsCrowded to its definition on complete graphs, some pairs of which meet in leaves: 16 pairs for each variable that is
// no leaf, from 33 of them on.
func TestCrowded(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	for _, n := range []int{12, 32, 33, 40} {
		for _, leaves := range []int{0, 1, 20, n * (n - 1) / 2} {
			m := latent(rng, slices.Repeat([]int{2}, n), []float64{1}, 0, 0, 0)
			var pairs [][2]int
			for i := range n {
				for j := range i {
					pairs = append(pairs, [2]int{j, i})
				}
			}
			withLeaves(rng, m, pairs[:min(leaves, len(pairs))], 2)
			net, err := reparam.Build(t.Context(), m, reparam.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := structured.IsCrowded(net), n >= 33; got != want {
				t.Errorf("%d variables, %d leaves: %t", n, leaves, got)
			}
		}
	}
}
