package modes

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// renamed is a ferromagnet of q values on n indices, all pairs or a ring with some chords, the values of each index permuted, and the
// value that is each one's share of a phase k: names[i][k].
func renamed(rng *rand.Rand, n, q int, dense bool, field float64) (e *sumproduct.Expression, names [][]int) {
	e = &sumproduct.Expression{Scale: scaled.One}
	for range n {
		e.Dims = append(e.Dims, q)
		names = append(names, rng.Perm(q))
	}
	join := func(i, j int) {
		data := make([]float64, q*q)
		for k := range data {
			data[k] = 1
		}
		for k := range q {
			data[names[i][k]*q+names[j][k]] = 8
		}
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i, j}, Data: data})
	}
	for i := range n {
		for j := range i {
			if dense || i == j+1 || rng.IntN(n) < 4 {
				join(j, i)
			}
		}
	}
	if field > 0 {
		data := make([]float64, q)
		for k := range q {
			data[names[0][k]] = math.Exp(-field * float64(k))
		}
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{0}, Data: data})
	}
	return e, names
}

// TestPhasesOfRenamedValues: each value of a ferromagnet is a phase, whatever the names; without a field they are of one kind, with one
// each has its own.
func TestPhasesOfRenamedValues(t *testing.T) {
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 3))
		q, n := 2+rng.IntN(12), 20+rng.IntN(30)
		e, names := renamed(rng, n, q, seed%2 == 0, 0)
		found, err := Phases(t.Context(), e, 8)
		if err != nil || len(found) == 0 || len(found[0].Others) != q-1 {
			t.Errorf("seed %d: %d values, %d indices: %d kinds, %v", seed, q, n, len(found), err)
			continue
		}
		for k := range q {
			agree := true
			for i := range names {
				agree = agree && found[0].State[i] == names[i][k]
			}
			if agree {
				q = 0
			}
		}
		if q != 0 {
			t.Errorf("seed %d: %v is no phase", seed, found[0].State)
		}
		if e, _ = renamed(rng, n, 3, seed%2 == 0, 0.5); true {
			found, err = Phases(t.Context(), e, 8)
			if err != nil || len(found) < 3 || len(found[0].Others) > 0 || math.Abs(found[0].Ln-found[2].Ln-1) > 1e-9 {
				t.Errorf("seed %d, with a field: %d kinds, %v", seed, len(found), err)
			}
		}
	}
}

// TestModesOfRenamedValues: chains from all phases of a ferromagnet of many values, not from the first few.
func TestModesOfRenamedValues(t *testing.T) {
	e, _ := renamed(rand.New(rand.NewPCG(5, 3)), 40, 20, true, 0)
	if found, err := Find(t.Context(), e); err != nil || len(found) != 20 {
		t.Errorf("%d modes, %v", len(found), err)
	}
}

// TestPhasesOfNothing: without an index of two values there is none, with entries below 0 an error.
func TestPhasesOfNothing(t *testing.T) {
	e := &sumproduct.Expression{Scale: scaled.One, Dims: []int{1}, Tables: []sumproduct.Table{{Scope: []int{0}, Data: []float64{2}}}}
	if found, err := Phases(t.Context(), e, 8); err != nil || len(found) > 1 || PhasesWork(e) != 0 {
		t.Errorf("%v, %v", found, err)
	}
	e = &sumproduct.Expression{Scale: scaled.One, Dims: []int{2}, Tables: []sumproduct.Table{{Scope: []int{0}, Data: []float64{2, -1}}}}
	if _, err := Phases(t.Context(), e, 8); err == nil {
		t.Error("entries below 0")
	}
}
