package reparam

import (
	"context"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// A network of a million factors is a few large lists, not some for every factor: the exception
// is the weights of every variable, which have a length of their own.
func TestAllocationsPerFactor(t *testing.T) {
	const n = 5000
	m := &factorgraph.Model{Domains: make([]int, n)}
	for i := range n {
		m.Domains[i] = 2
		m.Factors = append(m.Factors,
			factorgraph.Factor{Scope: []int{i}, Table: &tensor.Dense{Shape: []int{2}, Data: []float64{1, 2}}},
			factorgraph.Factor{
				Scope: []int{i, (i + 1) % n},
				Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 2, 3, 4}},
			})
	}
	per := testing.AllocsPerRun(3, func() {
		if _, err := Build(context.Background(), m, Options{}); err != nil {
			t.Fatal(err)
		}
	}) / (2 * n)
	if per > 1.2 {
		t.Errorf("%.2f allocations per factor", per)
	}
	t.Logf("%.2f allocations per factor", per)
}
