package compiler

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/logic/circuit"
	"github.com/basetensor/basetensor/internal/logic/formula"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/testing/reference"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestCubesAgainstEnumeration: the sums of the cubes add up to the formula's.
func TestCubesAgainstEnumeration(t *testing.T) {
	r := rand.New(rand.NewPCG(13, 14))
	most := 0
	for range 200 {
		f, weights := random(t, r, 5+r.IntN(4))
		split, err := Cubes(context.Background(), f, Options{Weights: weights, Work: 1}, SplitOptions{Most: 8, Again: 100})
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

// like is how package plan splits.
var like = SplitOptions{Most: policy.Cubes, Largest: policy.CubeLargest, Again: policy.CubesAgain}

// TestCubesAreBalanced: as many cubes as may be, none a large part of the work, so that two workers that take one after the other, the
// hardest first, have about half of it each; the searches that estimate are as short as they are said to be.
func TestCubesAreBalanced(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 7))
	f, weights := cubic(r, 62, 2).formula(t, r)
	split, err := Cubes(t.Context(), f, Options{Weights: weights}, like)
	if err != nil {
		t.Fatal(err)
	}
	estimate, work, largest := 0.0, 0.0, 0.0
	var workers [2]float64
	for _, c := range split.Cubes {
		got, err := Compile(t.Context(), formula.Condition(f, c.Literals), Options{Weights: weights, Order: split.Order})
		if err != nil {
			t.Fatal(err)
		}
		took := float64(got.Stats.Work)
		estimate, work, largest = estimate+c.Steps, work+took, max(largest, took)
		if workers[0] < workers[1] {
			workers[0] += took
		} else {
			workers[1] += took
		}
	}
	longer := max(workers[0], workers[1])
	t.Logf("%d cubes, %.3g steps, %.3g estimated, %.3g of them tried; the largest %.2f, the longer of two workers %.3f",
		len(split.Cubes), work, estimate, float64(split.Tried), largest/work, longer/work)
	if len(split.Cubes) != policy.Cubes || largest > work/6 || longer > 0.53*work {
		t.Errorf("%d cubes, of which the largest is %.2f of the work, and the longer of two workers does %.2f",
			len(split.Cubes), largest/work, longer/work)
	}
	if estimate < work/2 || estimate > 20*work {
		t.Errorf("%.3g steps are estimated, %.3g were taken", estimate, work)
	}
	const most = policy.CubesTried + 4*policy.Cubes*policy.CubesTryLeast
	if tried := float64(split.Tried); tried > max(most, 2*policy.CubesTryShare*estimate) {
		t.Errorf("%.3g of %.3g steps are taken to split", tried, estimate)
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
		split, err := Cubes(context.Background(), f, Options{Weights: weights, Work: whole.Stats.Work / 8}, like)
		if err != nil {
			t.Fatal(err)
		}
		work, largest, sum := int64(0), int64(0), scaled.Number{}
		for _, c := range split.Cubes {
			got, err := Compile(context.Background(), formula.Condition(f, c.Literals), Options{Weights: weights, Order: split.Order})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("%v: %d steps, %.3g estimated", c.Literals, got.Stats.Work, c.Steps)
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

// TestGivenOrders: a given order is followed without the assigned variables, and variables missing
// from it come first.
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

// BenchmarkCubes sums random clauses whole and in cubes, counted alone and with circuits: the processor time of all cubes and of
// the split relative to the whole's, the split's part of it, the largest cube's part, and the gain of two workers that do not
// disturb each other.
func BenchmarkCubes(b *testing.B) {
	for _, vars := range []int{60, 70} {
		for _, kind := range []string{"counted", "circuits"} {
			b.Run(fmt.Sprintf("%d/%s", vars, kind), func(b *testing.B) {
				r := rand.New(rand.NewPCG(1, 7))
				f, weights := cubic(r, vars, 2).formula(b, r)
				for b.Loop() {
					costOfCubes(b, f, weights, kind == "circuits")
				}
			})
		}
	}
}

// costOfCubes reports the cost of one split.
func costOfCubes(b *testing.B, f *formula.Formula, weights []scaled.Number, circuits bool) {
	b.Helper()
	// timed returns the seconds of processor time of one search.
	timed := func(f *formula.Formula, order []int) float64 {
		o := Options{Weights: weights, Order: order}
		if circuits {
			o.Builder = circuit.NewBuilder(f.Domains, policy.CircuitBytes)
		}
		start := processorTime()
		if _, err := Compile(b.Context(), f, o); err != nil {
			b.Fatal(err)
		}
		return (processorTime() - start).Seconds()
	}
	whole := timed(f, nil)
	start := processorTime()
	split, err := Cubes(b.Context(), f, Options{Weights: weights}, like)
	if err != nil {
		b.Fatal(err)
	}
	splitting := (processorTime() - start).Seconds()
	all, largest := splitting, 0.0
	var workers [2]float64 // those that take one after the other
	for _, c := range split.Cubes {
		one := timed(formula.Condition(f, c.Literals), split.Order)
		all, largest = all+one, max(largest, one)
		if workers[0] < workers[1] {
			workers[0] += one
		} else {
			workers[1] += one
		}
	}
	b.ReportMetric(float64(len(split.Cubes)), "cubes")
	b.ReportMetric(whole, "whole-s")
	b.ReportMetric(all, "cubes-s")
	b.ReportMetric(all/whole, "cubes/whole")
	b.ReportMetric(splitting/all, "split/cubes")
	b.ReportMetric(largest/all, "largest/cubes")
	b.ReportMetric((workers[0]+workers[1])/max(workers[0], workers[1]), "speed-up")
}
