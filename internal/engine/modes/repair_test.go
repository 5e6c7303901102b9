package modes

import (
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestBelowColourings: ascents end with neighbours of one colour, a repair does not, and its bound is below the number of colourings: of
// a ring of n with q colours these are (q−1)^n + (−1)^n (q−1).
func TestBelowColourings(t *testing.T) {
	for _, c := range []struct{ n, q int }{{9, 3}, {40, 3}, {101, 3}, {30, 4}} {
		e := &sumproduct.Expression{Scale: scaled.One}
		data := make([]float64, c.q*c.q)
		for k := range data {
			if k/c.q != k%c.q {
				data[k] = 1
			}
		}
		for i := range c.n {
			e.Dims = append(e.Dims, c.q)
			e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i, (i + 1) % c.n}, Data: data})
		}
		sign := 1.0
		if c.n%2 == 1 {
			sign = -1
		}
		lnZ := math.Log(math.Pow(float64(c.q-1), float64(c.n)) + sign*float64(c.q-1))
		below, err := LowerBound(t.Context(), e)
		if err != nil || !(below <= lnZ+1e-9) || below < 0.1 {
			t.Errorf("%d indices of %d colours: %v of %v, %v", c.n, c.q, below, lnZ, err)
		}
	}
}

// TestBelowDoesNotClimbIntoConstraints: of two values that exclude each other one table likes what the other forbids by more than an
// ascent counts.
func TestBelowDoesNotClimbIntoConstraints(t *testing.T) {
	e := &sumproduct.Expression{Scale: scaled.One, Dims: []int{2, 2, 2}}
	for i := range 3 {
		e.Tables = append(e.Tables,
			sumproduct.Table{Scope: []int{i}, Data: []float64{1, 1e30}},
			sumproduct.Table{Scope: []int{i, (i + 1) % 3}, Data: []float64{1, 1, 1, 0}})
	}
	lnZ := math.Log(1 + 3e30)
	if below, err := LowerBound(t.Context(), e); err != nil || !(below <= lnZ) || below < 0 {
		t.Errorf("%v of %v, %v", below, lnZ, err)
	}
}

// TestRepair: a grid of three colours from random states, and a contradiction, which nothing repairs.
func TestRepair(t *testing.T) {
	const side = 16
	e := &sumproduct.Expression{Scale: scaled.One}
	differ := []float64{0, 1, 1, 1, 0, 1, 1, 1, 0}
	for i := range side * side {
		e.Dims = append(e.Dims, 3)
		if i%side > 0 {
			e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i - 1, i}, Data: differ})
		}
		if i >= side {
			e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i - side, i}, Data: differ})
		}
	}
	r := newRand()
	c := newClimber(e)
	repaired := 0
	for k := range 10 {
		c.setRandom(r, k)
		if c.repair(r) {
			repaired++
			if c.locate(); c.isForbidden() {
				t.Fatal("a repaired state is forbidden")
			}
		}
	}
	if repaired == 0 {
		t.Error("no state was repaired")
	}
	c = newClimber(&sumproduct.Expression{
		Scale: scaled.One, Dims: []int{2}, Tables: []sumproduct.Table{{Scope: []int{0}, Data: []float64{0, 0}}},
	})
	if c.repair(r) {
		t.Error("a contradiction is repaired")
	}
}
