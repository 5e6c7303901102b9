package service_test

import (
	"slices"
	"testing"

	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestAssignmentsThroughThePipeline: explanations, marginal MAP assignments and samples have the bits
// of infer.Run, in one piece and in slices, beside marginals and alone.
func TestAssignmentsThroughThePipeline(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{}, calm)
	r.run(calm, allStages()...)
	for job, memory := range map[string]int64{"whole": 0, "slices": 3 << 10} {
		m := grid(t, 6, 6, 5)
		w, p := request(t, job, m, query.Settings{Memory: memory}, observe(0), observe(1, 0))
		asked := []query.Query{
			{MPE: true, Samples: 20, Seed: 3},
			{MPE: true, Marginals: true, Map: []int{5, 0}, Samples: 1},
		}
		for k := range asked {
			asked[k].Evidence = p.Queries[k].Evidence
			if memory > 0 {
				asked[k].Marginals, asked[k].Map = false, nil // they need more
			}
		}
		w.Queries, p.Queries = asked, slices.Clone(asked)
		r.submit(w)
		want, err := infer.Run(r.ctx, p)
		r.must(err)
		for k := range want {
			if want[k].MPE == nil || len(want[k].Samples.Assignments) != asked[k].Samples {
				t.Fatalf("%s, query %d: %+v", job, k, want[k].Error)
			}
		}
		if got, want := plain(t, r.wait(job).Results), plain(t, want); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", job, got, want)
		}
	}
}
