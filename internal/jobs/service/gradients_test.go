package service_test

import (
	"testing"

	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// TestGradientsEqualInfer: whole and in slices, the bits of infer.Run, for any number of contract-workers; and a job without
// gradients on the same model has its own network.
func TestGradientsEqualInfer(t *testing.T) {
	t.Parallel()
	m := grid(t, 5, 5, 1)
	for _, workers := range []int{1, 3} {
		r := newRig(t, embedded.Options{}, calm)
		r.start(workers)
		for job, settings := range map[string]query.Settings{"whole": {}, "slices": {Memory: 12 << 10}, "again": {}} {
			w, p := request(t, job, m, settings, observe(0, 1), observe(1), observe(1))
			for q := range w.Queries {
				w.Queries[q].Gradients, p.Queries[q].Gradients = q != 1, q != 1
				w.Queries[q].Marginals, p.Queries[q].Marginals = q == 2, q == 2
			}
			if job == "slices" {
				s := &query.Sensitivity{Variable: 7, Value: 1, Range: 0.5, Top: 3}
				w.Queries[1].Sensitivity, p.Queries[1].Sensitivity = s, s
			}
			if job == "whole" { // a likelihood, with the model without evidence against it
				q := query.Query{Gradients: true, Cases: &query.Cases{
					Variables: []int{0, 3}, Rows: [][]int{{1, -1}, {0, 1}, {-1, -1}}, Weights: []float64{3, 2, -5},
				}}
				w.Queries, p.Queries = append(w.Queries, q), append(p.Queries, q)
			}
			if job == "again" {
				for q := range w.Queries {
					w.Queries[q].Gradients, p.Queries[q].Gradients = false, false
				}
			}
			want, err := infer.Run(r.ctx, p)
			r.must(err)
			r.submit(w)
			a := r.wait(job)
			if a.Status != wire.StatusOK {
				t.Fatalf("%s: %s: %v", job, a.Status, a.Error)
			}
			if got, want := plain(t, a.Results), plain(t, want); got != want {
				t.Errorf("%s, %d contract-workers: got\n%s\nwant\n%s", job, workers, got, want)
			}
			first, second := a.Results[0], a.Results[1]
			if !first.Exact || second.Gradients != nil || (first.Gradients != nil) != (job != "again") {
				t.Errorf("%s: gradients %+v, exact %t", job, first.Gradients, first.Exact)
			}
			last := a.Results[len(a.Results)-1]
			if l := last.Likelihood; (l != nil) != (job == "whole") || l != nil && len(l.Gradients) != len(m.Factors) {
				t.Errorf("%s: likelihood %+v", job, l)
			}
			if s := second.Sensitivity; (s != nil) != (job == "slices") || s != nil && len(s.Tornado) != 3 {
				t.Errorf("%s: sensitivity %+v", job, s)
			}
			if job == "slices" && first.Plan.Slices < 2 {
				t.Errorf("%v slices", first.Plan.Slices)
			}
		}
	}
}
