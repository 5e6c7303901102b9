package service_test

import (
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestCubesThroughThePipeline: the cubes of a search on two contract-workers, of which one is killed and comes again, have the bits of
// infer.Run.
func TestCubesThroughThePipeline(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, calm)
	r.run(calm, allStages()...)
	_, kill := r.run(calm, query.StageContract)
	m, err := generate.Random(generate.RandomOptions{Variables: 14, Degree: 30, Arity: 2, MinDomain: 8, MaxDomain: 8, Strength: 1, Seed: 3})
	r.must(err)
	w, p := request(t, "cubes", m, query.Settings{Budget: 5e9, Components: 6}, observe(0))
	w.Queries[0].MPE, p.Queries[0].MPE = true, true
	r.submit(w)
	kill()
	r.run(calm, query.StageContract)
	want, err := infer.Run(r.ctx, p)
	r.must(err)
	if want[0].MPE == nil || want[0].MPE.Optimal == nil || !*want[0].MPE.Optimal {
		t.Fatalf("%+v", want[0])
	}
	if got, want := plain(t, r.wait("cubes").Results), plain(t, want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

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
