package structured

import (
	"math/rand/v2"
	"testing"
)

// TestSharesHaveAllNodes: the shares of a region have every node that matters once, whatever their number.
func TestSharesHaveAllNodes(t *testing.T) {
	for _, lambda := range [][]float64{{2}, {3, 2}, {3, -2}, {3, 2, 2}} {
		rng := rand.New(rand.NewPCG(uint64(len(lambda)), 5))
		const n = 20
		f := &Fit{Lambda: lambda, Field: make([]float64, 2*n)}
		for range n {
			f.Domains = append(f.Domains, 2)
		}
		for range lambda {
			for range 2 * n {
				f.Vectors = append(f.Vectors, rng.NormFloat64())
			}
		}
		e, err := newEvaluator(f, nil)
		if err != nil {
			t.Fatal(err)
		}
		all, err := e.listAllNodes(t.Context(), planWork)
		if err != nil || len(all) == 0 {
			t.Fatalf("%v: %d nodes, %v", lambda, len(all), err)
		}
		r, err := e.findRegion(t.Context(), planWork)
		if err != nil {
			t.Fatal(err)
		}
		for _, shares := range []int64{1, 3, 64} {
			times := map[node]int{}
			for k := range shares {
				list, err := e.listNodes(t.Context(), r, WholeShare*k/shares, WholeShare*(k+1)/shares)
				if err != nil {
					t.Fatal(err)
				}
				for _, at := range list {
					times[at]++
				}
			}
			for _, at := range all {
				if times[at] != 1 {
					t.Fatalf("%v: node %v is %d times in %d shares", lambda, at, times[at], shares)
				}
			}
			if len(times) > 2*len(all) {
				t.Errorf("%v: %d nodes in %d shares, %d matter", lambda, len(times), shares, len(all))
			}
		}
	}
}
