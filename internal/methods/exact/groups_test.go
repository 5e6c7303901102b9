package exact

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// directed returns a network of n variables in which each has
// a table given up to three before it, some of them gates.
func directed(rng *rand.Rand, n int) *factorgraph.Model {
	m := &factorgraph.Model{}
	for v := range n {
		m.Domains = append(m.Domains, 2+rng.IntN(2))
		scope, dims, rows := []int{}, []int{}, 1
		for _, u := range rng.Perm(v)[:min(v, rng.IntN(4))] {
			scope, dims, rows = append(scope, u), append(dims, m.Domains[u]), rows*m.Domains[u]
		}
		d := m.Domains[v]
		data, gate := make([]float64, rows*d), rng.IntN(2) == 0
		for r := range rows {
			sum := 0.0
			for x := range d {
				data[r*d+x] = 0.05 + rng.Float64()
				sum += data[r*d+x]
			}
			only := rng.IntN(d)
			for x := range d {
				data[r*d+x] /= sum
				if gate && v > 2 {
					data[r*d+x] = 0
				}
			}
			if gate && v > 2 {
				data[r*d+only] = 1
			}
		}
		m.Factors = append(m.Factors,
			factorgraph.Factor{Scope: append(scope, v),
				Table: &tensor.Dense{Shape: append(dims, d), Data: data}})
	}
	return m
}

// enumerate adds the product of all factors up over all assignments that agree with the evidence.
func enumerateMarginals(m *factorgraph.Model, hard map[int]int) (z float64, marginals [][]float64) {
	for _, d := range m.Domains {
		marginals = append(marginals, make([]float64, d))
	}
	x := make([]int, len(m.Domains))
	for {
		p := 1.0
		for v, want := range hard {
			if x[v] != want {
				p = 0
			}
		}
		for _, f := range m.Factors {
			if p == 0 {
				break
			}
			at := 0
			for _, v := range f.Scope {
				at = at*m.Domains[v] + x[v]
			}
			p *= f.Table.(*tensor.Dense).Data[at]
		}
		z += p
		for v := range x {
			marginals[v][x[v]] += p
		}
		k := len(x) - 1
		for ; k >= 0; k-- {
			if x[k]++; x[k] < m.Domains[k] {
				break
			}
			x[k] = 0
		}
		if k < 0 {
			return z, marginals
		}
	}
}

// Every split of the groups over components adds up to
// the marginals that enumeration gives, and to Z once.
func TestMarginalsGroupByGroup(t *testing.T) {
	ctx := context.Background()
	grouped := 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(21, seed))
		m := directed(rng, 4+rng.IntN(8))
		net, err := reparam.Build(ctx, m, reparam.Options{})
		if err != nil {
			t.Fatal(err)
		}
		hard := map[int]int{}
		var ev factorgraph.Evidence
		if seed%3 > 0 {
			v := rng.IntN(len(m.Domains))
			hard[v] = rng.IntN(m.Domains[v])
			ev.Hard = []factorgraph.Observation{{Var: v, Value: hard[v]}}
		}
		want, marginals := enumerateMarginals(m, hard)
		if want == 0 {
			continue
		}
		given, err := net.Condition(ev)
		if err != nil {
			t.Fatal(err)
		}
		p, err := Prepare(ctx, given, true)
		if err != nil {
			t.Fatal(err)
		}
		c, plans, err := p.PlanGroups(ctx, PlanOptions{Flops: math.Inf(1)}, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c == nil {
			continue // no index is left whose marginal is missing
		}
		grouped++
		if len(plans) != len(c.Groups) || int64(len(c.Groups)) != int64(len(plans)) {
			t.Fatalf("%d plans for %d groups, count %d",
				len(plans), len(c.Groups), int64(len(c.Groups)))
		}
		cut := int64(rng.IntN(len(plans) + 1))
		var z scaled.Number
		rows := make([][]scaled.Number, len(m.Domains))
		for _, part := range [][2]int64{{0, cut}, {cut, int64(len(c.Groups))}} {
			a, err := p.AnswerGroups(ctx, c, Options{From: part[0], To: part[1]})
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			z = z.Add(a.Z)
			for v, row := range a.Marginals {
				if row != nil && rows[v] != nil {
					t.Fatalf("seed %d: variable %d is in two groups", seed, v)
				}
				if row != nil {
					rows[v] = row
				}
			}
		}
		if got := z.Float64(); math.Abs(got-want) > 1e-12*want {
			t.Errorf("seed %d: Z = %v, want %v", seed, got, want)
		}
		for v, row := range rows {
			for x := range m.Domains[v] {
				what := fmt.Sprintf("seed %d: M_%d(%d)", seed, v, x)
				if row == nil {
					t.Fatalf("%s is in no group", what)
				}
				if got := row[x].Float64(); math.Abs(got-marginals[v][x]) > 1e-12*want {
					t.Errorf("%s = %v, want %v", what, got, marginals[v][x])
				}
			}
		}
	}
	if grouped < 20 {
		t.Errorf("only %d networks had groups", grouped)
	}
	rng := rand.New(rand.NewPCG(21, 99))
	net, _ := reparam.Build(ctx, directed(rng, 12), reparam.Options{})
	p, err := Prepare(ctx, net, true)
	if err != nil {
		t.Fatal(err)
	}
	if c, _, err := p.PlanGroups(ctx, PlanOptions{Flops: -1}, nil); c != nil || err != nil {
		t.Errorf("groups beyond the price: %v, %v", c, err)
	}
}
