package aggregate

import (
	"math"
	"slices"
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
	list, err := mixDraws(parts, n, 7)
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
	again, err := mixDraws(parts, n, 7)
	if err != nil || !slices.EqualFunc(list, again, slices.Equal[[]int]) {
		t.Errorf("another choice, %v", err)
	}
	if other, _ := mixDraws(parts, n, 8); slices.EqualFunc(list, other, slices.Equal[[]int]) {
		t.Error("seed 8 chooses as seed 7")
	}
	if _, err := mixDraws([]*btn.Drawn{draws(1, 0, 3), draws(1, 0, 2)}, 3, 1); err == nil {
		t.Error("parts with different numbers of draws are mixed")
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
		if got := samplesError(&r); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
}
