package simulate

import (
	"math"
	"testing"

	"github.com/basetensor/basetensor/pkg/fault"
)

// TestDrawnIsASchedule: parts of one length and a shorter last one, on workers that take the next as soon as they are free, take rounds
// of a part; the measured times of the other stages come before and after.
func TestDrawnIsASchedule(t *testing.T) {
	m := &Measured{
		Reparam: []float64{3}, Learn: []float64{5}, Contract: []float64{7}, Aggregate: []float64{2}, Chunks: []int{4},
	}
	for _, components := range []int{1, 8, 1000, 1001, 4096} {
		for _, part := range []int{1, 8, 100, 5000} {
			for _, workers := range []int{1, 2, 3, 64} {
				s := Samples{Components: components, Part: part, Each: 0.25, Setup: 10}
				whole, rest := components/part, components%part
				round := 10 + 0.25*float64(part)
				want := 10 + math.Ceil(float64(whole)/float64(workers))*round
				if rest > 0 && whole%workers == 0 { // nobody is busy with a whole part by then
					want += 10 + 0.25*float64(rest)
				}
				got, err := Drawn(m, Config{Workers: workers}, s)
				if err != nil || math.Abs(got-want) > 1e-9*want {
					t.Errorf("%d in parts of %d by %d workers: %v ms (%v), not %v", components, part, workers, got, err, want)
				}
			}
		}
	}
	none := *m
	none.Reparam, none.Learn, none.Aggregate = []float64{0}, []float64{0}, []float64{0}
	if got, err := Drawn(&none, Config{}, Samples{Components: 5, Part: 2}); got != 0 || err != nil {
		t.Errorf("components that take nothing take %v ms (%v)", got, err)
	}
}

func TestSamplesAreChecked(t *testing.T) {
	for _, s := range []Samples{
		{}, {Components: 1}, {Part: 1}, {Components: 1 << 40, Part: 1}, {Components: 1, Part: 1, Each: -1},
		{Components: 1, Part: 1, Setup: math.Inf(1)}, {Components: 1, Part: 1, Each: math.NaN()},
	} {
		if _, err := Drawn(only(), Config{}, s); fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%+v: %v", s, err)
		}
	}
}
