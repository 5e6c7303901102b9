package acceptance

import (
	"reflect"
	"testing"

	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/wire"
)

// digestSamples are valid requests that among them have every field of a model message, with values
// and without.
func digestSamples(t *testing.T) []wire.Request {
	t.Helper()
	dims := []int{2, 3}
	levels := countspace.TwoLevels(dims)
	scope := []int{0, 1}
	body, err := wire.NewModel(&factorgraph.Model{Domains: []int{2, 3, 1},
		Names: []string{"rain", "wet", "one"}, States: [][]string{{"no", "yes"}, nil, {"only"}}, Bayes: true,
		Aliases: []string{"", "Wet grass", ""}, Lines: []int{1, 2, 0, 7, 8}, RowLines: [][]int{nil, {3, 4, 5}},
		Layout: []float64{0, 1.5, -2, 0.25, 1e300, 3},
		Factors: []factorgraph.Factor{
			{Scope: []int{}, Table: &tensor.Dense{Shape: []int{}, Data: []float64{2.5}}},
			{Scope: []int{1, 0}, Table: &tensor.Dense{Shape: []int{3, 2}, Data: []float64{1, 2, 3, 4, 5, 5e-324}}},
			{
				Scope: []int{0, 2},
				Table: &tensor.CP{Shape: []int{2, 1}, Weights: []float64{1, -1}, Vectors: [][]float64{nil, {0.5, 0.25}}},
			},
			{
				Scope: scope,
				Table: &tensor.Symmetric{Shape: dims, Levels: levels, Values: scaled.Vector{Mant: []float64{1, 0, 1}}},
			},
			{Scope: scope, Table: &tensor.SymmetryCP{Shape: dims, Levels: levels, Terms: []tensor.SymmetryRankOne{
				{
					Alpha: -2,
					S:     scaled.Vector{Mant: []float64{1, 2, 3}, Exp: []int64{-9, 0, 1 << 40}},
					R:     [][]float64{nil, {1, 2, 3}},
				}}}},
		}})
	if err != nil {
		t.Fatal(err)
	}
	const coin = "MARKOV\n1\n2\n0\n"
	evidence := factorgraph.Evidence{
		Hard: []factorgraph.Observation{{Var: 0, Value: 1}, {Var: 2, Value: 0}},
		Soft: []factorgraph.Likelihood{{Var: 1, Weights: []float64{0.25, 4, 1e300}}},
	}
	many := make([]query.Query, 17) // more than a fixed array
	for i := range many {
		many[i].Over = (i + 2) % 17
	}
	return []wire.Request{
		{Job: "least", Text: coin, Queries: []query.Query{{}}},
		{Job: "least", Text: coin, Queries: []query.Query{{Marginals: true}}},
		{Job: "many", Text: coin, Queries: many},
		{
			Job:        "text",
			Text:       coin,
			Queries:    []query.Query{{Evid: "1 0 1", EvidenceFile: "x.uai.evid"}},
			DeadlineMS: 1 << 33,
		},
		{Job: "named", ModelDigest: wire.Digest([]byte(coin)), Queries: []query.Query{{}}},
		{Job: "cp", Text: coin, Queries: []query.Query{{}}, Settings: query.Settings{Method: query.MethodSymmetryCP}},
		{Job: "plain", Text: coin, Queries: []query.Query{{}}, Settings: query.Settings{
			Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius,
		}},
		{Job: "full", Tenant: "Käse & Co", Model: body, Queries: []query.Query{{}, {
			Evidence:  evidence,
			Marginals: true,
			Over:      1,
			Targets:   []int{1, 0},
			Joint:     []int{2, 0},
			Gradients: true,
			MPE:       true,
			Best:      7,
			Map:       []int{1, 0},
			Samples:   3,
			Seed:      1 << 52,
			Conflict:  true,
		}, {
			Sensitivity: &query.Sensitivity{Variable: 1, Value: 2, Range: 0.25, Top: 5},
		}, {
			Gradients: true,
			Cases:     &query.Cases{Variables: []int{1, 0}, Rows: [][]int{{1, -1}, {-1, 0}}, Weights: []float64{2.5, 1}},
		}, {
			Information: &query.Ask{Target: 1, Candidates: []int{2, 0}, Utility: [][]float64{{1, 2, 3}, {0, -1, 0.5}}},
		}, {
			Do:      []factorgraph.Observation{{Var: 0, Value: 1}},
			Believe: []factorgraph.Likelihood{{Var: 1, Weights: []float64{0.5, 0.25, 0.25}}},
			Joint:   []int{2, 0}, Switches: []query.Switch{{Var: 3, Value: 1, Values: 2, Of: 1}},
		}, {
			Evid: "rain=yes",
			Named: &query.ByName{
				Joint: []string{"rain"}, Targets: []string{"wet", "2"}, Map: []string{"one"},
				Sensitivity: &query.NamedTarget{Variable: "rain", Value: "yes", Range: 0.5, Top: 3},
				Do:          "one=only", Believe: "wet=0.5/0.25/0.25",
				Information: &query.NamedAsk{Target: "wet", Candidates: []string{"rain"}, Utility: `{"wait": [0, 1, 2]}`},
			},
		}}, DeadlineMS: 60000,
			Settings: query.Settings{Method: query.MethodTruncated, Objective: query.ObjectiveVariance, Components: 3, Maps: query.MapOrthogonal,
				Cores: query.CoresAreVariables, Seed: 1 << 52,
				Memory:  1 << 40,
				NoExact: true, Bond: 300, Budget: 2.5, Accuracy: 1e-3}},
	}
}

// TestDigestSamplesHaveEveryField: a field that no sample has could be missing in examples/client-node/wire.mjs.
func TestDigestSamplesHaveEveryField(t *testing.T) {
	has := map[string]bool{}
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		switch v.Kind() {
		case reflect.Pointer, reflect.Interface:
			if !v.IsNil() {
				walk(v.Elem())
			}
		case reflect.Slice:
			for i := range v.Len() {
				walk(v.Index(i))
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if field := v.Type().Field(i); field.Tag.Get("msgpack") != "" {
					name := v.Type().String() + "." + field.Name
					has[name] = has[name] || !v.Field(i).IsZero()
					walk(v.Field(i))
				}
			}
		}
	}
	walk(reflect.ValueOf(digestSamples(t)))
	for name, ok := range has {
		if !ok {
			t.Errorf("no sample has %s", name)
		}
	}
	if len(has) < 40 {
		t.Errorf("only %d fields were looked at", len(has))
	}
}
