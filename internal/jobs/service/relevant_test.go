package service_test

import (
	"testing"

	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/wire"
)

// TestQuestionsToPartsEqualInfer: of a Bayesian network that is too large for one program, each question travels with what its part is
// found by, and its answer has the bits of the four functions in a row.
func TestQuestionsToPartsEqualInfer(t *testing.T) {
	t.Parallel()
	root := &tensor.Dense{Shape: []int{2}, Data: []float64{0.333333, 0.666666}}
	m := &factorgraph.Model{Bayes: true, Domains: []int{2}, Factors: []factorgraph.Factor{{Scope: []int{0}, Table: root}}}
	for v := 1; v < 200; v++ {
		m.Domains = append(m.Domains, 2)
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{(v - 1) / 2, v},
			Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{0.7, 0.3, 0.111111, 0.888888}}})
	}
	r := newRig(t, embedded.Options{NoRedis: true}, calm)
	r.start(2)
	w, p := request(t, "parts", m, query.Settings{}, observe(1), observe(0, 1), observe(1, 1), observe(), observe(0))
	w.Queries[1].Targets, p.Queries[1].Targets = []int{150, 7}, []int{150, 7}
	w.Queries[2].Joint, p.Queries[2].Joint = []int{99, 3}, []int{99, 3}
	w.Queries[3].Map, p.Queries[3].Map = []int{120, 5}, []int{120, 5}
	w.Queries[4].Marginals, p.Queries[4].Marginals = true, true
	want, err := infer.Run(r.ctx, p)
	r.must(err)
	r.submit(w)
	a := r.wait(w.Job)
	if a.Status != wire.StatusOK {
		t.Fatalf("%s: %v", a.Status, a.Error)
	}
	if got, want := plain(t, a.Results), plain(t, want); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if len(a.Results[1].Marginals) != 2 || a.Results[2].Joint == nil || a.Results[3].Map == nil || len(a.Results[4].Marginals) != 200 {
		t.Errorf("%+v", a.Results)
	}
}
