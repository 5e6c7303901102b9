package questions

import (
	"testing"

	"github.com/basetensor/basetensor/pkg/query"
)

// TestNamesInResults: every kind of answer has names beside its positions, and texts have them in their place; what was there before stays
// as it is for others who have it.
func TestNamesInResults(t *testing.T) {
	n := query.Names{Variables: []string{"smoke", "", "cough"}, States: [][]string{{"no", "yes"}, nil, {"x", "y"}}}
	e, one := &query.ErrorInfo{Message: "variable 0"}, 1
	warnings := []string{"x_0"}
	results := []query.Result{{
		Error: e, Warnings: warnings, Marginals: [][]float64{{0.25, 0.75}}, Targets: []int{2},
		Joint:   &query.Joint{Variables: []int{2, 1}, Shape: []int{2, 2}, P: make([]float64, 4)},
		MPE:     &query.Explanation{Assignment: []int{1, 0, 0}, Others: []query.Alternative{{Assignment: []int{0, 0, 1}}}},
		Map:     &query.MarginalMap{Variables: []int{2}, Assignment: []int{1}},
		Samples: [][]int{{0, 1, 1}}, Conflict: &query.Conflict{Observations: []query.Observed{{Variable: 0, Value: &one}, {Variable: 2}}},
		Information: &query.Information{Target: 0, Candidates: []query.Observable{{Variable: 2}}},
		Sensitivity: &query.SensitivityResult{
			Sensitivity: query.Sensitivity{Variable: 2, Value: 1}, Tornado: []query.Swing{{Variables: []int{0}, Values: []int{1}, Of: &one}},
		},
	}, {Warnings: []string{}}}
	Name(results, n)
	r := results[0].Named
	if results[0].Error.Message != `"smoke"` || results[0].Warnings[0] != `"smoke"` || e.Message != "variable 0" || warnings[0] != "x_0" {
		t.Errorf("texts: %q, %q", results[0].Error, results[0].Warnings)
	}
	if results[1].Named != nil {
		t.Errorf("names of nothing: %+v", results[1].Named)
	}
	if r == nil || r.Posteriors["cough"]["y"] != 0.75 || r.Joint.Variables[0] != "cough" || r.Joint.States[1][1] != "1" ||
		r.MPE["smoke"] != "yes" || r.MPE["1"] != "0" || r.Others[0]["cough"] != "y" || r.Map["cough"] != "y" ||
		r.Samples.Variables[2] != "cough" || len(r.Samples.States[1]) != 0 || *r.Conflict["smoke"] != "yes" || r.Conflict["cough"] != nil ||
		r.Information.Target != "smoke" || r.Information.Candidates[0] != "cough" || r.Sensitivity.Variable != "cough" ||
		r.Sensitivity.Value != "y" || r.Sensitivity.Tornado[0].Of != "1" || r.Sensitivity.Tornado[0].At["smoke"] != "yes" {
		t.Errorf("%+v", r)
	}
	Name(results[1:], query.Names{})
}
