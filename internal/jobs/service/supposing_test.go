package service_test

import (
	"fmt"
	"testing"

	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/wire"
)

// sprinkler is rain → wet ← sprinkler.
func sprinkler() *factorgraph.Model {
	table := func(p ...float64) *tensor.Dense { return &tensor.Dense{Shape: []int{len(p)}, Data: p} }
	return &factorgraph.Model{
		Bayes: true, Domains: []int{2, 2, 2}, Names: []string{"rain", "sprinkler", "wet"},
		States: [][]string{{"no", "yes"}, {"off", "on"}, {"no", "yes"}},
		Factors: []factorgraph.Factor{
			{Scope: []int{0}, Table: table(0.8, 0.2)},
			{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{0.6, 0.4, 0.99, 0.01}}},
			{Scope: []int{0, 1, 2}, Table: &tensor.Dense{Shape: []int{2, 2, 2}, Data: []float64{1, 0, 0.1, 0.9, 0.2, 0.8, 0.01, 0.99}}},
		},
	}
}

// TestSupposingOverTheWire: doing and believing by name, of a model in the request and of a registered one, have the answers of Run, beside
// queries that observe.
func TestSupposingOverTheWire(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{}, quick)
	r.run(quick, allStages()...)
	m := sprinkler()
	body, err := wire.NewRequest(m,
		query.Query{Evid: "wet=yes", Marginals: true, MPE: true, Named: &query.ByName{Do: "sprinkler=on"}},
		query.Query{Evid: "wet=yes", Marginals: true},
		query.Query{Named: &query.ByName{Do: "sprinkler=off", Targets: []string{"rain"}, Believe: "wet=0.3/0.7"}},
	)
	r.must(err)
	want, err := infer.Run(r.ctx, infer.Request{Model: m, Queries: body.Queries})
	r.must(err)
	digest := r.register(m)
	for k := range 3 {
		w := body
		w.Job = fmt.Sprintf("suppose-%d", k)
		if k > 0 {
			w = byDigest(w, digest)
		}
		r.submit(w)
		a := r.wait(w.Job)
		if a.Status != wire.StatusOK {
			t.Fatalf("%s: %+v", w.Job, a.Error)
		}
		for q := range want {
			want[q].Job = w.Job
		}
		if got, want := plain(t, a.Results), plain(t, want); got != want {
			t.Errorf("%s:\ngot\n%s\nwant\n%s", w.Job, got, want)
		}
	}
}
