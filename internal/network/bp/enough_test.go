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

// TestEnough: a run whose Enough has ended computes every message at most three times, from one start, and has a value;
// one whose own context has ended is an error.
func TestEnough(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	for _, n := range []int{8, 200} {
		e := frustrated(n)
		states, err := bp.FixedPoints(t.Context(), e, 4, bp.Options{Enough: ended})
		if err != nil {
			t.Fatal(err)
		}
		if len(states) != 1 {
			t.Fatalf("%d×%d: %d states", n, n, len(states))
		}

		s, incidences := states[0], int64(5*n*n)
		if s.Converged || s.Updates < incidences || s.Updates > 3*incidences {
			t.Errorf("%d×%d: %d updates of %d messages; converged: %v", n, n, s.Updates, incidences, s.Converged)
		}
		if lnZ := s.LnZ(); math.IsNaN(lnZ) || math.IsInf(lnZ, 0) {
			t.Errorf("%d×%d: ln Z %v", n, n, lnZ)
		}
	}
	if _, err := bp.FixedPoints(ended, frustrated(200), 4, bp.Options{Enough: ended}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}
