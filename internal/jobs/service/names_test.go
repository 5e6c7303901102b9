package service_test

import (
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/wire"
)

// TestNamesTravel: questions by name are answered with names, whether the request has the model or names it, first and later; the
// numbers equal the ones by position and the ones of the model without names.
func TestNamesTravel(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{}, calm)
	r.run(calm, allStages()...)
	m := grid(t, 2, 2, 5)
	bare, err := infer.Run(r.ctx, infer.Request{Model: m, Queries: []query.Query{
		{Evidence: factorgraph.Observe(map[int]int{1: 1}), Marginals: true, Targets: []int{2, 0}, Joint: []int{3, 0}}, {},
	}})

	r.must(err)
	m.Names = []string{"a", "b", "", "d"}
	m.States = [][]string{{"no", "yes"}, {"no", "yes"}, nil, {"cold", "warm"}}
	m.Aliases = []string{"", "Is it so?", "", "Weather"}
	body, err := wire.NewRequest(m, query.Query{
		Evid: "b=yes", Named: &query.ByName{Targets: []string{"2", "a"}, Joint: []string{"d", "a"}},
	}, query.Query{})
	r.must(err)
	digest := r.register(m)
	for k := range 4 {
		w := body
		w.Job = fmt.Sprintf("named-%d", k)
		if k%2 == 1 {
			w = byDigest(w, digest)
		}
		r.submit(w)
		a := r.wait(w.Job)
		if len(a.Results) != 2 {
			t.Fatalf("%s: %d results, %v", w.Job, len(a.Results), a.Error)
		}
		for q := range bare {
			bare[q].Job = w.Job
			bare[q].Name(query.Names{Variables: m.Names, States: m.States})
		}
		if got, want := plain(t, a.Results), plain(t, bare); got != want {
			t.Errorf("%s:\ngot\n%s\nwant\n%s", w.Job, got, want)
		}
		one := &a.Results[0]
		want := map[string]map[string]float64{
			"2": {"0": one.Marginals[0].P[0], "1": one.Marginals[0].P[1]},
			"a": {"no": one.Marginals[1].P[0], "yes": one.Marginals[1].P[1]},
		}
		posteriors := one.Posteriors()
		if !reflect.DeepEqual(posteriors, want) || !reflect.DeepEqual(one.Joint.Names, []string{"d", "a"}) ||
			!reflect.DeepEqual(one.Joint.States, [][]string{{"cold", "warm"}, {"no", "yes"}}) {
			t.Errorf("%s: %+v %+v", w.Job, one.Marginals, one.Joint)
		}
		sum := one.Joint.P[1] + one.Joint.P[3] // a = yes
		if p := posteriors["a"]["yes"]; math.Abs(sum-p) > 1e-12 {
			t.Errorf("%s: P(a = yes) is %v by its joint marginal and %v by its own", w.Job, sum, p)
		}
		w.Job = fmt.Sprintf("aliases-%d", k)
		w.Queries = []query.Query{{Evid: "Is it so?=yes", Named: &query.ByName{Targets: []string{"Weather"}}}}
		r.submit(w)
		if a := r.wait(w.Job); a.Status != wire.StatusOK || len(a.Results[0].Marginals) != 1 || a.Results[0].Marginals[0].Name != "d" {
			t.Errorf("%s: %v, %+v", w.Job, a.Error, a.Results)
		}
		w.Job = fmt.Sprintf("wrong-%d", k)
		w.Queries = []query.Query{{}, {Evid: `{"d": "warn"}`}}
		r.submit(w)
		if a := r.wait(w.Job); a.Error == nil || a.Error.Code != fault.BadInput ||
			!strings.Contains(a.Error.Message, `query 1: evid: variable "d" has no value "warn": did you mean "warm"?`) {
			t.Errorf("%s: %+v", w.Job, a.Error)
		}
	}
}

// TestNamesChangeNoNumber: models that differ in names alone share their decompositions, and have the same bits.
func TestNamesChangeNoNumber(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{}, calm)
	r.run(calm, allStages()...)
	m := grid(t, 3, 3, 7)
	ask := func(job string) *wire.Answer {
		w, _ := request(t, job, m, query.Settings{Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius}, observe())
		r.submit(w)
		return r.wait(job)
	}
	first := ask("without")
	m.Names = strings.Fields("a b c d e f g h i")
	second := ask("with")
	first.Results[0].Job = "with"
	if first.Results[0].Cache != "miss" || second.Results[0].Cache != "hit" {
		t.Errorf("cache: %s and %s", first.Results[0].Cache, second.Results[0].Cache)
	}
	if a, b := plain(t, first.Results), plain(t, second.Results); a != b {
		t.Errorf("without names\n%s\nwith\n%s", a, b)
	}
}

// TestNamesOfManyVariables: all variables of a model have their marginals by name, in the sequence of the model.
func TestNamesOfManyVariables(t *testing.T) {
	t.Parallel()
	const n = 300
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	r.run(quick, allStages()...)
	m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, n)}
	for v := range n {
		m.Names = append(m.Names, fmt.Sprintf("variable-%d", v))
		m.States = append(m.States, []string{"no", "yes"})
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v}, Table: &tensor.Dense{Shape: []int{2}, Data: []float64{1, 3}}})
	}
	w, err := wire.NewRequest(m, query.Query{Marginals: true, MPE: true})
	r.must(err)
	w.Job = "many"
	r.submit(w)
	a := r.wait(w.Job)
	if a.Status != wire.StatusOK || len(a.Results[0].Marginals) != n || a.Results[0].MPE == nil {
		t.Fatalf("%s: %+v", a.Status, a.Error)
	}
	mpe := a.Results[0].MPE
	for v, p := range a.Results[0].Marginals {
		if p.Name != m.Names[v] || p.States[1] != "yes" || math.Abs(p.P[1]-0.75) > 1e-12 || mpe.Names[v] != p.Name || mpe.States[v] != "yes" {
			t.Errorf("%+v, %q=%q", p, mpe.Names[v], mpe.States[v])
		}
	}
}
