package bp_test

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// frustrated is a torus of n × n on which belief propagation goes on for long.
func frustrated(n int) *sumproduct.Expression {
	e := &sumproduct.Expression{Scale: scaled.One}
	for i := range n * n {
		e.Dims = append(e.Dims, 2)
		e.Tables = append(e.Tables, sumproduct.Table{
			Scope: []int{i},
			Data:  []float64{1, 1 + 0.01*float64(i%7)},
		})
		for k, j := range []int{i/n*n + (i+1)%n, (i + n) % (n * n)} {
			c := math.Exp(2 - 4*float64((i*31+k*17)%2))
			e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i, j}, Data: []float64{c, 1 / c, 1 / c, c}})
		}
	}
	return e
}

// TestEnough: a run whose Enough has ended ends with every message computed, one start and a value;
// one whose own context has ended is an error.
func TestEnough(t *testing.T) {
	e := frustrated(200)
	incidences := int64(5 * 200 * 200)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	states, err := bp.FixedPoints(t.Context(), e, 4, bp.Options{Enough: ended})
	if err != nil {
		t.Fatal(err)
	}
	if s := states[0]; len(states) != 1 || s.Converged || s.Updates < incidences ||
		s.Updates > 10*incidences ||
		math.IsNaN(s.LnZ()) ||
		math.IsInf(s.LnZ(), 0) {
		t.Errorf("%d states, the first of %d updates, ln Z %v", len(states), s.Updates, s.LnZ())
	}
	if _, err := bp.FixedPoints(ended, e, 4, bp.Options{Enough: ended}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
