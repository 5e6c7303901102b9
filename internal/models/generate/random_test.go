package generate_test

import (
	"math"
	"reflect"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

func TestBipartiteEdges(t *testing.T) {
	m, err := generate.Bipartite(2, 3, generate.Ising{Delta: 1})
	if err != nil {
		t.Fatal(err)
	}
	var edges [][]int
	for _, f := range m.Factors[5:] {
		edges = append(edges, f.Scope)
	}
	if want := [][]int{{0, 2}, {0, 3}, {0, 4}, {1, 2}, {1, 3}, {1, 4}}; !reflect.DeepEqual(edges, want) {
		t.Errorf("edges %v, want %v", edges, want)
	}
}

// span returns the least and the largest ln of the entries of the factors with this many variables.
func span(m *factorgraph.Model, arity int) (low, high float64) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, f := range m.Factors {
		if len(f.Scope) != arity {
			continue
		}
		for _, x := range f.Table.(*tensor.Dense).Data {
			low, high = min(low, math.Log(x)), max(high, math.Log(x))
		}
	}
	return low, high
}

func TestPairsOfAnyDomain(t *testing.T) {
	m, err := generate.Grid(6, 7, generate.Ising{Delta: 2, Domain: 4, Seed: 3})
	if err != nil || m.Validate() != nil {
		t.Fatal(err, m.Validate())
	}
	if len(m.Domains) != 42 || slices.Min(m.Domains) != 4 || slices.Max(m.Domains) != 4 {
		t.Errorf("domains %v", m.Domains)
	}
	if low, high := span(m, 1); low < -0.1 || low > -0.09 || high > 0.1 || high < 0.09 {
		t.Errorf("fields from %v to %v", low, high)
	}
	if low, high := span(m, 2); low < -2 || low > -1.9 || high > 2 || high < 1.9 {
		t.Errorf("couplings from %v to %v", low, high)
	}
	data := m.Factors[42].Table.(*tensor.Dense).Data
	if sorted := slices.Sorted(slices.Values(data)); len(slices.Compact(sorted)) != 16 {
		t.Errorf("entries are not drawn one by one: %v", data)
	}
}

func TestRandomDegreesAndScopes(t *testing.T) {
	for _, o := range []generate.RandomOptions{
		{Strength: 1}, {Variables: 3, Degree: 5, Strength: 1}, {
			Variables: 100, Degree: 4, Arity: 3, Strength: 1, Seed: 2,
		},
		{
			Variables: 11,
			Degree:    7,
			Arity:     5,
			MaxDomain: 3,
			Strength:  3,
		}, {Variables: 50, Degree: 1, Arity: 1, Strength: 1}, {
			Variables: 7,
			Degree:    3,
			Arity:     4,
			MinDomain: 6,
			Strength:  1,
		},
	} {
		m, err := generate.Random(o)
		if err != nil {
			t.Fatal(err)
		}
		if err := m.Validate(); err != nil { // no scope has a variable twice
			t.Fatal(err)
		}
		count, extra := make([]int, len(m.Domains)), 0
		arity := max(o.Arity, 1)
		if o.Arity == 0 {
			arity = 3
		}
		for _, f := range m.Factors {
			if len(f.Scope) != arity {
				t.Fatalf("%+v: scope %v", o, f.Scope)
			}
			for _, v := range f.Scope {
				count[v]++
			}
		}
		degree := max(o.Degree, 1)
		if o.Degree == 0 {
			degree = 2
		}
		for _, c := range count {
			if c != degree && c != degree+1 {
				t.Errorf("%+v: a variable has %d factors", o, c)
			}
			extra += c - degree
		}
		if extra >= arity {
			t.Errorf("%+v: %d more than asked for", o, extra)
		}
		if low, high := span(m, arity); low < -o.Strength || high > o.Strength || high-low < o.Strength {
			t.Errorf("%+v: ln entries from %v to %v", o, low, high)
		}
	}
	m, _ := generate.Random(generate.RandomOptions{Variables: 200, Strength: 1})
	if slices.Min(m.Domains) != 2 || slices.Max(m.Domains) != 5 {
		t.Errorf("domains %v", m.Domains)
	}
	again, _ := generate.Random(generate.RandomOptions{Variables: 200, Strength: 1})
	other, _ := generate.Random(generate.RandomOptions{Variables: 200, Strength: 1, Seed: 1})
	if !reflect.DeepEqual(m, again) || reflect.DeepEqual(m, other) {
		t.Error("the seed does not decide the model")
	}
}

// TestLargeModelsAreFewArrays: a model is not a million small allocations.
func TestLargeModelsAreFewArrays(t *testing.T) {
	allocations := testing.AllocsPerRun(1, func() {
		m, err := generate.Grid(300, 300, generate.Ising{Delta: 1})
		if err != nil || len(m.Factors) != 300*300+2*300*299 {
			t.Error(err)
		}
	})
	if allocations > 50 {
		t.Errorf("%v allocations", allocations)
	}
}
