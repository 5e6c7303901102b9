package pairwise_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/exact/pairwise"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/reference"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/uai"
)

const modelMemory = 8 << 30

// readExpression returns a reference model with its evidence.
func readExpression(t testing.TB, name string) (*sumproduct.Expression, *factorgraph.Model) {
	t.Helper()
	m, _ := reference.Model(t, "uai/"+name)
	e, err := lower.Build(context.Background(), reference.Network(t, "uai/"+name))
	if err != nil {
		t.Fatal(err)
	}
	return e, m
}

// findTree returns the best tree that the search finds, or the best
// elimination order's where that is cheap.
func findTree(t testing.TB, h contractionorder.Hypergraph) contractionorder.Plan {
	t.Helper()
	p, err := contractionorder.Search(context.Background(), h,
		contractionorder.Options{Memory: modelMemory, Seed: 1, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestReferenceModels compares Z and the marginals with the solutions of the UAI 2014 competition,
// whole and in slices.
func TestReferenceModels(t *testing.T) {
	for _, name := range []string{"Segmentation_11", "Promedus_29", "relational_3", "Alchemy_11"} {
		t.Run(name, func(t *testing.T) {
			e, m := readExpression(t, name)
			want, printed := reference.Log10Z(t, "uai/"+name)
			p := findTree(t, e.Hypergraph())
			o := pairwise.Options{Memory: modelMemory, Slices: p.Slices}
			var first scaled.Number
			for _, threads := range []int{1, 2} {
				o.Threads = threads
				z, _, err := pairwise.Contract(context.Background(), e, p.Tree, o)
				if err != nil {
					t.Fatal(err)
				}
				if !(math.Abs(z.Log10Abs()-want) <= max(printed, 1e-5)) || z.Sign() < 0 {
					t.Errorf("log10 Z = %.9f, reference %.9f", z.Log10Abs(), want)
				}
				if threads == 1 {
					first = z
				} else if z != first {
					t.Errorf("%v with %d threads, %v with one", z, threads, first)
				}
			}
			all, _, err := pairwise.Marginals(context.Background(), e, p.Tree, o)
			if err != nil {
				t.Fatal(err)
			}
			if all.Z != first {
				t.Errorf("Z is %v with the marginals, %v without", all.Z, first)
			}
			// its MAR file disagrees with einsum.Contract on the conditioned model as well,
			// as the official Z does
			if name != "relational_3" {
				compareMarginals(t, name, e, m, all)
			}
			if len(p.Slices) == 0 {
				slicedAlike(t, e, p.Tree, all)
				sliceAgrees(t, e, p.Tree, all)
			}
		})
	}
}

// compareMarginals checks against the MAR file, where there is one: six digits are printed.
func compareMarginals(
	t *testing.T, name string, e *sumproduct.Expression, m *factorgraph.Model, got pairwise.Result,
) {
	f, err := os.Open(filepath.Join(os.Getenv("BTN_DATA"), "uai", name+".uai.MAR"))
	if err != nil {
		return
	}
	defer f.Close()
	want, err := uai.ReadMAR(f)
	if err != nil {
		t.Fatal(err)
	}
	worst, where := 0.0, 0
	for i, d := range m.Domains {
		p := make([]float64, d)
		for k, x := range got.Marginals[i] {
			v := k
			if e.Support[i] != nil {
				v = e.Support[i][k]
			}
			p[v] = x
		}
		for v := range p {
			if d := math.Abs(p[v] - want[i][v]); d > worst {
				worst, where = d, i
			}
		}
	}
	if !(worst <= 1e-5) {
		t.Errorf("a marginal of index %d is off by %v", where, worst)
	}
}

// sliceAgrees compares the marginals of some indices with
// the values of slices over them: forward passes only.
func sliceAgrees(
	t *testing.T, e *sumproduct.Expression, tree contractionorder.Tree, want pairwise.Result,
) {
	checked := 0
	for i, d := range e.Dims {
		if d == 1 || i%(len(e.Dims)/5+1) != 0 {
			continue
		}
		checked++
		for v := range d {
			z, _, err := pairwise.Contract(context.Background(), e, tree, pairwise.Options{
				Memory: modelMemory,
				Slices: []int{i},
				From:   int64(v),
				To:     int64(v + 1),
			})
			if err != nil {
				t.Fatal(err)
			}
			if d := math.Abs(z.Div(want.Z).Float64() - want.Marginals[i][v]); !(d <= 1e-11) {
				t.Errorf("P(%d = %d) is %v, the slice says %v",
					i, v, want.Marginals[i][v], z.Div(want.Z).Float64())
			}
		}
	}
	if checked == 0 {
		t.Error("no index is compared with its slices")
	}
}

// slicedAlike compares with the same tree in slices over two indices.
func slicedAlike(
	t *testing.T, e *sumproduct.Expression, tree contractionorder.Tree, want pairwise.Result,
) {
	var sliced []int
	for i, d := range e.Dims {
		if d > 1 && len(sliced) < 2 {
			sliced = append(sliced, i)
		}
	}
	got, _, err := pairwise.Marginals(context.Background(), e, tree,
		pairwise.Options{Memory: modelMemory, Slices: sliced})
	if err != nil {
		t.Fatal(err)
	}
	if d := math.Abs(got.Z.Div(want.Z).Float64() - 1); !(d <= 1e-12) {
		t.Errorf("sliced over %v Z differs by %v", sliced, d)
	}
	for i := range want.Marginals {
		for v, p := range want.Marginals[i] {
			if d := math.Abs(got.Marginals[i][v] - p); !(d <= 1e-11) {
				t.Errorf("sliced over %v P(%d = %d) differs by %v", sliced, i, v, d)
				return
			}
		}
	}
}
