package stage

import (
	"reflect"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// weather has names.
var weather = &factorgraph.Model{Domains: []int{2, 3}, Names: []string{"rain", "wind"}, States: [][]string{{"no", "yes"}, nil}}

// Evidence as text becomes evidence, and the queries asked stay as they are.
func TestQueriesReadText(t *testing.T) {
	for _, text := range []string{"1 1 2", "wind=2", `{"1": 2}`} {
		asked := []query.Query{{Evid: text, Marginals: true}, {}}
		got, err := Queries(weather.Domains, weather.Labels, asked)
		if err != nil || len(got) != 2 || got[0].Evid != "" || len(got[0].Evidence.Hard) != 1 ||
			got[0].Evidence.Hard[0].Value != 2 || !got[0].Marginals {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if asked[0].Evid == "" || !asked[0].Evidence.IsEmpty() {
			t.Errorf("%q: asked became %+v", text, asked)
		}
	}
	for _, text := range []string{"1 1 3", "1 2 0", "x"} {
		if _, err := Queries(weather.Domains, weather.Labels, []query.Query{{Evid: text}}); fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Names in queries become positions, and errors name the query and the field.
func TestQueriesReadNames(t *testing.T) {
	asked := query.Query{Named: &query.ByName{Joint: []string{"wind", "rain"}, Targets: []string{"1"}}}
	got, err := Queries(weather.Domains, weather.Labels, []query.Query{{}, asked})
	want := query.Query{Joint: []int{1, 0}, Targets: []int{1}, Marginals: true}
	if err != nil || !reflect.DeepEqual(got[1], want) || asked.Joint != nil || asked.Named == nil {
		t.Errorf("%+v, %v, want %+v", got, err, want)
	}
	byName := func(n query.ByName) query.Query { return query.Query{Named: &n} }
	both := byName(query.ByName{Joint: []string{"wind"}})
	both.Joint = []int{0}
	for says, q := range map[string]query.Query{
		`query 1: evid: no variable "ran": did you mean "rain"?`:         {Evid: "ran=yes"},
		`query 1: evid: variable "rain" has no value "maybe": there are`: {Evid: "rain=maybe"},
		`query 1: named.joint: no variable "wnd": did you mean "wind"?`:  byName(query.ByName{Joint: []string{"wnd"}}),
		`query 1: named.targets: variable "wind" twice`:                  byName(query.ByName{Targets: []string{"wind", "1"}}),
		`query 1: named.joint: both`:                                     both,
		`query 1: evid: both`:                                            {Evidence: factorgraph.Observe(map[int]int{0: 1}), Evid: "rain=yes"},
	} {
		_, err := Queries(weather.Domains, weather.Labels, []query.Query{{}, q})
		if err == nil || !strings.Contains(err.Error(), says) || fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%v, want %s", err, says)
		}
	}
}
