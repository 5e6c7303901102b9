package pipeline_test

import (
	"testing"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/wire"
)

// TestGradientsEqualInfer: whole and in slices, the bits of infer.Run, whatever the number of contract-workers; and a job without
// gradients on the same model has its own network.
func TestGradientsEqualInfer(t *testing.T) {
	t.Parallel()
	m := grid(t, 5, 5, 1)
	for _, workers := range []int{1, 3} {
		r := newRig(t, embedded.Options{}, quick)
		r.start(workers)
		for job, settings := range map[string]btn.Settings{"whole": {}, "slices": {Memory: 12 << 10}, "again": {}} {
			w, p := request(t, job, m, settings, observe(0, 1), observe(1), observe(1))
			for q := range w.Queries {
				w.Queries[q].Gradients, p.Queries[q].Gradients = q != 1, q != 1
				w.Queries[q].Marginals, p.Queries[q].Marginals = q == 2, q == 2
			}
			if job == "again" {
				for q := range w.Queries {
					w.Queries[q].Gradients, p.Queries[q].Gradients = false, false
				}
			}
			want, err := infer.Run(r.ctx, p, nil)
			r.must(err)
			r.submit(w)
			a := r.wait(job)
			if a.Status != wire.StatusOK {
				t.Fatalf("%s: %s: %v", job, a.Status, a.Error)
			}
			if got, want := plain(t, a.Results), plain(t, want); got != want {
				t.Errorf("%s, %d contract-workers: got\n%s\nwant\n%s", job, workers, got, want)
			}
			first := a.Results[0]
			if asked := job != "again"; asked != (first.Gradients != nil) || a.Results[1].Gradients != nil || !first.Exact {
				t.Errorf("%s: gradients of %d factors, exact %t", job, len(first.Gradients), first.Exact)
			}
			if job == "slices" && first.Plan.Slices < 2 {
				t.Errorf("%v slices", first.Plan.Slices)
			}
		}
	}
}
