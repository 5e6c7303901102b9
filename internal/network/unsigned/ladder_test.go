package unsigned_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/unsigned"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// noisyMax is the maximum of two parents' independent effects on three levels: parent k of value x reaches at most level m with
// probability low[k][x][m].
func noisyMax() *tensor.CP {
	low := [][][]float64{{{1, 1, 1}, {0.2, 0.7, 1}}, {{0.9, 1, 1}, {0.1, 0.4, 1}, {0, 0.5, 1}}}
	t := &tensor.CP{Shape: []int{2, 3, 3}, Weights: []float64{1, 1, 1}, Vectors: make([][]float64, 3)}
	for m := range 3 {
		for k := range low {
			for x := range low[k] {
				t.Vectors[k] = append(t.Vectors[k], low[k][x][m])
			}
		}
		for y := range 3 { // P(max = y) = P(max ≤ y) − P(max ≤ y−1)
			c := 0.0
			switch y {
			case m:
				c = 1
			case m + 1:
				c = -1
			}
			t.Vectors[2] = append(t.Vectors[2], c)
		}
	}
	return t
}

// TestChains: the sum over all ways through the states is the tensor, entry by entry, for every sequence of the modes, and no
// number is below 0. Of functional ones every entry has one way at most.
func TestChains(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 2))
	or, _ := factorgraph.NoisyOr(0.1, 0.3, 0.9, 0.5)
	sure, _ := factorgraph.NoisyOr(0, 1, 1)
	odd, _ := factorgraph.Parity(4, true)
	even, _ := factorgraph.Parity(3, false)
	weighted := factorgraph.Clause(true, false, true)
	weighted.Weights = []float64{-3, 5} // 5, and 2 for one assignment
	weighted.Vectors[0] = []float64{1, 0, 1, 1}
	weighted.Vectors[1] = []float64{0, 1, 1, 1}
	weighted.Vectors[2] = []float64{1, 0, 1, 1}

	for name, c := range map[string]struct {
		t          *tensor.CP
		functional bool
	}{
		"clause":          {factorgraph.Clause(true, false, true, true), true},
		"weighted clause": {weighted, true},
		"odd":             {odd, true},
		"even":            {even, true},
		"noisy-or":        {or, false},
		"or":              {sure, true},
		"noisy-max":       {noisyMax(), false},
	} {
		chain, ok := unsigned.NewChain(c.t)
		if !ok || chain.Functional != c.functional {
			t.Fatalf("%s: a chain: %v, %+v", name, ok, chain)
		}
		rng.Shuffle(len(chain.Modes), func(i, j int) { chain.Modes[i], chain.Modes[j] = chain.Modes[j], chain.Modes[i] })
		oracle.Each(c.t.Shape, func(x []int) {
			state, ways := make([]float64, chain.States), make([]int, chain.States)
			state[0], ways[0] = 1, 1
			for _, k := range chain.Modes {
				next, count := make([]float64, chain.States), make([]int, chain.States)
				for from := range state {
					for to := range next {
						w := chain.Step(k, x[k], from, to)
						if w < 0 {
							t.Errorf("%s: a step of %v", name, w)
						}
						if next[to] += state[from] * w; w != 0 {
							count[to] += ways[from]
						}
					}
				}
				state, ways = next, count
			}
			got, through, d, y := 0.0, 0, 1, 0
			if chain.Effect >= 0 {
				d, y = c.t.Shape[chain.Effect], x[chain.Effect]
			}
			for s := range state {
				f := chain.Final[s*d+y].Float64()
				if f < 0 {
					t.Errorf("%s: a value of %v", name, f)
				}
				got += state[s] * f
				through += ways[s]
			}
			want, _ := oracle.Entry(c.t, x).Float64()
			if math.Abs(got-want) > 1e-15 || c.functional && through > 1 {
				t.Errorf("%s: %v, want %v, by %d ways", name, got, want, through)
			}
		})
	}

	for name, c := range map[string]*tensor.CP{
		"terms without an order": {Shape: []int{2, 2}, Weights: []float64{1, -1}, Vectors: [][]float64{{1, 0, 0, 1}, {1, 1, 1, 1}}},
		"an entry below 0":       {Shape: []int{2, 2}, Weights: []float64{1, -2}, Vectors: [][]float64{{1, 1, 1, 0}, {1, 1, 1, 0}}},
		"one term":               {Shape: []int{2}, Weights: []float64{1}, Vectors: [][]float64{{1, 1}}},
		"two effects":            {Shape: []int{2, 2}, Weights: []float64{1, 1}, Vectors: [][]float64{{1, -1, 1, 2}, {1, -1, 1, 2}}},
	} {
		if chain, ok := unsigned.NewChain(c); ok {
			t.Errorf("%s is a chain: %+v", name, chain)
		}
	}
}
