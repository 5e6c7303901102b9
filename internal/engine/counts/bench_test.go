package counts_test

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/engine/counts"
	"github.com/basetensor/basetensor/internal/generate"
	"github.com/basetensor/basetensor/internal/reparam"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// fields adds a random unary factor to every variable.
func fields(m *factorgraph.Model) *factorgraph.Model {
	rng := rand.New(rand.NewPCG(9, 9))
	for v, d := range m.Domains {
		w := make([]float64, d)
		for x := range w {
			w[x] = math.Exp(0.3 * rng.NormFloat64())
		}
		m.Factors = append(m.Factors,
			factorgraph.Factor{Scope: []int{v}, Table: &tensor.Dense{Shape: []int{d}, Data: w}})
	}
	return m
}

// symmetric adds a factor exp(coupling/n Σ_a c_a²) over some variables of d values.
func symmetric(m *factorgraph.Model, scope []int, d int, coupling float64) {
	n := len(scope)
	dims := make([]int, n)
	for k := range dims {
		dims[k] = d
	}
	levels, err := countspace.Identity(dims)
	if err != nil {
		panic(err)
	}
	size, err := levels.Size()
	if err != nil {
		panic(err)
	}
	values := scaled.NewVector(size)
	for i := range size {
		rest, first, sum := i, n, 0
		for range d - 1 {
			c := rest % (n + 1)
			rest /= n + 1
			first -= c
			sum += c * c
		}
		if first >= 0 {
			values.Set(i, scaled.FromLog(coupling/float64(n)*float64(sum+first*first)))
		}
	}
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope,
		Table: &tensor.Symmetric{Shape: dims, Levels: levels, Values: values}})
}

func upTo(from, to int) []int {
	var list []int
	for v := from; v < to; v++ {
		list = append(list, v)
	}
	return list
}

func variables(n, d int) *factorgraph.Model {
	m := &factorgraph.Model{Domains: make([]int, n)}
	for v := range m.Domains {
		m.Domains[v] = d
	}
	return m
}

// potts is a Curie–Potts model; in equal fields all legs are one kind.
func potts(n, q int, random bool) *factorgraph.Model {
	m := variables(n, q)
	if random {
		fields(m)
	}
	symmetric(m, upTo(0, n), q, 1)
	return m
}

// overlapping are two Curie–Weiss models of 300 spins in random fields that share 100.
func overlapping() *factorgraph.Model {
	m := fields(variables(500, 2))
	symmetric(m, upTo(0, 300), 2, 1)
	symmetric(m, upTo(200, 500), 2, 1)
	return m
}

// leaves is a binary tree with random tables and a cardinality factor over its leaves.
func leaves(n int) *factorgraph.Model {
	m := variables(2*n-1, 2)
	rng := rand.New(rand.NewPCG(8, 8))
	for v := 1; v < 2*n-1; v++ {
		w := make([]float64, 4)
		for x := range w {
			w[x] = math.Exp(0.5 * rng.NormFloat64())
		}
		m.Factors = append(m.Factors,
			factorgraph.Factor{Scope: []int{(v - 1) / 2, v}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: w}})
	}
	values := make([]float64, n+1)
	for c := n / 3; c <= n/2; c++ {
		values[c] = 1
	}
	s, err := factorgraph.Cardinality(variables(n, 2).Domains, values)
	if err != nil {
		panic(err)
	}
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: upTo(n-1, 2*n-1), Table: s})
	return m
}

// friends are friends and smokers, without evidence.
func friends(n int) *factorgraph.Model {
	m, err := generate.DefaultFriends(n).Model()
	if err != nil {
		panic(err)
	}
	return m
}

// BenchmarkMarginals: ln Z and all marginals in count space.
func BenchmarkMarginals(b *testing.B) {
	for _, c := range []struct {
		name  string
		model *factorgraph.Model
	}{
		{"potts q=3 n=200", potts(200, 3, false)},
		{"potts q=4 n=40", potts(40, 4, false)},
		{"potts q=3 n=200 random fields", potts(200, 3, true)},
		{"two Curie-Weiss of 300", overlapping()},
		{"tree of 1000 leaves", leaves(1000)},
		{"friends n=10000", friends(10_000)},
	} {
		net, err := reparam.Build(context.Background(), c.model, reparam.Options{})
		if err != nil {
			b.Fatal(err)
		}
		part := &btn.Counts{}
		for k, core := range net.Cores {
			if counts.Terms(core.T) != nil {
				part.Cores, part.Terms = append(part.Cores, k), append(part.Terms, 0)
			}
		}
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				f, err := counts.New(context.Background(), net, part, counts.Options{Memory: 4 << 30})
				if err != nil {
					b.Fatal(err)
				}
				if _, err := f.Value(context.Background(), true); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
