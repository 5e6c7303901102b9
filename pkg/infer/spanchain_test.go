package infer_test

// Models of 15 to 60 variables whose numbers span more than a float64 holds, against dynamic programming in 400 bits.

import (
	"context"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// chained is a model whose factors are over variables at most two apart, as a function per variable of its value and the two before it.
type chained struct {
	domains []int
	at      [][]*big.Float // by variable: (value two before, value before, value)
}

const chainBits = 400

func big1() *big.Float { return new(big.Float).SetPrec(chainBits).SetInt64(1) }

// dim is the number of values of a variable, 1 before the first.
func (c chained) dim(v int) int {
	if v < 0 {
		return 1
	}
	return c.domains[v]
}

// newChained multiplies the factors of a model and evidence out; swapped stands in the place of factor number skip.
func newChained(m *factorgraph.Model, ev factorgraph.Evidence, skip int, swapped []float64) chained {
	c := chained{domains: m.Domains}
	for v := range m.Domains {
		list := make([]*big.Float, c.dim(v-2)*c.dim(v-1)*c.dim(v))
		for k := range list {
			list[k] = big1()
		}
		c.at = append(c.at, list)
	}
	multiply := func(scope []int, entry func(x []int) *big.Float) {
		v := slices.Max(scope)
		x := make([]int, len(scope))
		for k := range c.at[v] {
			values := []int{k / c.dim(v) / c.dim(v-1), k / c.dim(v) % c.dim(v-1), k % c.dim(v)}
			for pos, u := range scope {
				x[pos] = values[u-v+2]
			}
			c.at[v][k].Mul(c.at[v][k], entry(x))
		}
	}
	for j, f := range m.Factors {
		if j == skip {
			multiply(f.Scope, func(x []int) *big.Float {
				at := 0
				for pos, u := range f.Scope {
					at = at*m.Domains[u] + x[pos]
				}
				return big.NewFloat(swapped[at])
			})
			continue
		}
		multiply(f.Scope, func(x []int) *big.Float { return oracle.Entry(f.Table, x) })
	}
	for _, h := range ev.Hard {
		multiply([]int{h.Var}, func(x []int) *big.Float {
			if x[0] == h.Value {
				return big1()
			}
			return new(big.Float)
		})
	}
	for _, s := range ev.Soft {
		multiply([]int{s.Var}, func(x []int) *big.Float { return big.NewFloat(s.Weights[x[0]]) })
	}
	return c
}

// ranked is an assignment of the first variables, and its weight.
type ranked struct {
	weight *big.Float
	values []int
}

// best returns the count best assignments of the first variables up to the set, the others summed out.
func (c chained) best(count, set int) []ranked {
	n := len(c.domains)
	// the sums over the variables behind, by the values of the two before
	behind := slices.Repeat([]*big.Float{big1()}, c.dim(n-2)*c.dim(n-1))
	for v := n - 1; v >= set; v-- {
		next := make([]*big.Float, c.dim(v-2)*c.dim(v-1))
		for k := range next {
			next[k] = new(big.Float).SetPrec(chainBits)
			for x := range c.dim(v) {
				next[k].Add(next[k], new(big.Float).Mul(c.at[v][k*c.dim(v)+x], behind[k%c.dim(v-1)*c.dim(v)+x]))
			}
		}
		behind = next
	}
	lists := [][]ranked{{{big1(), nil}}}
	for v := range set {
		next := make([][]ranked, c.dim(v-1)*c.dim(v))
		for k, list := range lists {
			for x := range c.dim(v) {
				for _, r := range list {
					w := new(big.Float).Mul(r.weight, c.at[v][k*c.dim(v)+x])
					if w.Sign() > 0 {
						to := &next[k%c.dim(v-1)*c.dim(v)+x]
						*to = append(*to, ranked{w, append(slices.Clone(r.values), x)})
					}
				}
			}
		}
		for k := range next {
			slices.SortFunc(next[k], func(a, b ranked) int { return b.weight.Cmp(a.weight) })
			next[k] = next[k][:min(count, len(next[k]))]
		}
		lists = next
	}
	var all []ranked
	for k, list := range lists {
		for _, r := range list {
			if w := r.weight.Mul(r.weight, behind[k]); w.Sign() > 0 {
				all = append(all, r)
			}
		}
	}
	slices.SortFunc(all, func(a, b ranked) int { return b.weight.Cmp(a.weight) })
	return all[:min(count, len(all))]
}

// z is the sum over all variables.
func (c chained) z() *big.Float {
	if list := c.best(1, 0); len(list) > 0 {
		return list[0].weight
	}
	return new(big.Float)
}

// ln of a number above 0.
func lnBig(x *big.Float) float64 {
	m := new(big.Float)
	e := x.MantExp(m)
	f, _ := m.Float64()
	return math.Log(f) + float64(e)*math.Ln2
}

// TestLongModelsThatSpanMoreThanFloat64: chains of factors over up to three neighbours, of every form.
func TestLongModelsThatSpanMoreThanFloat64(t *testing.T) {
	zeros := 0
	models := nightly.Rounds(40, 400)
	for seed := range uint64(models) {
		rng := rand.New(rand.NewPCG(seed, 73))
		s := span{rng, []float64{300, 100, 20}[rng.IntN(3)], []int64{3000, 300}[rng.IntN(2)], []float64{0, 0.05}[rng.IntN(2)]}
		m := &factorgraph.Model{}
		for range 15 + rng.IntN(46) {
			m.Domains = append(m.Domains, 2+rng.IntN(2))
		}
		n := len(m.Domains)
		for v := range n {
			for range 1 + rng.IntN(2) {
				scope := []int{v}
				for _, u := range []int{v - 1, v - 2} {
					if u >= 0 && rng.IntN(4) > 0 {
						scope = append(scope, u)
					}
				}
				rng.Shuffle(len(scope), func(i, j int) { scope[i], scope[j] = scope[j], scope[i] })
				dims := make([]int, len(scope))
				for pos, u := range scope {
					dims[pos] = m.Domains[u]
				}
				m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: s.tensor(dims)})
			}
		}
		var ev factorgraph.Evidence
		for v, d := range m.Domains {
			switch rng.IntN(12) {
			case 0:
				ev.Hard = append(ev.Hard, factorgraph.Observation{Var: v, Value: rng.IntN(d)})
			case 1:
				ev.Soft = append(ev.Soft, factorgraph.Likelihood{Var: v, Weights: s.numbers(d)})
			}
		}

		set := make([]int, 1+rng.IntN(n))
		for v := range set {
			set[v] = v
		}
		results, err := infer.Run(context.Background(), infer.Request{Job: "t", Model: m, Queries: []query.Query{
			{Evidence: ev, Marginals: true}, {Evidence: ev, MPE: true, Best: 3, Map: set}, {Evidence: ev, Gradients: true},
		}})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		c := newChained(m, ev, -1, nil)
		z := c.z()
		for q, r := range results {
			if r.Error != nil || !r.Exact || r.Zero != (z.Sign() == 0) {
				t.Fatalf("seed %d, query %d: %+v, exact %v, zero %v, %q", seed, q, r.Error, r.Exact, r.Zero, r.Warnings)
			}
			if !r.Zero && math.Abs(*r.LogZ-lnBig(z)) > 1e-10+0x1p-50*math.Abs(lnBig(z)) {
				t.Errorf("seed %d, query %d: ln Z %v, want %v", seed, q, *r.LogZ, lnBig(z))
			}
		}
		if z.Sign() == 0 {
			zeros++
			continue
		}

		v := rng.IntN(n)
		for x := range m.Domains[v] {
			given, err := factorgraph.NewEvidence(append([]factorgraph.Observation{{Var: v, Value: x}},
				slices.DeleteFunc(slices.Clone(ev.Hard), func(o factorgraph.Observation) bool { return o.Var == v && o.Value == x })...), ev.Soft)
			want := 0.0
			if err == nil {
				want, _ = new(big.Float).Quo(newChained(m, given, -1, nil).z(), z).Float64()
			}
			if got := results[0].Marginals[v].P[x]; math.Abs(got-want) > 1e-11 {
				t.Errorf("seed %d: P(%d = %d) is %v, want %v", seed, v, x, got, want)
			}
		}

		best, found := c.best(3, n), results[1].MPE
		got := append([]query.Alternative{{Assignment: found.Assignment, LnWeight: found.LnWeight}}, found.Others...)
		if len(got) != len(best) {
			t.Fatalf("seed %d: %d assignments, want %d", seed, len(got), len(best))
		}
		for k, b := range best {
			if want := lnBig(b.weight); math.Abs(got[k].LnWeight-want) > 1e-12*(1+math.Abs(want)) {
				t.Errorf("seed %d: assignment %d has %v, want %v", seed, k, got[k].LnWeight, want)
			}
			if apart := len(best) < k+2 || lnBig(b.weight)-lnBig(best[k+1].weight) > 1e-9; apart &&
				(k == 0 || lnBig(best[k-1].weight)-lnBig(b.weight) > 1e-9) && !slices.Equal(got[k].Assignment, b.values) {
				if k+1 < len(best) || k == 0 { // the one behind the last is not known
					t.Errorf("seed %d: assignment %d is %v, want %v", seed, k, got[k].Assignment, b.values)
				}
			}
		}
		some := c.best(1, len(set))[0]
		if a := results[1].Map; !a.Exact || !slices.Equal(a.Assignment, some.values) ||
			math.Abs(a.LnWeight-lnBig(some.weight)) > 1e-11*(1+math.Abs(lnBig(some.weight))) {
			t.Errorf("seed %d: MAP %v with %v, want %v with %v", seed, a.Assignment, a.LnWeight, some.values, lnBig(some.weight))
		}

		for range 2 {
			f := rng.IntN(len(m.Factors))
			d, ok := m.Factors[f].Table.(*tensor.Dense)
			if !ok {
				continue
			}
			k := rng.IntN(len(d.Data))
			one := make([]float64, len(d.Data))
			one[k] = 1
			want := newChained(m, ev, f, one).z()
			var mant float64
			var exp int64
			if r := results[2]; r.Gradients.By != nil {
				mant = r.Gradients.By[f][k]
			} else {
				mant, exp = r.Gradients.Mantissas[f][k], r.Gradients.Exponents[f][k]
			}
			if want.Sign() == 0 || results[2].Gradients.By != nil && lnBig(want)-lnBig(z) < -700 {
				continue
			}
			if ln := math.Log(mant) + float64(exp)*math.Ln2; math.Abs(ln-(lnBig(want)-lnBig(z))) > 1e-10+0x1p-50*math.Abs(lnBig(z)) {
				t.Errorf("seed %d: ln of the gradient by number %d of factor %d is %v, want %v", seed, k, f, ln, lnBig(want)-lnBig(z))
			}
		}
	}
	if zeros > models/2 {
		t.Errorf("%d of %d models are 0", zeros, models)
	}
}
