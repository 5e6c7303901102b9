package stage

import (
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/closed"
	"github.com/basetensor/basetensor/internal/methods/search"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

func TestChunksCoverEveryUnitOnceInOrder(t *testing.T) {
	m := &factorgraph.Model{Domains: []int{2, 2, 2}}
	for _, scope := range [][]int{{0, 1}, {1, 2}, {0, 2}} {
		m.Factors = append(
			m.Factors,
			factorgraph.Factor{
				Scope: scope,
				Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{2, 1, 1, 2}},
			},
		)
	}
	net, err := Reparameterise(t.Context(), m, query.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	parts := make([]btn.Part, 5)
	for i := range parts {
		parts[i] = &closed.RankOne{Frame: &btn.Frame{}, R: make([][]float64, len(net.Dims))}
	}
	plan := &btn.Plan{
		Estimates: []btn.Estimate{
			{Rule: btn.Linear, Slices: 1, Parts: parts, Quality: &btn.Quality{}},
		},
	}
	heavy := &query.Cost{Flops: 5 * policy.ChunkFlops} // of all five parts
	chunks, _ := Chunks(
		net, []btn.Assignment{{Plan: plan}, {Error: &query.ErrorInfo{}}, {Plan: plan, Cost: heavy}},
	)
	var units []btn.Unit
	for _, c := range chunks {
		units = append(units, c...)
	}
	if len(units) != 10 || units[0] != (btn.Unit{}) || units[9] != (btn.Unit{Query: 2, Part: 4}) {
		t.Fatalf("units %v", units)
	}
	if len(chunks) != 6 { // the five light units of query 0, then five heavy ones alone
		t.Errorf("%d chunks: %v", len(chunks), chunks)
	}
	if got, _ := Chunks(net, nil); len(got) != 1 || len(got[0]) != 0 {
		t.Errorf("a job without units has %v", got)
	}
}

// TestChunksOfSearches: a search is a chunk before all others, and the first and the last of them may suffice.
func TestChunksOfSearches(t *testing.T) {
	m := &factorgraph.Model{Domains: []int{2}}
	net, err := Reparameterise(t.Context(), m, query.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	rest := &closed.RankOne{Frame: &btn.Frame{}, R: make([][]float64, len(net.Dims))}
	plan := func(searches int) btn.Assignment {
		e := btn.Estimate{Rule: btn.Linear, Slices: 1, Quality: &btn.Quality{}, Parts: []btn.Part{rest, rest}}
		for range searches {
			e.Parts = append(e.Parts, &search.Search{Work: 1})
		}
		return btn.Assignment{Plan: &btn.Plan{Estimates: []btn.Estimate{e}}}
	}
	for _, c := range []struct {
		job  []btn.Assignment
		ends []int
	}{
		{[]btn.Assignment{plan(0)}, nil},
		{[]btn.Assignment{plan(1)}, []int{1, 2}},
		{[]btn.Assignment{plan(0), plan(3), plan(1)}, []int{1, 4, 5}},
	} {
		chunks, ends := Chunks(net, c.job)
		seen := map[btn.Unit]int{}
		for k, units := range chunks {
			for _, u := range units {
				seen[u]++
				found := c.job[u.Query].Plan.Estimates[0].Parts[u.Part].About().IsInterim
				if found != (c.ends != nil && k < c.ends[len(c.ends)-2]) {
					t.Errorf("unit %+v in chunk %d of ends %v", u, k, ends)
				}
			}
		}
		total := 0
		for _, a := range c.job {
			total += a.Plan.PartCount()
		}
		if !slices.Equal(ends, c.ends) || len(seen) != total {
			t.Errorf("ends %v, want %v; %d units of %d", ends, c.ends, len(seen), total)
		}
	}
}
