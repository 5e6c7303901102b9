package bp_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestEntropyOfTrees is that of the distribution, by enumeration.
func TestEntropyOfTrees(t *testing.T) {
	for seed := range uint64(50) {
		rng := rand.New(rand.NewPCG(seed, 7))
		e := &sumproduct.Expression{Scale: scaled.FromFloat(1 + rng.Float64()), Dims: []int{2, 3, 2, 4}}
		for _, scope := range [][]int{{0, 1}, {1, 2}, {1, 3}, {2}} {
			size := 1
			for _, i := range scope {
				size *= e.Dims[i]
			}
			data := make([]float64, size)
			for k := range data {
				if rng.Float64() < 0.9 || k == 0 {
					data[k] = rng.ExpFloat64()
				}
			}
			e.Tables = append(e.Tables, sumproduct.Table{Scope: scope, Data: data})
		}
		sum, terms := 0.0, 0.0
		x := make([]int, 4)
		for k := range 2 * 3 * 2 * 4 {
			x[0], x[1], x[2], x[3] = k%2, k/2%3, k/6%2, k/12
			w := 1.0
			for _, table := range e.Tables {
				at := 0
				for _, i := range table.Scope {
					at = at*e.Dims[i] + x[i]
				}
				w *= table.Data[at]
			}
			if w > 0 {
				sum += w
				terms += w * math.Log(w)
			}
		}
		want := math.Log(sum) - terms/sum
		s := run(t, e, bp.Options{})
		if got := s.Entropy(); math.Abs(got-want) > 1e-9 || s.HasNegativeEntropy() {
			t.Errorf("seed %d: %v, want %v", seed, got, want)
		}
	}
}

// TestImpossibleBeliefs: of spins of which each pair wants to differ the uniform fixed point promises far more than there is; in a weak
// coupling and on a grid it does not.
func TestImpossibleBeliefs(t *testing.T) {
	all := func(n int, j float64) *sumproduct.Expression {
		e := &sumproduct.Expression{Scale: scaled.One}
		for i := range n {
			e.Dims = append(e.Dims, 2)
			for k := range i {
				e.Tables = append(e.Tables, sumproduct.Table{
					Scope: []int{k, i}, Data: []float64{math.Exp(-j), math.Exp(j), math.Exp(j), math.Exp(-j)},
				})
			}
		}
		return e
	}
	strong := all(12, 3)
	s := run(t, strong, bp.Options{})
	if truth := oracle.Ln(oracle.Sum(strong, 0).Z); !s.Converged || !s.HasNegativeEntropy() || s.LnZ() < truth+10 {
		t.Errorf("strong: converged %t, entropy %v, Bethe value %v of %v", s.Converged, s.Entropy(), s.LnZ(), truth)
	}
	for name, e := range map[string]*sumproduct.Expression{
		"weak": all(12, 0.05), "grid": ising(rand.New(rand.NewPCG(1, 2)), 4, 4, 0.5, false),
	} {
		if s := run(t, e, bp.Options{}); s.HasNegativeEntropy() {
			t.Errorf("%s: entropy %v", name, s.Entropy())
		}
	}
	strong.Tables[0].Data[0] = -1
	if s := run(t, strong, bp.Options{}); !math.IsNaN(s.Entropy()) || s.HasNegativeEntropy() {
		t.Errorf("entries below 0: entropy %v", s.Entropy())
	}
}
