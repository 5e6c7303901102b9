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
// numbers equal the ones by position and the ones of the model without names. Requests for ln Z alone get no names.
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
		if !reflect.DeepEqual(a.Names, m.Names) || !reflect.DeepEqual(a.States, m.States) || len(a.Results) != 2 {
			t.Fatalf("%s: names %q, states %q, %d results, %v", w.Job, a.Names, a.States, len(a.Results), a.Error)
		}
		for q := range bare {
			bare[q].Job = w.Job
		}
		for q := range a.Results {
			a.Results[q].Named = nil // which the client adds
		}
		if got, want := plain(t, a.Results), plain(t, bare); got != want {
			t.Errorf("%s:\ngot\n%s\nwant\n%s", w.Job, got, want)
		}
		one := &a.Results[0]
		one.Name(a.Named())
		want := map[string]map[string]float64{
			"2": {"0": one.Marginals[0][0], "1": one.Marginals[0][1]},
			"a": {"no": one.Marginals[1][0], "yes": one.Marginals[1][1]},
		}
		if !reflect.DeepEqual(one.Named.Posteriors, want) || !reflect.DeepEqual(one.Named.Joint.Variables, []string{"d", "a"}) ||
			!reflect.DeepEqual(one.Named.Joint.States, [][]string{{"cold", "warm"}, {"no", "yes"}}) {
			t.Errorf("%s: %+v %+v", w.Job, one.Named, one.Named.Joint)
		}
		sum := one.Joint.P[1] + one.Joint.P[3] // a = yes
		if p := one.Named.Posteriors["a"]["yes"]; math.Abs(sum-p) > 1e-12 {
			t.Errorf("%s: P(a = yes) is %v by its joint marginal and %v by its own", w.Job, sum, p)
		}
		if a.Results[1].Name(a.Named()); a.Results[1].Named != nil {
			t.Errorf("%s: ln Z is said of %+v", w.Job, a.Results[1].Named)
		}

		// Warnings name variables of the evidence; without any, nothing is named.
		for i, evid := range []string{"b=yes", ""} {
			w.Job = fmt.Sprintf("alone-%d-%d", k, i)
			w.Queries = []query.Query{{Evid: evid}}
			r.submit(w)
			if a := r.wait(w.Job); a.Status != wire.StatusOK || (a.Names != nil) != (evid != "") || (a.States != nil) != (evid != "") {
				t.Errorf("%s: %v, names %q, states %q", w.Job, a.Error, a.Names, a.States)
			}
		}
		w.Job = fmt.Sprintf("aliases-%d", k)
		w.Queries = []query.Query{{Evid: "Is it so?=yes", Named: &query.ByName{Targets: []string{"Weather"}}}}
		r.submit(w)
		if a := r.wait(w.Job); a.Status != wire.StatusOK || !slices.Equal(a.Results[0].Targets, []int{3}) ||
			!slices.Equal(a.Names, m.Names) {
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
		w, _ := request(t, job, m, query.Settings{Method: query.MethodSymmetryCP, Sweeps: 2, Starts: 1}, observe())
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

// TestNamesOfManyVariables: a map in a message has at most 64 keys, and a model more variables than that: all of them have their marginals
// by name.
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
	if a.Status != wire.StatusOK || a.Results[0].Named == nil {
		t.Fatalf("%s: %+v", a.Status, a.Error)
	}
	named := a.Results[0].Named
	for _, name := range m.Names {
		if math.Abs(named.Posteriors[name]["yes"]-0.75) > 1e-12 || named.MPE[name] != "yes" {
			t.Errorf("%s: %v, %q", name, named.Posteriors[name], named.MPE[name])
		}
	}
}
