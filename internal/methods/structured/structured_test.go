package structured_test

import (
	"context"
	"fmt"
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
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// latent draws a model of plain tables: Σ_k λ_k s_k², fields, and the given numbers of pairs that deviate, of pairs with zeros, and of
// tables of three variables.
func latent(rng *rand.Rand, domains []int, lambda []float64, deviating, zeros, triples int) *factorgraph.Model {
	m := &factorgraph.Model{Domains: domains}
	n := len(domains)
	v := make([][][]float64, len(lambda))
	for k := range lambda {
		v[k] = make([][]float64, n)
		for i, d := range domains {
			for range d {
				v[k][i] = append(v[k][i], rng.NormFloat64())
			}
		}
	}
	add := func(scope []int, entry func(x []int) float64) {
		t := &tensor.Dense{}
		for _, i := range scope {
			t.Shape = append(t.Shape, domains[i])
		}
		oracle.Each(t.Shape, func(x []int) { t.Data = append(t.Data, entry(x)) })
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: t})
	}
	for i := range n {
		add([]int{i}, func([]int) float64 { return math.Exp(rng.NormFloat64()) })
		for j := i + 1; j < n; j++ {
			add([]int{i, j}, func(x []int) float64 {
				ln := 0.0
				for k, l := range lambda {
					ln += l / float64(n) * v[k][i][x[0]] * v[k][j][x[1]]
				}
				return math.Exp(ln)
			})
		}
	}
	random := func(share float64) func([]int) float64 {
		return func([]int) float64 {
			if rng.Float64() < share {
				return 0
			}
			return math.Exp(rng.NormFloat64())
		}
	}
	for c := range deviating {
		add([]int{c % (n - 1), c%(n-1) + 1}, random(0))
	}
	for range zeros {
		at := rng.Perm(n)
		add(at[:2], random(0.3))
	}
	for range triples {
		at := rng.Perm(n)
		add(at[:3], random(0.1))
	}
	return m
}

// TestFoundAgainstEnumeration: Z, marginals and a joint marginal of random models, with evidence, beside their enumeration.
func TestFoundAgainstEnumeration(t *testing.T) {
	ctx := context.Background()
	repeat := func(d, n int) (out []int) {
		for range n {
			out = append(out, d)
		}
		return out
	}
	for name, c := range map[string]struct {
		domains                   []int
		lambda                    []float64
		deviating, zeros, triples int
	}{
		"rank one":            {repeat(2, 13), []float64{3}, 0, 0, 0},
		"rank one, negative":  {repeat(2, 13), []float64{-4}, 0, 0, 0},
		"rank two":            {repeat(2, 14), []float64{5, 3}, 0, 0, 0},
		"both signs":          {repeat(2, 14), []float64{5, -6}, 0, 0, 0},
		"three values":        {repeat(3, 12), []float64{4}, 0, 0, 0},
		"mixed domains":       {[]int{2, 3, 2, 2, 3, 2, 2, 2, 3, 2, 2, 2}, []float64{4, -3}, 0, 0, 0},
		"a chain":             {repeat(2, 14), []float64{3}, 6, 0, 0},
		"negative and chain":  {repeat(2, 14), []float64{-3}, 4, 0, 0},
		"zeros":               {repeat(2, 14), []float64{3}, 0, 3, 0},
		"zeros, chain, three": {repeat(2, 14), []float64{3}, 3, 2, 2},
		"negative with all":   {repeat(2, 14), []float64{-3}, 2, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(2) {
				rng := rand.New(rand.NewPCG(seed, 12))
				m := latent(rng, c.domains, c.lambda, c.deviating, c.zeros, c.triples)
				net, err := reparam.Build(ctx, m, reparam.Options{})
				if err != nil {
					t.Fatal(err)
				}
				fit, err := structured.Find(ctx, net, 1<<30)
				if err != nil {
					t.Fatal(err)
				}
				if fit == nil {
					t.Fatalf("seed %d: nothing is found", seed)
				}
				if c.deviating+c.zeros+c.triples == 0 && len(fit.Lambda) != len(c.lambda) {
					t.Fatalf("seed %d: %d statistics, want %d", seed, len(fit.Lambda), len(c.lambda))
				}
				evidence := factorgraph.Evidence{}
				if seed%2 == 1 {
					evidence = factorgraph.Evidence{
						Hard: []factorgraph.Observation{{Var: 3, Value: 1}},
						Soft: []factorgraph.Likelihood{{Var: 5, Weights: []float64{0.2, 1.5}}},
					}
					if c.domains[5] == 3 {
						evidence.Soft[0].Weights = append(evidence.Soft[0].Weights, 0)
					}
				}
				conditioned, err := net.Condition(evidence)
				if err != nil {
					t.Fatal(err)
				}
				exact := oracle.SumModel(m, evidence)
				want, rows := exact.Z, exact.Marginals()
				p := problem.New(conditioned, problem.Options{})
				z, bound, shares, joint := sumParts(t, p, fit, 3, btn.Want{Marginals: true, Joint: []int{2, 7}})
				if off := oracle.RelativeError(z.Mant, z.Exp, want); off > 1e-11 || off > bound {
					t.Errorf("seed %d: ln Z %v, off by %.2g, want ln %v", seed, z.LogAbs(), off, oracle.Ln(want))
				}
				at := 0
				for v, row := range rows {
					for x, q := range row {
						if got := shares[at].Div(z).Float64(); math.Abs(got-q) > 1e-11 {
							t.Errorf("seed %d: P(%d = %d) = %v, want %v", seed, v, x, got, q)
						}
						at++
					}
				}
				sum := scaled.Number{}
				for _, c := range joint {
					sum = sum.Add(c)
				}
				if off := math.Abs(sum.Div(z).Float64() - 1); off > 1e-11 {
					t.Errorf("seed %d: the joint marginal adds up to Z·(1 + %.2g)", seed, off)
				}
			}
		})
	}
}

// sumParts divides a fit into parts, contracts them and adds them up.
func sumParts(
	t *testing.T, p *problem.Problem, fit *structured.Fit, parts int64, want btn.Want,
) (z scaled.Number, bound float64, shares, joint []scaled.Number) {
	t.Helper()
	rounding := scaled.Number{}
	for k := range parts {
		part := &structured.Nodes{Fit: fit, From: structured.WholeShare * k / parts, To: structured.WholeShare * (k + 1) / parts}
		v, err := contraction.Part(context.Background(), p, part, want)
		if err != nil {
			t.Fatal(err)
		}
		if v.Doubt != "" {
			t.Error(v.Doubt)
		}
		z, rounding = z.Add(v.Z), rounding.Add(*v.Rounding)
		if v.Marginals == nil {
			continue
		}
		if shares == nil {
			shares = make([]scaled.Number, len(v.Marginals.Mant))
		}
		if v.Joint != nil && joint == nil {
			joint = make([]scaled.Number, len(v.Joint.Mant))
		}
		for i, x := range v.Marginals.Mant {
			shares[i] = shares[i].Add(scaled.Make(x, v.Marginals.Exp))
		}
		for i := range joint {
			x := v.Joint.Mant[i]
			joint[i] = joint[i].Add(scaled.Make(x, v.Joint.Exp))
		}
	}
	return z, rounding.Div(z).Float64(), shares, joint
}

// TestLargerThanEnumeration: a model of n equal couplings beside the sum over its counts.
func TestLargerThanEnumeration(t *testing.T) {
	ctx := context.Background()
	for _, n := range []int{50, 100, 300} {
		for _, j := range []float64{1.2, -1.5} {
			t.Run(fmt.Sprint(n, j), func(t *testing.T) {
				m := &factorgraph.Model{}
				w := math.Exp(j / float64(n))
				for i := range n {
					m.Domains = append(m.Domains, 2)
					for k := range i {
						table := &tensor.Dense{Shape: []int{2, 2}, Data: []float64{w, 1 / w, 1 / w, w}}
						m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{k, i}, Table: table})
					}
				}
				net, err := reparam.Build(ctx, m, reparam.Options{})
				if err != nil {
					t.Fatal(err)
				}
				fit, err := structured.Find(ctx, net, 1<<30)
				if err != nil || fit == nil {
					t.Fatal(fit, err)
				}
				z, bound, _, _ := sumParts(t, problem.New(net, problem.Options{}), fit, 2, btn.Want{})
				lnW, sum := math.Log(w), scaled.Number{}
				for c := range n + 1 {
					a, _ := math.Lgamma(float64(n + 1))
					b, _ := math.Lgamma(float64(c + 1))
					d, _ := math.Lgamma(float64(n - c + 1))
					s := float64(2*c - n)
					sum = sum.Add(scaled.FromLog(a - b - d + lnW*(s*s-float64(n))/2))
				}
				if off := math.Abs(z.LogAbs() - sum.LogAbs()); off > 1e-10 || bound > 1e-10 {
					t.Errorf("ln Z %v, want %v", z.LogAbs(), sum.LogAbs())
				}
			})
		}
	}
}

// TestGroupsAreSummedOneByOne: two groups of equal eigenvalue, joined by a pair, beside enumeration: ln Z, marginals, a joint marginal
// and draws.
func TestGroupsAreSummedOneByOne(t *testing.T) {
	ctx := context.Background()
	rng := rand.New(rand.NewPCG(3, 5))
	const each = 9
	m := &factorgraph.Model{}
	add := func(scope []int, ln float64) {
		table := &tensor.Dense{Shape: []int{2, 2}, Data: []float64{math.Exp(ln), math.Exp(-ln), math.Exp(-ln), math.Exp(ln)}}
		if len(scope) == 1 {
			table = &tensor.Dense{Shape: []int{2}, Data: []float64{math.Exp(ln), 1}}
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: table})
	}
	for i := range 2 * each {
		m.Domains = append(m.Domains, 2)
		add([]int{i}, 0.3*rng.NormFloat64())
	}
	for g := range 2 {
		for i := range each {
			for j := range i {
				add([]int{g*each + j, g*each + i}, 0.2)
			}
		}
	}
	add([]int{each - 1, each}, 0.7)
	net, err := reparam.Build(ctx, m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	plan, err := structured.Plan(ctx, net, 1<<30)
	if err != nil || plan == nil {
		t.Fatalf("%+v, %v", plan, err)
	}
	fit := plan.Parts[0].(*structured.Nodes).Fit
	if !fit.StatisticsAreVariables || len(plan.Parts) != 1 {
		t.Fatalf("%d parts, statistics %v are a grid", len(plan.Parts), fit.Lambda)
	}
	if err := plan.Parts[0].Fits(net); err != nil {
		t.Fatal(err)
	}
	evidence := factorgraph.Evidence{Hard: []factorgraph.Observation{{Var: 3, Value: 1}}}
	conditioned, err := net.Condition(evidence)
	if err != nil {
		t.Fatal(err)
	}
	p := problem.New(conditioned, problem.Options{})
	pair := []int{each - 1, each + 2}
	z, bound, shares, joint := sumParts(t, p, fit, 2, btn.Want{Marginals: true, Joint: pair})
	exact := oracle.SumModel(m, evidence)
	if off := oracle.RelativeError(z.Mant, z.Exp, exact.Z); off > 1e-11 || off > bound {
		t.Errorf("ln Z %v, off by %.2g", z.LogAbs(), off)
	}
	for v, row := range exact.Marginals() {
		for x, q := range row {
			if got := shares[2*v+x].Div(z).Float64(); math.Abs(got-q) > 1e-11 {
				t.Errorf("P(%d = %d) = %v, want %v", v, x, got, q)
			}
		}
	}
	const samples = 4000
	draws := &structured.Nodes{Fit: fit, To: structured.WholeShare, Ask: btn.AskSamples}
	drawn, err := draws.Contract(ctx, p, btn.Want{Samples: samples, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if off := math.Abs(drawn.Drawn.Weight.Div(z).Float64() - 1); off > 1e-11 {
		t.Errorf("draws weigh Z·(1 + %.2g)", off)
	}
	counts := make([]float64, 4)
	for s := range samples {
		x := drawn.Drawn.Values[s*2*each:][:2*each]
		counts[2*x[pair[0]]+x[pair[1]]]++
	}
	for c, n := range counts {
		q := joint[c].Div(z).Float64()
		if off := math.Abs(n/samples - q); off > 5*math.Sqrt(q*(1-q)/samples) {
			t.Errorf("cell %d: %v of the draws, the joint marginal is %v", c, n/samples, q)
		}
	}
}
