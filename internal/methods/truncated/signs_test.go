package truncated

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// vanishing is a grid of n by n spins, and a last variable whose value 0 leaves two terms of one factor that cancel exactly.
func vanishing(rng *rand.Rand, n int) *factorgraph.Model {
	m := &factorgraph.Model{}
	draw := func(k int) []float64 {
		out := make([]float64, k)
		for i := range out {
			out[i] = math.Exp(rng.NormFloat64())
		}
		return out
	}
	for v := range n * n {
		m.Domains = append(m.Domains, 2)
		for _, w := range []int{v + 1, v + n} {
			if w < n*n && (w != v+1 || w%n > 0) {
				m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v, w}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: draw(4)}})
			}
		}
	}
	m.Domains = append(m.Domains, 3)
	for _, v := range []int{0, n} {
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v, n * n}, Table: &tensor.Dense{Shape: []int{2, 3}, Data: draw(6)}})
	}
	f := &tensor.CP{Weights: []float64{1, 1, -1, -1}}
	for range n * n {
		two := draw(4)
		f.Shape, f.Vectors = append(f.Shape, 2), append(f.Vectors, append(two, two...))
	}
	f.Shape, f.Vectors = append(f.Shape, 3), append(f.Vectors, []float64{1, 1, 1, 1, 1, 1, 1, 1 - 1e-9, 0.5, 1, 1 - 1e-9, 0.5})
	all := make([]int, n*n+1)
	for v := range all {
		all[v] = v
	}
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: all, Table: f})
	return m
}

// signed returns the network of such a model with plans of both shapes.
func signed(t *testing.T, rng *rand.Rand, marginals bool) (*factorgraph.Model, *Prepared, []TruncatedPlan) {
	t.Helper()
	m := vanishing(rng, 3)
	net, err := reparam.Build(t.Context(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := Prepare(t.Context(), net, marginals)
	if err != nil {
		t.Fatal(err)
	}
	if !p.simple.Expression.Signed() {
		t.Fatal("no entry is below 0")
	}
	o := SearchOptions{Bond: 4, Memory: query.DefaultMemory, Seed: 1, Marginals: marginals}
	tree, err := p.searchTree(t.Context(), o, truncatedLeast)
	if err != nil {
		t.Fatal(err)
	}
	sweep, err := p.searchSweep(t.Context(), o, 1, truncatedLeast)
	if err != nil {
		t.Fatal(err)
	}
	return m, p, []TruncatedPlan{tree.plan, sweep.plan}
}

// A slice whose terms cancel is within its rounding of 0, and every other one within its own.
func TestSlicesStateTheirRounding(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 21))
	for range 20 {
		m, p, plans := signed(t, rng, true)
		for _, plan := range plans {
			whole, err := p.Contract(t.Context(), &plan, 1<<10, 0, false)
			if err != nil {
				t.Fatal(err)
			}
			for x := range 3 {
				only := factorgraph.Observe(map[int]int{9: x})
				q, err := p.Mask(only)
				if err != nil {
					t.Fatal(err)
				}
				a, err := q.Contract(t.Context(), &plan, 1<<10, 0, false)
				if err != nil {
					t.Fatal(err)
				}
				want := oracle.Z(m, only)
				exactly, _ := want.Float64()
				off := math.Abs(a.Z.Float64() - exactly)
				if e := a.Truncation.Rounding; e == nil || !(off <= e.Float64()) || e.IsZero() {
					t.Errorf("%s: slice %d is %v, want %v, rounding %v", plan.Family, x, a.Z.Float64(), want, e)
				}
				if size := math.Abs(whole.Z.Float64()); a.Truncation.Rounding.Float64() > 1e-9*size {
					t.Errorf("%s: rounding %v beside a total of %v", plan.Family, a.Truncation.Rounding, size)
				}
			}
		}
	}
}

// The tables of both signs are held beside their absolute values, and both contractions are paid: a contraction holds no more
// than its price and its memory, and says so before it begins.
func TestBothContractionsArePriced(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 2))
	for round := range 20 {
		marginals := round%2 == 1
		_, p, plans := signed(t, rng, marginals)
		positive := *p
		simple := *p.simple
		simple.Expression = p.simple.Expression.Absolute()
		positive.simple, positive.absolute, positive.signed = &simple, 0, false
		for _, plan := range plans {
			const bond = 3
			c, err := p.Price(t.Context(), &plan, bond, marginals)
			if err != nil {
				t.Fatal(err)
			}
			once, err := positive.Price(t.Context(), &plan, bond, marginals)
			if err != nil {
				t.Fatal(err)
			}
			second, err := positive.Price(t.Context(), &plan, bond, false)
			if err != nil {
				t.Fatal(err)
			}
			if least := once.Flops + second.Flops*(1-1e-9); plan.Family == query.FamilySweep && c.Flops < least || c.Flops <= once.Flops {
				t.Errorf("%s: %v flops for both contractions, one takes %v", plan.Family, c.Flops, once.Flops)
			}
			tables := 0.0
			for _, table := range p.simple.Expression.Tables {
				tables += float64(8 * len(table.Data))
			}
			for share := 0.5; share < 1.5; share += 0.04 {
				memory := int64(share * c.Bytes)
				a, err := p.Contract(t.Context(), &plan, bond, memory, marginals)
				switch {
				case errors.Is(err, sumproduct.ErrOverBudget) && memory < int64(c.Bytes):
				case err != nil:
					t.Fatal(err)
				case a.Truncation.Bytes > float64(memory):
					t.Fatalf("%s: %v bytes of %d", plan.Family, a.Truncation.Bytes, memory)
				}
			}
			both, err := p.Contract(t.Context(), &plan, bond, 0, false)
			if err != nil {
				t.Fatal(err)
			}
			alone, err := positive.Contract(t.Context(), &plan, bond, 0, false)
			if err != nil {
				t.Fatal(err)
			}
			if both.Truncation.Bytes < alone.Truncation.Bytes+tables {
				t.Errorf("%s: %v bytes of both, %v of absolute values alone, tables %v",
					plan.Family, both.Truncation.Bytes, alone.Truncation.Bytes, tables)
			}
			if room := p.absolute.freeMemory(0); float64(room) != float64(query.DefaultMemory)-tables || p.absolute.freeMemory(8) != 1 {
				t.Errorf("room of %d bytes beside tables of %v", room, tables)
			}
			_, err = p.SearchSweep(t.Context(), SearchOptions{Bond: bond, Memory: int64(tables), Seed: 1, Moves: 100})
			if !errors.Is(err, sumproduct.ErrOverBudget) || !strings.Contains(err.Error(), "absolute values") {
				t.Errorf("a sweep within the tables' bytes: %v", err)
			}
		}
	}
}
