package compiler

import (
	"context"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/formula"
	"github.com/basetensor/basetensor/internal/reference"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestCubesAgainstEnumeration: the sums of the cubes add up to that of the formula.
func TestCubesAgainstEnumeration(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	most := 0
	for range 200 {
		f, weights := random(t, r, 5+r.IntN(4))
		split, err := Cubes(context.Background(), f, Options{Weights: weights, Work: 64}, 8, 100)
		if err != nil {
			t.Fatal(err)
		}
		sum := scaled.Number{}
		for _, c := range split.Cubes {
			got, err := Compile(context.Background(), formula.Condition(f, c.Literals), Options{Weights: weights, Order: split.Order})
			if err != nil {
				t.Fatal(err)
			}
			sum = sum.Add(got.Z)
		}
		most = max(most, len(split.Cubes))
		if agree(t, "sum over cubes", sum, enumerate(f, weights)); t.Failed() {
			t.Fatalf("cubes %v of %+v", split, f)
		}
	}
	if most < 8 {
		t.Errorf("%d cubes at most, 8 were asked for", most)
	}
}

// TestCostOfCubes: the split search of a hard formula costs little more than the whole one.
func TestCostOfCubes(t *testing.T) {
	dir := strings.TrimSuffix(reference.Path(t, "wcnf"), ".uai")
	for _, name := range strings.Split(*models, ",") {
		if name == "" {
			name = "013"
		}
		f, weights := readDIMACS(t, filepath.Join(dir, "mc2022_track2_"+name+".cnf.gz"))
		whole, err := Compile(context.Background(), f, Options{Weights: weights})
		if err != nil {
			t.Fatal(err)
		}
		split, err := Cubes(context.Background(), f, Options{Weights: weights, Work: whole.Stats.Work}, 16, 2)
		if err != nil {
			t.Fatal(err)
		}
		work, largest, sum := int64(0), int64(0), scaled.Number{}
		for _, c := range split.Cubes {
			got, err := Compile(context.Background(), formula.Condition(f, c.Literals), Options{Weights: weights, Order: split.Order})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%v: %d steps, %.3g estimated", c.Literals, got.Stats.Work, c.Work)
			work += got.Stats.Work
			largest = max(largest, got.Stats.Work)
			sum = sum.Add(got.Z)
		}
		if *models == "" && work > whole.Stats.Work*13/10 {
			t.Errorf("%d cubes take %d steps, the whole %d", len(split.Cubes), work, whole.Stats.Work)
		}
		t.Logf("%s: %d cubes: %.2f of the work of the whole, the largest %.2f", name, len(split.Cubes),
			float64(work)/float64(whole.Stats.Work), float64(largest)/float64(whole.Stats.Work))
		if math.Abs(sum.Div(whole.Z).Float64()-1) > 1e-12 {
			t.Errorf("%s: cubes sum to %v, the whole is %v", name, sum, whole.Z)
		}
	}
}

// TestGivenOrders: an order that is given is followed without those that have a value, and what it leaves out comes first.
func TestGivenOrders(t *testing.T) {
	h := contractionorder.Hypergraph{Dims: []int{2, 1, 3, 2, 2}}
	if got := completed(h, []int{3, 1, 0}); !slices.Equal(got, []int{2, 4, 3, 0}) {
		t.Errorf("completed to %v", got)
	}

	r := rand.New(rand.NewPCG(15, 16))
	for range 50 {
		f, weights := random(t, r, 7)
		order := r.Perm(7)[:4]
		got, err := Compile(context.Background(), f, Options{Weights: weights, Order: order})
		if err != nil {
			t.Fatal(err)
		}
		agree(t, "along an order that is given", got.Z, enumerate(f, weights))
	}
}
