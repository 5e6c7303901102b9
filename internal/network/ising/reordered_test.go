package ising

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// TestReordered: a state has its weight in the original model, and spins of a colour are not coupled.
func TestReordered(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 5))
	for range 200 {
		n := 1 + r.IntN(12)
		couplings := make([][]float64, n)
		for i := range couplings {
			couplings[i] = make([]float64, n)
			for k := range i {
				if r.IntN(3) == 0 {
					couplings[i][k] = r.NormFloat64()
					couplings[k][i] = couplings[i][k]
				}
			}
		}
		s := &Model{N: n, Constant: 2, First: make([]int32, n+1)}
		for i := range n {
			s.H = append(s.H, r.NormFloat64())
			for k, j := range couplings[i] {
				if j != 0 {
					s.To, s.J = append(s.To, int32(k)), append(s.J, j)
				}
			}
			s.First[i+1] = int32(len(s.To))
		}

		classes := s.Colours()
		order := slices.Concat(classes...)
		if sorted := slices.Sorted(slices.Values(order)); len(sorted) != n || sorted[0] != 0 || len(slices.Compact(sorted)) != n {
			t.Fatalf("%v is no order of %d spins", order, n)
		}
		for _, class := range classes {
			for k, i := range class {
				for _, other := range class[:k] {
					if couplings[i][other] != 0 {
						t.Errorf("spins %d and %d of a class of %v are coupled", i, other, classes)
					}
				}
			}
		}
		to := s.Reordered(order)
		if to.Constant != s.Constant || to.N != n || int(to.First[n]) != len(s.To) {
			t.Fatalf("model %+v of %+v", to, s)
		}
		for k, i := range order {
			if to.H[k] != s.H[i] {
				t.Errorf("field %d is %v, not %v", k, to.H[k], s.H[i])
			}
			row := to.To[to.First[k]:to.First[k+1]]
			if !slices.IsSorted(row) {
				t.Errorf("neighbours %v", row)
			}
			for l, other := range row {
				if got, want := to.J[int(to.First[k])+l], couplings[i][order[other]]; got != want {
					t.Errorf("coupling %d to %d is %v, not %v", k, other, got, want)
				}
			}
		}
	}
}
