package preprocess_test

import (
	"context"
	"math/big"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/preprocess"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// counting is a chain of n binary variables with pairwise factors, weights, and one factor over all
// of them that is a function of a state: state 0 at first, next[state][x] after a value x, and
// accept[state] at the end.
type counting struct {
	n      int
	pair   [][]float64 // 2×2 between neighbours
	weight [][]float64 // per variable and value
	next   [][2]int
	gain   func(i, x int) float64 // multiplier of the factor
	accept []float64
}

// z sums over (state, last value): the oracle, which shares nothing with tensors.
func (c *counting) z() *big.Float {
	type key struct{ state, x int }
	number := func(f float64) *big.Float { return new(big.Float).SetPrec(400).SetFloat64(f) }
	sums := map[key]*big.Float{{0, -1}: number(1)}
	for i := range c.n {
		after := map[key]*big.Float{}
		for k, v := range sums {
			for x := range 2 {
				term := number(c.weight[i][x])
				term.Mul(term, v)
				term.Mul(term, number(c.gain(i, x)))
				if k.x >= 0 {
					term.Mul(term, number(c.pair[i-1][2*k.x+x]))
				}
				to := key{c.next[k.state][x], x}
				if after[to] == nil {
					after[to] = number(0)
				}
				after[to].Add(after[to], term)
			}
		}
		sums = after
	}
	z := number(0)
	for k, v := range sums {
		z.Add(z, v.Mul(v, number(c.accept[k.state])))
	}
	return z
}

// model is the chain with the given factor over all variables.
func (c *counting) model(t testing.TB, over tensor.Tensor) *factorgraph.Model {
	t.Helper()
	m := &factorgraph.Model{}
	var all []int
	for i := range c.n {
		m.Domains = append(m.Domains, 2)
		all = append(all, i)
		m.Factors = append(m.Factors,
			factorgraph.Factor{Scope: []int{i},
				Table: &tensor.Dense{Shape: []int{2}, Data: c.weight[i]}})
		if i > 0 {
			m.Factors = append(m.Factors,
				factorgraph.Factor{Scope: []int{i - 1, i},
					Table: &tensor.Dense{Shape: []int{2, 2}, Data: c.pair[i-1]}})
		}
	}
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: all, Table: over})
	return m
}

func newCounting(
	rng *rand.Rand, n, states int, next func(s, x int) int, accept func(s int) float64,
) *counting {
	c := &counting{n: n, gain: func(int, int) float64 { return 1 }}
	two := func(k int) []float64 {
		list := make([]float64, k)
		for i := range list {
			list[i] = 0.25 + rng.Float64()
		}
		return list
	}
	for i := range n {
		c.weight = append(c.weight, two(2))
		if i > 0 {
			c.pair = append(c.pair, two(4))
		}
	}
	for s := range states {
		c.next = append(c.next, [2]int{next(s, 0), next(s, 1)})
		c.accept = append(c.accept, accept(s))
	}
	return c
}

func counter(s, x int) int { return s + x }
func parity(s, x int) int  { return (s + x) % 2 }

func when(state int) func(int) float64 {
	return func(s int) float64 {
		if s == state {
			return 1
		}
		return 0
	}
}

// solve takes a model through the whole way to Z:
// network, expression, simplification, order, contraction.
func solve(
	t testing.TB, m *factorgraph.Model, o preprocess.Options,
) (scaled.Number, *preprocess.Result, float64) {
	t.Helper()
	e, err := lower.Build(context.Background(),
		network(t, m, factorgraph.Evidence{}, reparam.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	r, err := preprocess.Run(context.Background(), e, o)
	if err != nil {
		t.Fatal(err)
	}
	h := r.Expression.Hypergraph()
	order := orders.Best(h)
	z, stats, err := einsum.Contract(t.Context(), r.Expression, order, einsum.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return z, r, stats.Flops
}

// noisyOr is a chain of n causes under a noisy-or, with its effect weighted;
// Z follows from the sums with and without causes failing.
func noisyOr(t testing.TB, rng *rand.Rand, n int) (*factorgraph.Model, *big.Float) {
	t.Helper()
	const leak = 0.05
	activate := make([]float64, n)
	for i := range activate {
		activate[i] = rng.Float64()
	}
	or, err := factorgraph.NoisyOr(leak, activate...)
	if err != nil {
		t.Fatal(err)
	}
	c := newCounting(rng, n, 1, func(s, _ int) int { return s }, when(0))
	m := c.model(t, nil)
	m.Factors = m.Factors[:len(m.Factors)-1]
	effect := []float64{0.3, 0.9}
	scope := make([]int, n+1)
	for i := range scope {
		scope[i] = i
	}
	m.Domains = append(m.Domains, 2)
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: or},
		factorgraph.Factor{Scope: []int{n}, Table: &tensor.Dense{Shape: []int{2}, Data: effect}})
	all := c.z()
	c.gain = func(i, x int) float64 { return 1 - float64(x)*activate[i] }
	none := c.z()
	none.Mul(none, big.NewFloat(1-leak))
	z := new(big.Float).SetPrec(400).Sub(all, none)
	z.Mul(z, big.NewFloat(effect[1]))
	return m, z.Add(z, none.Mul(none, big.NewFloat(effect[0])))
}

// TestHighArityIsQuick: a noisy-or of 60 causes, exactly 10 of 40 and the parity of 200 variables,
// each with factors between neighbours, are exact within a million operations.
func TestHighArityIsQuick(t *testing.T) {
	const seed = 11
	rng := rand.New(rand.NewPCG(seed, 1))
	exactly, err := factorgraph.Exactly(40, 10)
	if err != nil {
		t.Fatal(err)
	}
	xor, err := factorgraph.Parity(200, true)
	if err != nil {
		t.Fatal(err)
	}
	ten, odd := newCounting(rng, 40, 41, counter, when(10)), newCounting(rng, 200, 2, parity,
		when(1))
	causes, wantCauses := noisyOr(t, rng, 60)
	for _, c := range []struct {
		name string
		m    *factorgraph.Model
		want *big.Float
	}{
		{"exactly 10 of 40", ten.model(t, exactly), ten.z()},
		{"parity of 200", odd.model(t, xor), odd.z()},
		{"noisy-or of 60", causes, wantCauses},
	} {
		for _, o := range []preprocess.Options{{}, {Marginals: true}} {
			start := time.Now()
			z, r, flops := solve(t, c.m, o)
			took := time.Since(start)
			t.Logf("%s: %.3g flops, %v\n%v", c.name, flops, took, r.Report)
			if d := oracle.RelativeError(z.Mant, z.Exp, c.want); d > tolerance {
				t.Errorf("%s: off by %.3g", c.name, d)
			}
			if flops > 1e6 {
				t.Errorf("%s: %.3g flops", c.name, flops)
			}
		}
	}
}

// TestDenseTablesWithStructure: the same factors given as tables of all their entries, in chains
// so wide that tables dominate an elimination's cost; each is taken apart, and Z stays.
func TestDenseTablesWithStructure(t *testing.T) {
	const seed = 12
	rng := rand.New(rand.NewPCG(seed, 1))
	const n, few = 17, 10
	var latent [2][few][2]float64
	for h := range latent {
		for i := range latent[h] {
			latent[h][i] = [2]float64{0.1 + rng.Float64(), 0.1 + rng.Float64()}
		}
	}
	clause := func(s, x int) int { return max(s, x) }
	for _, c := range []struct {
		name  string
		chain *counting
	}{
		{"exactly 5 of 17", newCounting(rng, n, n+1, counter, when(5))},
		{"parity of 17", newCounting(rng, n, 2, parity, when(1))},
		{"clause of 17", newCounting(rng, n, 2, clause, when(1))},
		{"any count of 17", newCounting(rng, n, n+1, counter,
			func(s int) float64 { return 1 / float64(1+s*s) })},
	} {
		data := make([]float64, 0, 1<<n)
		oracle.Each(binary(n), func(x []int) {
			s := 0
			for _, v := range x {
				s = c.chain.next[s][v]
			}
			data = append(data, c.chain.accept[s])
		})
		r := dense(t, c.name, c.chain, data, c.chain.z(), preprocess.Options{Marginals: true})
		if r.Report.Chains != 1 {
			t.Errorf("%s: no chain: %v", c.name, r.Report)
		}
	}
	mixture := newCounting(rng, few, 1, func(s, _ int) int { return s }, when(0))
	want := new(big.Float).SetPrec(400)
	for h := range latent {
		mixture.gain = func(i, x int) float64 { return latent[h][i][x] }
		want.Add(want, mixture.z())
	}
	var data []float64
	oracle.Each(binary(few), func(x []int) {
		a, b := 1.0, 1.0
		for i, v := range x {
			a, b = a*latent[0][i][v], b*latent[1][i][v]
		}
		data = append(data, a+b)
	})
	if r := dense(t, "a mixture of two", mixture, data, want,
		preprocess.Always(preprocess.Options{Marginals: true})); r.Report.Stars != 1 {
		t.Errorf("no star: %v", r.Report)
	}
}

// dense solves a chain with a table over all its variables, whole and taken apart.
func dense(
	t *testing.T, name string, c *counting, data []float64, want *big.Float, o preprocess.Options,
) *preprocess.Result {
	t.Helper()
	m := c.model(t, &tensor.Dense{Shape: binary(c.n), Data: data})
	start := time.Now()
	z, r, flops := solve(t, m, o)
	took := time.Since(start)
	whole, _, before := solve(t, m, preprocess.Options{Marginals: true, NoStructure: true})
	t.Logf("%s: %.3g → %.3g flops, %v", name, before, flops, took)
	for _, v := range []scaled.Number{z, whole} {
		if d := oracle.RelativeError(v.Mant, v.Exp, want); d > tolerance {
			t.Errorf("%s: off by %.3g", name, d)
		}
	}
	if flops > before/4 {
		t.Errorf("%s: %.3g flops, %.3g with the table whole", name, flops, before)
	}
	return r
}

func binary(n int) []int {
	dims := make([]int, n)
	for i := range dims {
		dims[i] = 2
	}
	return dims
}
