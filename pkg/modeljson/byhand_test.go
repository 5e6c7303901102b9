package modeljson

import (
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/tensor"
)

// byHand is a model with a factor; its variables have 2, 3 and 2 values.
func byHand(scope, values string) string {
	return `{"basetensor_model": 1, "variables": [{"name": "rain", "states": ["no", "yes"]}, {"name": "wind", "domain": 3},
{"domain": 2}], "factors": [
  {"scope": ` + scope + `, "dense": {"values": ` + values + `}}
]}`
}

// TestByHand: scopes by name and by position, and tables in one list, in rows and nested, are the same factor.
func TestByHand(t *testing.T) {
	const flat = "[1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]"
	for _, scope := range []string{"[0, 1, 2]", `["rain", "wind", 2]`, `["rain", 1, "2"]`, `[0, "wind", 2]`, "[ 0,1\n,2 ]"} {
		for _, values := range []string{
			flat, "[[1, 2], [3, 4], [5, 6], [7, 8], [9, 10], [11, 12]]", "[[[1,2],[3,4],[5,6]],\n[[7,8],[9,10],[11,1.2e1]]]",
		} {
			m, err := Decode(strings.NewReader(byHand(scope, values)), Limits{})
			if err == nil {
				err = validates(schema(t), byHand(scope, values))
			}
			if err != nil {
				t.Errorf("%s, %s: %v", scope, values, err)
				continue
			}
			f := m.Factors[0]
			table := f.Table.(*tensor.Dense)
			if !slices.Equal(f.Scope, []int{0, 1, 2}) || !slices.Equal(table.Shape, []int{2, 3, 2}) ||
				!slices.Equal(table.Data, []float64{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}) || m.Lines != nil {
				t.Errorf("%s, %s: %v %v", scope, values, f.Scope, table)
			}
		}
	}
	m, err := Decode(strings.NewReader(strings.Replace(byHand("[]", "[3]"), "{", `{"bayes": true, `, 1)), Limits{})
	if err != nil || !slices.Equal(m.Lines, []int{3}) {
		t.Error(m, err)
	}
}

// TestByHandRefuses: errors name the factor, its variables and the place, and say what is needed.
func TestByHandRefuses(t *testing.T) {
	const needs = "in one list, in rows over the last variable, or nested in the scope's order"
	for _, c := range []struct{ scope, values, want string }{
		{`["rian"]`, "[1, 2]", `factor 0 (line 3, column 3): invalid model: scope position 0: no variable "rian": did you mean "rain"?`},
		{`["rain", 7]`, "[1, 2]", `factor 0 (line 3, column 3): invalid model: scope position 1: variable 7, the model has 3`},
		{`[-1]`, "[1, 2]", `scope position 0: no variable "-1"`},
		{`[0.5]`, "[1, 2]", `factor 0 (line 3, column 3): not a model file: scope position 0: 0.5 is neither the name nor the position`},
		{`"rain"`, "[1, 2]", "factor 0 (line 3, column 3): not a model file: scope is a list of names or positions of variables"},
		{`["rain", "wind"]`, "[1, 2, 3, 4, 5]", `factor 0 over "rain", "wind" (line 3, column 3): invalid model: ` +
			`values are 5 numbers, needed are 6 (2 of "rain" times 3 of "wind"), ` + needs},
		{`["rain", "wind"]`, "[[1, 2], [3, 4], [5, 6]]",
			`values are lists of 3 times 2 numbers, needed are 6 (2 of "rain" times 3 of "wind"), ` + needs},
		{`["rain", "wind"]`, "[[1, 2, 3], [4, 5]]", "not a model file: values: a list of 2 where another one has 3"},
		{`["rain", "wind"]`, "[[1, 2, 3], 4, 5, 6]", "not a model file: values: number 3 stands in 1 lists, others in 2"},
		{`["rain", "wind"]`, `[[1, 2, 3], [4, 5, "6"]]`, `values are a list of numbers, of rows or of nested lists: "\"6\"]]" is no number`},
		{`["rain"]`, `[[], []]`, `factor 0 over "rain" (line 3, column 3): invalid model: values are lists of 2 times 0 numbers`},
		{`["rain"]`, `7`, `values are a list of numbers`},
		{`["rain", "rain"]`, "[1, 2, 3, 4]", `factor 0 (line 3): variable 0 is twice in the scope`},
		{`["rain"]`, `[1, 2]}, "tabel": {"values": [1, 2]`, `not a model file: line 3, column 52: unknown field "tabel": there are ` +
			`"scope", "dense", "cp", "symmetric", "symmetry_cp" and "low_rank"`},
	} {
		text := byHand(c.scope, c.values)
		m, err := Decode(strings.NewReader(text), Limits{})
		if m != nil || err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s, %s: %v, want %s", c.scope, c.values, err, c.want)
		}
	}
}
