package plan

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/engine/annealing"
	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestChainsBeginWithBeliefsWhereThatHelps: in strong fields, and not where beliefs speak for one of two modes.
func TestChainsBeginWithBeliefsWhereThatHelps(t *testing.T) {
	const n = 24
	r := rand.New(rand.NewPCG(1, 2))
	for _, c := range []struct {
		name            string
		field, coupling float64
		want            bool
	}{
		{"strong random fields", 2, 0.05, true},
		{"two modes", 0.02, 0.11, false},
		{"a small second mode", 0.1, 0.11, false},
	} {
		e := &sumproduct.Expression{Scale: scaled.One}
		for i := range n {
			e.Dims = append(e.Dims, 2)
			h := c.field
			if c.want && r.IntN(2) == 0 {
				h = -h
			}
			e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i}, Data: []float64{math.Exp(-h), math.Exp(h)}})
			for k := range i {
				same, other := math.Exp(c.coupling), math.Exp(-c.coupling)
				e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{k, i}, Data: []float64{same, other, other, same}})
			}
		}
		m, err := annealing.New(e)
		if err != nil {
			t.Fatal(err)
		}
		along, err := pilot(t.Context(), m, btn.Settings{Budget: 1e10, Seed: 3})
		if err != nil {
			t.Fatal(err)
		}
		if along.Product != c.want {
			t.Errorf("%s: chains that begin with beliefs: %v", c.name, along.Product)
		}
	}
}
