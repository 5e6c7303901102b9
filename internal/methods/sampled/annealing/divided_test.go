package annealing

import (
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestDivided: a torus of strong couplings has two modes, which weak couplings and strong fields join; three values have three.
func TestDivided(t *testing.T) {
	torus := func(n, values int, j, h float64) *sumproduct.Expression {
		e := &sumproduct.Expression{}
		for i := range n * n {
			e.Dims = append(e.Dims, values)
			e.Support = append(e.Support, nil)
			field := make([]float64, values)
			for a := range field {
				field[a] = math.Exp(h * float64(a))
			}
			e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i}, Data: field})
			for _, to := range []int{i/n*n + (i+1)%n, (i + n) % (n * n)} {
				pair := make([]float64, values*values)
				for k := range pair {
					pair[k] = 1
					if k%(values+1) == 0 {
						pair[k] = math.Exp(j)
					}
				}
				e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i, to}, Data: pair})
			}
		}
		e.Scale = scaled.FromFloat(1)
		return e
	}
	for name, c := range map[string]struct {
		e    *sumproduct.Expression
		want bool
	}{
		"strong couplings":                 {torus(6, 2, 3, 0.05), true},
		"three values":                     {torus(6, 3, 3, 0.05), true},
		"weak couplings":                   {torus(6, 2, 0.3, 0.05), false},
		"strong couplings in strong field": {torus(6, 2, 1, 3), false},
	} {
		m, err := New(c.e)
		if err != nil {
			t.Fatal(name, err)
		}
		if got, err := m.HasSeveralBeliefs(t.Context()); got != c.want || err != nil {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
