package sampled

import (
	"math"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/sampled/annealing"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// pulled is a model of n uncoupled spins with a switch that pulls all of them to one side, with a weight for each.
func pulled(n int, weight float64) *sumproduct.Expression {
	e := &sumproduct.Expression{Scale: scaled.One, Dims: slices.Repeat([]int{2}, n+1)}
	for i := range n {
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{n, i}, Data: []float64{1, 1, weight * math.Exp(-8), weight}})
	}
	return e
}

// TestChainsBeginFromModesThatTheyMiss: from a narrow mode beside a wide one, even if either has only a tenth of the weight;
// not without a narrow mode, nor if the budget is too small for a search.
func TestChainsBeginFromModesThatTheyMiss(t *testing.T) {
	glass, err := generate.Complete(30, generate.Ising{Delta: 0.2, Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	of := func(e *sumproduct.Expression) *annealing.Model {
		m, err := annealing.New(e)
		if err != nil {
			t.Fatal(err)
		}
		return m
	}
	for _, c := range []struct {
		name   string
		model  *annealing.Model
		budget float64
		want   bool
	}{
		{"two modes of equal weight", of(pulled(50, 2)), 1e9, true},
		{"the wide one has a tenth", of(pulled(50, 2.09)), 1e9, true},
		{"the narrow one has a tenth", of(pulled(50, 1.915)), 1e9, true},
		{"the narrow one has nothing", of(pulled(50, 1.5)), 1e9, false},
		{"a small budget", of(pulled(50, 2)), 1e6, false},
		{"a warm glass", chainsOf(t, glass).Model, 1e9, false},
	} {
		along, _, err := Pilot(t.Context(), c.model, query.Settings{Budget: c.budget, Memory: 1 << 20, Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		if (along.Modes > 0) != c.want {
			t.Errorf("%s: chains begin from %d modes", c.name, along.Modes)
		}
		one := *along
		one.Modes = 0
		each, setup := along.flops(c.model)
		if alone, none := one.flops(c.model); each != alone*float64(1+along.Modes) || (setup > none) != c.want {
			t.Errorf("%s: a component of %d modes takes %v and %v, one of none %v and %v", c.name, along.Modes, each, setup, alone, none)
		}
	}
}
