package gradients_test

import (
	"testing"

	"github.com/basetensor/basetensor/internal/methods/gradients"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestForgedCasesAreRefused: a task may come from anybody. Cases of other variables and trees of other tables are errors, or take no tree.
func TestForgedCasesAreRefused(t *testing.T) {
	m := &factorgraph.Model{Domains: []int{2, 2}, Factors: []factorgraph.Factor{
		{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{0.1, 0.2, 0.3, 0.4}}},
	}}
	net, err := reparam.Build(t.Context(), m, reparam.Options{Parametric: true})
	if err != nil {
		t.Fatal(err)
	}
	value := func(part *gradients.Cases, c *query.Cases) (btn.Value, error) {
		return contraction.Part(t.Context(), problem.New(net, problem.Options{}), part, btn.Want{Cases: c, Derivatives: true})
	}
	for name, c := range map[string]*query.Cases{
		"none":             nil,
		"another variable": {Variables: []int{2}, Rows: [][]int{{0}}},
		"another value":    {Variables: []int{1}, Rows: [][]int{{2}}},
		"a shorter row":    {Variables: []int{0, 1}, Rows: [][]int{{1}}},
		"a weight missing": {Variables: []int{1}, Rows: [][]int{{1}, {0}}, Weights: []float64{1}},
	} {
		if _, err := value(&gradients.Cases{}, c); fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, part := range map[string]*gradients.Cases{
		"no tree":           {},
		"more tables":       {Tables: 3, Merges: []int{0, 1, 3, 2}},
		"no such table":     {Tables: 1, Merges: []int{7, -1}},
		"a tree of its own": {Tables: 1},
	} {
		v, err := value(part, &query.Cases{Variables: []int{0}, Rows: [][]int{{1}, {-1}}, Weights: []float64{2, 1}})
		if err != nil || v.Cases == nil {
			t.Fatalf("%s: %v", name, err)
		}
		// 2 ln 0.7 + ln 1
		if got := v.Cases.Gradients[0][2]; got-(2/0.7+1) > 1e-12 || got-(2/0.7+1) < -1e-12 {
			t.Errorf("%s: derivative %v, want %v", name, got, 2/0.7+1)
		}
	}
	if _, err := value(&gradients.Cases{Merges: []int{1}}, nil); fault.CodeOf(err) != fault.BadInput {
		t.Errorf("half a merge: %v", err)
	}
}
