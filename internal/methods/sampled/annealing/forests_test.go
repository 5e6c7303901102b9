package annealing

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/base/sampling"
	"github.com/basetensor/basetensor/internal/network/ising"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// drawSpins draws an expression of spins with tables e^{±j} over pairs and e^{±h} over each spin, with random signs.
func drawSpins(r *rand.Rand, n int, scopes [][]int, j, h float64) *sumproduct.Expression {
	e := &sumproduct.Expression{Scale: scaled.One}
	for i := range n {
		e.Dims = append(e.Dims, 2)
		up := math.Exp(h * float64(2*r.IntN(2)-1))
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i}, Data: []float64{1 / up, up}})
	}
	for _, s := range scopes {
		same := math.Exp(j * float64(2*r.IntN(2)-1))
		e.Tables = append(e.Tables, sumproduct.Table{Scope: s, Data: []float64{same, 1 / same, 1 / same, same}})
	}
	return e
}

// TestAForestOfAllSpinsWeighsZ: nothing is left to chance, however few the rungs and however strong the couplings.
func TestAForestOfAllSpinsWeighsZ(t *testing.T) {
	r := rand.New(rand.NewPCG(6, 6))
	star := [][]int{{0, 1}, {0, 2}, {3, 0}, {4, 5}, {6, 4}, {6, 7}}
	all := []int{0, 1, 2, 3, 4, 5, 6, 7, 8}
	for _, j := range []float64{0, 0.1, 1, 5, 11} {
		e := drawSpins(r, 9, star, j, 2*r.Float64())
		s := ising.New(e)
		want := 0.0
		oracle.Each(e.Dims, func(x []int) { want += math.Exp(oracle.LnWeight(e, x)) })
		for _, rungs := range []int{1, 2, 300} {
			l := newForests(s, make([]float32, 9), [][]int{all})
			if l == nil {
				t.Fatalf("couplings of %v do not fit", j)
			}
			ln := make([]float64, GroupSize)
			l.anneal(t.Context(), Path{Rungs: rungs, Seed: 1}, 0, ln, false)
			for c, x := range ln {
				if x += s.Constant + 9*math.Ln2; math.Abs(x-math.Log(want)) > 2e-5 {
					t.Errorf("couplings %v, %d rungs, chain %d: %v, want %v", j, rungs, c, x, math.Log(want))
				}
			}
		}
	}
}

// TestForestsBeyondFloat32: where odds would leave the range, steps are the heat bath's.
func TestForestsBeyondFloat32(t *testing.T) {
	e := drawSpins(rand.New(rand.NewPCG(6, 7)), 7, ringScopes(7), 20, 1)
	m, err := New(e)
	if err != nil {
		t.Fatal(err)
	}
	var ln [2][]float64
	for k, step := range []Step{HeatBath, Forests} {
		w, err := m.Run(t.Context(), Path{Rungs: 50, Step: step, Seed: 2}, 0, 8, 1, false)
		if err != nil {
			t.Fatal(err)
		}
		ln[k] = w.Ln
	}
	for c := range ln[0] {
		if ln[0][c] != ln[1][c] {
			t.Errorf("chain %d: %v and %v", c, ln[0][c], ln[1][c])
		}
	}
}

// TestForestsHalveTheVariance on a sparse model, at the least: they do better by a factor of ten.
func TestForestsHalveTheVariance(t *testing.T) {
	scopes := ringScopes(120)
	for k := range 60 {
		scopes = append(scopes, []int{k, k + 60})
	}
	m, err := New(drawModel(rand.New(rand.NewPCG(6, 8)), equalDims(120, 2), scopes, 0.7, 0))
	if err != nil {
		t.Fatal(err)
	}
	if !m.MayUseForests() {
		t.Fatal("three neighbours are too many")
	}
	var variance [2]float64
	for k, step := range []Step{HeatBath, Forests} {
		w, err := m.Run(t.Context(), Path{Rungs: 60, Step: step, Seed: 2}, 0, 256, 0, false)
		if err != nil {
			t.Fatal(err)
		}
		variance[k] = sampling.Variance(w.Ln)
	}
	if variance[1] > variance[0]/2 {
		t.Errorf("variances %v and %v", variance[0], variance[1])
	}
}

// equalDims returns n dimensions of d.
func equalDims(n, d int) []int {
	dims := make([]int, n)
	for i := range dims {
		dims[i] = d
	}
	return dims
}
