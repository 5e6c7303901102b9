package aggregate

import (
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// draws of one value, n times, for parts of some weight.
func draws(weight float64, value, n int) *btn.Drawn {
	return &btn.Drawn{Weight: scaled.Make(weight, 5000), Values: slices.Repeat([]int{value, value}, n)}
}

// TestDrawsAreOfPartsByTheirWeights: one in four is of the part with a quarter of Z, and the same seed
// chooses the same.
func TestDrawsAreOfPartsByTheirWeights(t *testing.T) {
	const n = 20_000
	parts := []*btn.Drawn{draws(1, 0, n), draws(3, 1, n)}
	list, err := mixed(parts, n, 7)
	if err != nil {
		t.Fatal(err)
	}
	ones := 0
	for _, x := range list {
		if x[0] != x[1] || len(x) != 2 {
			t.Fatalf("assignment %v", x)
		}
		ones += x[0]
	}
	if off := math.Abs(float64(ones) - 0.75*n); off > 5*math.Sqrt(n*0.75*0.25) {
		t.Errorf("%d of %d are of the second part", ones, n)
	}
	again, err := mixed(parts, n, 7)
	if err != nil || !slices.EqualFunc(list, again, slices.Equal[[]int]) {
		t.Errorf("another choice, %v", err)
	}
	if other, _ := mixed(parts, n, 8); slices.EqualFunc(list, other, slices.Equal[[]int]) {
		t.Error("seed 8 chooses as seed 7")
	}
	if _, err := mixed([]*btn.Drawn{draws(1, 0, 3), draws(1, 0, 2)}, 3, 1); err == nil {
		t.Error("parts with different numbers of draws are mixed")
	}
}

// drawn1 is an estimate whose parts have drawn states of one variable.
func drawn1(parts ...*btn.Picked) *estimate {
	e := &estimate{}
	for _, x := range parts {
		e.parts = append(e.parts, btn.Value{Weights: &btn.Weights{Picked: x}})
	}
	return e
}

// TestStatesOfABundleAreOne: of the pieces of a bundle one is drawn by weight, and it weighs what they weigh together.
func TestStatesOfABundleAreOne(t *testing.T) {
	no := math.Inf(-1)
	e := drawn1(
		&btn.Picked{First: 0, Ln: []float64{math.Log(2), math.Log(1)}, Values: []int{10, 11}},
		&btn.Picked{First: 1, Ln: []float64{math.Log(3), no}, Values: []int{21, 22}}, nil,
	)
	const seeds = 4000
	second := 0
	for seed := range uint64(seeds) {
		var r Total
		e.reportStates(&r, &btn.Want{Samples: 3, Seed: seed})
		if len(r.Samples) != 2 || r.Samples[0][0] != 10 {
			t.Fatalf("samples %v", r.Samples)
		}
		if math.Abs(r.Weights[0]-1.0/3) > 1e-12 || math.Abs(r.Weights[1]-2.0/3) > 1e-12 {
			t.Fatalf("weights %v", r.Weights)
		}
		if math.Abs(*r.Effective-9.0/5) > 1e-12 {
			t.Fatalf("%v effective samples", *r.Effective)
		}
		if len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0], "2 of 3 samples") {
			t.Fatalf("warnings %q", r.Warnings)
		}
		if r.Samples[1][0] == 21 {
			second++
		}
	}
	if z := (float64(second) - 0.75*seeds) / math.Sqrt(seeds*0.75*0.25); math.Abs(z) > 4.5 {
		t.Errorf("the second piece, of three quarters of the weight, was drawn %d times of %d", second, seeds)
	}
}

// TestStatesThatContradictEachOther are no samples.
func TestStatesThatContradictEachOther(t *testing.T) {
	for name, e := range map[string]*estimate{
		"other widths":   drawn1(&btn.Picked{Ln: []float64{0}, Values: []int{1}}, &btn.Picked{Ln: []float64{0}, Values: []int{1, 2}}),
		"beyond the end": drawn1(&btn.Picked{First: 1, Ln: []float64{0, 0}, Values: []int{1, 1}}),
		"an overflow":    drawn1(&btn.Picked{First: math.MaxInt64, Ln: []float64{0}, Values: []int{1}}),
		"no weight":      drawn1(&btn.Picked{Ln: []float64{math.Inf(-1)}, Values: []int{1}}),
		"none":           drawn1(nil),
	} {
		var r Total
		e.reportStates(&r, &btn.Want{Samples: 2})
		if r.Samples != nil || r.Weights != nil || len(r.Warnings) != 1 {
			t.Errorf("%s: samples %v, warnings %q", name, r.Samples, r.Warnings)
		}
	}
	var r Total
	drawn1(&btn.Picked{Ln: []float64{0}, Values: []int{1}}).reportStates(&r, &btn.Want{})
	if !slices.Equal(r.Warnings, nil) || r.Samples != nil {
		t.Errorf("samples %v that nobody asked for", r.Samples)
	}
}

// TestDoubtOfSamples: a probability of 0.735 from 53 effective samples was one of 0.506, without a word of it.
func TestDoubtOfSamples(t *testing.T) {
	for name, c := range map[string]struct {
		weights     int
		effective   float64
		uncertainty *float64
		want        float64
	}{
		"no samples":           {0, 53, finite(0.1), 0},
		"few count":            {100, 25, finite(0.1), 0.2},
		"Z may lack some":      {100, 100, finite(1), 1 - math.Exp(-1)},
		"nothing known of Z":   {100, 100, nil, 1},
		"as good as they look": {1000, 400, finite(1e-3), 0.05},
	} {
		r := Total{Result: query.Result{Uncertainty: c.uncertainty}, Weights: make([]float64, c.weights), Effective: &c.effective}
		if got := sampleDoubt(&r); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}

// TestMarginalsOfTargetsThatAreNotThere are none.
func TestMarginalsOfTargetsThatAreNotThere(t *testing.T) {
	e := &estimate{shares: []*btn.Weights{{Top: 0, Domains: []int{2}, Share: []float64{1, 3}, Squares: []float64{1, 9}}}}
	if p, _ := e.sampledMarginals([]int{0}); len(p) != 1 || p[0][1] != 0.75 {
		t.Errorf("marginals %v", p)
	}
	if p, u := e.sampledMarginals([]int{1}); p != nil || u != nil {
		t.Errorf("marginals %v of a variable that is not there", p)
	}
}
