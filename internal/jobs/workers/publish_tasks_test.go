package workers

import (
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/admission"
	"github.com/basetensor/basetensor/pkg/query"
)

// A task carries the demands that its units name, at their distance from the first of them.
func TestDemandsOf(t *testing.T) {
	demands := make([]btn.Demand, 9)
	for i := range demands {
		demands[i].Want.Best = i + 1
	}
	for name, c := range map[string]struct {
		queries []int // of the units
		first   int
		named   []int // what names each demand, 0 for an empty one
	}{
		"no unit":           {nil, 0, nil},
		"one query":         {[]int{4, 4}, 4, []int{5}},
		"a gap":             {[]int{7, 5}, 5, []int{6, 0, 8}},
		"the first to last": {[]int{8, 0}, 0, []int{1, 0, 0, 0, 0, 0, 0, 0, 9}},
	} {
		var units []btn.Unit
		for _, q := range c.queries {
			units = append(units, btn.Unit{Query: q})
		}
		first, named := demandsOf(units, demands)
		var got []int
		for _, d := range named {
			got = append(got, d.Want.Best)
		}
		if first != c.first || !slices.Equal(got, c.named) {
			t.Errorf("%s: from %d: %v, want from %d: %v", name, first, got, c.first, c.named)
		}
	}
}

// The price of a plan has the work of all chunks, four times that of a chunk with marginals, and the bytes of the largest estimate.
func TestPriceOfAPlan(t *testing.T) {
	estimate := func(bytes float64) btn.Estimate { return btn.Estimate{Cost: query.Cost{Bytes: bytes}} }
	cut := &planCut{
		assignments: []btn.Assignment{
			{Plan: &btn.Plan{Estimates: []btn.Estimate{estimate(10), estimate(70)}}},
			{Want: btn.Want{Marginals: true}, Plan: &btn.Plan{Estimates: []btn.Estimate{estimate(50)}}},
			{}, // a query that needs no contraction
		},
		chunks: [][]btn.Unit{{{Query: 0}, {Query: 0, Part: 1}}, {{Query: 0, Part: 2}, {Query: 1}}},
		flops:  []float64{100, 30},
	}
	if got, want := cut.price(), (admission.Cost{Flops: 220, Parts: 4, Bytes: 70}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}
