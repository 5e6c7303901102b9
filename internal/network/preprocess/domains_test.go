package preprocess

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestOneZero: of a table with one zero, revise leaves the values that some other entry has, over all subsets of values.
func TestOneZero(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 41))
	for range 2000 {
		e := &sumproduct.Expression{Dims: make([]int, 1+rng.IntN(3)), Scale: scaled.One}
		var scope []int
		size := 1
		for i := range e.Dims {
			e.Dims[i] = 2 + rng.IntN(2)
			size *= e.Dims[i]
			scope = append(scope, i)
		}
		data := slices.Repeat([]float64{1}, size)
		zero := rng.IntN(size)
		data[zero] = 0
		e.Tables = []sumproduct.Table{{Scope: scope, Data: data}}
		p := pace.New(t.Context())
		loaded, err := load(e, Options{}, p)
		if err != nil {
			t.Fatal(err)
		}
		domains := newDomains(loaded, p)
		for i, d := range e.Dims {
			for x := range d {
				if domains.aliveCount[i] > 1 && rng.IntN(3) == 0 {
					domains.remove(position{i, x}, 0)
				}
			}
		}

		want := make([][]bool, len(e.Dims))
		for i, d := range e.Dims {
			want[i] = make([]bool, d)
		}
		for cell := range size {
			at, rest, all := make([]int, len(e.Dims)), cell, true
			for i := len(at) - 1; i >= 0; i-- {
				at[i], rest = rest%e.Dims[i], rest/e.Dims[i]
				all = all && domains.isAlive[i][at[i]]
			}
			for i, x := range at {
				want[i][x] = want[i][x] || all && cell != zero
			}
		}
		domains.revise(0)
		for i := range want {
			if !slices.Equal(domains.isAlive[i], want[i]) {
				t.Fatalf("dims %v, zero %d: index %d has %v, want %v", e.Dims, zero, i, domains.isAlive[i], want[i])
			}
		}
	}
}
