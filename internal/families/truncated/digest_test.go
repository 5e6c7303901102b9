package truncated

import (
	"testing"

	"github.com/basetensor/basetensor/internal/network/preprocess"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// TestProjectorsKeyStays: projectors are cached under it.
func TestProjectorsKeyStays(t *testing.T) {
	e := &sumproduct.Expression{Dims: []int{2, 3}, Tables: []sumproduct.Table{
		{Scope: []int{1, 0}, Data: []float64{1, -2, 0.5, 0, 1e300, 3}},
		{Scope: []int{}, Data: []float64{7}},
	}}
	p := &Prepared{simple: &preprocess.Result{Expression: e}}
	plan := &TruncatedPlan{Tree: [][]int{{2}, nil, {0, -1}}}
	if got := p.projectorsKey(plan, 16); got != "5ec6fee37d7c3090d743add0538125079781164348306eb302822941d3f0935e" {
		t.Errorf("the key is %s", got)
	}
}
