package plan

import (
	"context"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestSpanWarnings: closed forms say when entries are too far apart for float64, whichever table they are in,
// and only then; who contracts C = B finds out.
func TestSpanWarnings(t *testing.T) {
	for _, c := range []struct {
		name   string
		factor []float64 // of every pair in a ring of eight variables
		weight []float64 // of every variable
		warns  bool
	}{
		{"ordinary", []float64{1, 2, 2, 4}, []float64{1, 2}, false},
		{"scaled", []float64{1e-300, 2e-300, 2e-300, 4e-300}, []float64{1e300, 2e300}, false},
		{"zeros", []float64{1, 0, 0, 0}, []float64{1, 2}, false},
		{"many small spans", []float64{1, 1e-30, 1, 1e-30}, []float64{1, 1e-30}, false},
		{"factors", []float64{1, 1e-80, 1e40, 1e-40}, []float64{1, 2}, true},
		{"weights", []float64{1, 2, 2, 4}, []float64{1e-60, 1}, true},
	} {
		m := &factorgraph.Model{Domains: make([]int, 8)}
		for i := range m.Domains {
			m.Domains[i] = 2
			m.Factors = append(m.Factors,
				factorgraph.Factor{Scope: []int{i, (i + 1) % 8}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: c.factor}},
				factorgraph.Factor{Scope: []int{i}, Table: &tensor.Dense{Shape: []int{2}, Data: c.weight}})
		}
		net, err := reparam.Build(context.Background(), m, reparam.Options{})
		if err != nil {
			t.Fatal(err)
		}
		assignments, err := Assign(context.Background(), net, []btn.Demand{{}},
			query.Settings{Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius}.WithDefaults(), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		base, err := Assign(context.Background(), net, []btn.Demand{{}, {Want: btn.Want{Joint: []int{0, 3}}}},
			query.Settings{}.WithDefaults(), nil, nil)
		if err != nil || base[0].Unsure || base[1].Unsure {
			t.Errorf("%s: C = B is unsure beforehand, %v", c.name, err)
		}
		for q, a := range assignments {
			warns := strings.Contains(strings.Join(a.Warnings, ";"), "more than float64 holds")
			if a.Error != nil || warns != c.warns || a.Unsure != c.warns {
				t.Errorf("%s, query %d: warnings %q, error %v", c.name, q, a.Warnings, a.Error)
			}
		}
	}
}
