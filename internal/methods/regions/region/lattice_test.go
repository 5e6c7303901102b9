package region

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// shuffle returns e with its indices and tables renumbered.
func shuffle(e *sumproduct.Expression, seed uint64) *sumproduct.Expression {
	rng := rand.New(rand.NewPCG(seed, 7))
	to := rng.Perm(len(e.Dims))
	out := &sumproduct.Expression{Dims: make([]int, len(e.Dims)), Scale: e.Scale}
	for i, d := range e.Dims {
		out.Dims[to[i]] = d
	}
	for _, t := range e.Tables {
		scope := make([]int, len(t.Scope))
		for k, i := range t.Scope {
			scope[k] = to[i]
		}
		out.Tables = append(out.Tables, sumproduct.Table{Scope: scope, Data: t.Data})
	}
	rng.Shuffle(len(out.Tables), func(a, b int) {
		out.Tables[a], out.Tables[b] = out.Tables[b], out.Tables[a]
	})
	return out
}

// observeZero returns e with the indices gone observed at their value 0.
func observeZero(e *sumproduct.Expression, gone ...int) *sumproduct.Expression {
	out := &sumproduct.Expression{Dims: slices.Clone(e.Dims), Scale: e.Scale}
	for _, i := range gone {
		out.Dims[i] = 1
	}
	for _, t := range e.Tables {
		data, scope := t.Data, slices.Clone(t.Scope)
		for k := len(scope) - 1; k >= 0; k-- {
			if !slices.Contains(gone, scope[k]) {
				continue
			}
			if k == 0 {
				data = data[:len(data)/2]
			} else {
				data = []float64{data[0], data[2]}
			}
			scope = slices.Delete(scope, k, k+1)
		}
		out.Tables = append(out.Tables, sumproduct.Table{Scope: scope, Data: data})
	}
	return out
}

// closeFamily returns the generic closure of the windows of a family.
func closeFamily(t *testing.T, f *Family) *Family {
	t.Helper()
	w, s := newWorker(f.graph, nil), newStore(10_000)
	for r := range f.Len() {
		legs, _ := f.source.region(r, w)
		if len(legs) == 0 || !f.source.mayBeLargest(r) {
			continue
		}
		w.cut.split(slices.Sorted(slices.Values(legs)), func(part []int32) {
			if _, _, err := s.add(part); err != nil {
				t.Fatal(err)
			}
		})
	}
	if err := addAllIntersections(w.cut, s, unlimitedMoves()); err != nil {
		t.Fatal(err)
	}
	return &Family{Options: f.Options, graph: f.graph, source: newList(f.graph, s, weights(t, f.graph, s))}
}

// TestLatticesAreRecognised: in any numbering, with indices missing, in several pieces; and
// counting windows along lines agrees with their closure.
func TestLatticesAreRecognised(t *testing.T) {
	two := grid(4, 5, 0.8, 2)
	for _, e := range grid(5, 4, 0.8, 3).Tables {
		scope := slices.Clone(e.Scope)
		for k := range scope {
			scope[k] += 20
		}
		two.Tables = append(two.Tables, sumproduct.Table{Scope: scope, Data: e.Data})
	}
	for range 20 {
		two.Dims = append(two.Dims, 2)
	}
	for name, e := range map[string]*sumproduct.Expression{
		"whole":      grid(6, 7, 0.8, 1),
		"holes":      observeZero(grid(7, 8, 0.8, 1), 9, 20, 30, 31, 45),
		"a ring":     observeZero(grid(7, 7, 0.8, 1), 16, 17, 18, 23, 24, 25, 30, 31, 32),
		"two pieces": two,
	} {
		for seed := range uint64(4) {
			e := shuffle(e, seed)
			s := propagate(t, e)
			f := planFamily(t, e, Options{Kind: Windows, Size: 3})
			est, err := Run(context.Background(), e, s, f, 1)
			if err != nil {
				t.Fatal(err)
			}
			want, err := Run(context.Background(), e, s, closeFamily(t, f), 1)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(est.LnZ-want.LnZ) > rounding {
				t.Errorf("%s: windows say %v, their closure of %d regions %v", name, est.LnZ, want.Regions, want.LnZ)
			}
			if z, _ := exactAnswer(t, e); math.Abs(est.LnZ-z) > 0.2*math.Abs(est.LnZBP-z) {
				t.Errorf("%s: %v, belief propagation %v, exact %v", name, est.LnZ, est.LnZBP, z)
			}
		}
	}
}
