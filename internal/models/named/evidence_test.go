package named_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/models/named"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
)

// clinic has a variable with everything, one without names of values, and one whose values are ranges.
func clinic(t testing.TB) *factorgraph.Labels {
	t.Helper()
	l, err := factorgraph.NewLabels([]int{2, 3, 2}, []string{"smoke", "x ray", "age"},
		[][]string{{"no", "yes"}, nil, {"[0,40)", "[40,∞)"}})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func observed(pairs ...int) (e factorgraph.Evidence) {
	for i := 0; i < len(pairs); i += 2 {
		e.Hard = append(e.Hard, factorgraph.Observation{Var: pairs[i], Value: pairs[i+1]})
	}
	return e
}

// TestManyStatementsAboutOneVariable take time in proportion to their number: with the square of it this test ends in hours.
func TestManyStatementsAboutOneVariable(t *testing.T) {
	const n = 1 << 17
	states := make([]string, n)
	weights, again := strings.Builder{}, strings.Builder{}
	for x := range states {
		states[x] = fmt.Sprint("s", x)
		fmt.Fprintf(&weights, ",%q:1", states[x])
		again.WriteString(`,"v":7`)
	}
	l, err := factorgraph.NewLabels([]int{n}, []string{"v"}, [][]string{states})
	if err != nil {
		t.Fatal(err)
	}
	if e, err := named.Evidence(l, `{"v": {`+weights.String()[1:]+`}}`); err != nil || len(e.Soft) != 1 || len(e.Soft[0].Weights) != n {
		t.Errorf("%d likelihoods, %v", len(e.Soft), err)
	}
	if e, err := named.Evidence(l, "{"+again.String()[1:]+"}"); err != nil || !reflect.DeepEqual(e, observed(0, 7)) {
		t.Errorf("%d observations, %v", len(e.Hard), err)
	}
	if _, err := named.Evidence(l, `{"v": 1, "v": "s1", "v": 2, "v": "nothing"}`); !errors.Is(err, factorgraph.ErrContradictory) {
		t.Error(err)
	}
}

func TestEvidenceByName(t *testing.T) {
	weights := factorgraph.Evidence{Soft: []factorgraph.Likelihood{{Var: 0, Weights: []float64{0.2, 0.8}}}}
	both := observed(1, 2)
	both.Soft = weights.Soft
	for text, want := range map[string]factorgraph.Evidence{
		"":                                   {},
		"1 0 1":                              observed(0, 1),
		"1 1 0 1":                            observed(0, 1),
		"smoke=yes":                          observed(0, 1),
		"x ray=2,smoke=no":                   observed(0, 0, 1, 2),
		" smoke = yes , x ray= 2":            observed(0, 1, 1, 2),
		"smoke=yes\r\nx ray=0\n":             observed(0, 1, 1, 0),
		"0=yes,1=0":                          observed(0, 1, 1, 0),
		"age=[40,∞),smoke=yes":               observed(0, 1, 2, 1), // a comma of the value
		"smoke=yes,smoke=yes":                observed(0, 1),
		`{}`:                                 {},
		`{"smoke": "yes", "1": 2}`:           observed(0, 1, 1, 2),
		"\ufeff {\"x ray\": \"0\"}\n":        observed(1, 0),
		`{"smoke": [0.2, 0.8]}`:              weights,
		`{"smoke": {"yes": 0.8, "no": 0.2}}`: weights,
		`{"smoke": {"yes": 0.8, "no": 0.2}, "x ray": 2}`: both,
		`{"smoke": 1}`: observed(0, 1), // a number is a position where it is no name
		`{"smoke": [0.5, 2], "0": {"no": 0.4, "yes": 0.4}}`: weights,
		`{"age": "[0,40)"}`: observed(2, 0),
	} {
		got, err := named.Evidence(clinic(t), text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
		if text != "" && text[0] != '1' != named.Inline(text) {
			t.Errorf("%q inline: %v", text, named.Inline(text))
		}
	}
}

func TestEvidenceThatIsWrong(t *testing.T) {
	for text, want := range map[string]string{
		"smok=yes":                                 `no variable "smok": did you mean "smoke"?`,
		"smoke=ys":                                 `variable "smoke" has no value "ys": did you mean "yes"?`,
		"smoke=perhaps":                            `variable "smoke" has no value "perhaps": there are "no" and "yes"`,
		"yes,smoke=yes":                            `"yes" is no assignment`,
		"smoke=yes,smoke=no":                       `contradictory: variable "smoke" observed at "yes" and at "no"`,
		"smoke=yes,x":                              `has no value "yes,x"`,
		"3 0 1":                                    "neither dialect",
		`{"smoke": "yes"`:                          "unexpected EOF",
		`{"smoke": "yes"} {}`:                      "something after",
		`{"smoke": null}`:                          `variable "smoke": a value, a list`,
		`{"smoke": [0.2]}`:                         `variable "smoke": 1 weights for 2 values`,
		`{"smoke": []}`:                            `variable "smoke": 0 weights for 2 values`,
		`{"smoke": [1, null]}`:                     `variable "smoke": a value, a list`,
		`{"smoke": ["no"]}`:                        `variable "smoke": a value, a list`,
		`{"smoke": [1, -1]}`:                       `variable "smoke": weight -1 of "yes"`,
		`{"smoke": {}}`:                            `variable "smoke": no weight for "no"`,
		`{"smoke": {"yes": 1}}`:                    `variable "smoke": no weight for "no"`,
		`{"smoke": {"yes": 1, "yes": 2}}`:          `variable "smoke": two weights for "yes"`,
		`{"smoke": {"1": 0.8, "0": 0.2}}`:          `variable "smoke" has no value "1": there are "no" and "yes"`,
		`{"smoke": "1"}`:                           `variable "smoke" has no value "1": there are "no" and "yes"`,
		"smoke=1":                                  `variable "smoke" has no value "1": there are "no" and "yes"`,
		`{"smoke": 2}`:                             `variable "smoke" has no value "2": there are "no" and "yes"`,
		`{"smoke": {"yes": "x", "no": 1}}`:         `variable "smoke": a value, a list`,
		`{"smoke": {"yes": null, "no": 1}}`:        `variable "smoke": a value, a list`,
		`{"smoke": [1e-400, 1]}`:                   `1e-400 is beyond the range of float64`,
		`{"smoke": {"yes": 1e-310, "no": 1}}`:      `1e-310 is beyond the range of float64`,
		`{"smoke": [1e400, 1]}`:                    `1e400 is beyond the range of float64`,
		`{"smoke": [1e-200, 1], "0": [1e-200, 1]}`: `variable "smoke": the product of the weights of "no" is beyond the range`,
		`{"x ray": 1.5}`:                           `variable "x ray" has no value "1.5"`,
		`{"x ray": 3}`:                             `variable "x ray" has no value 3, its values are 0 to 2`,
		`{"x ray": true}`:                          `variable "x ray" has no value "true"`,
	} {
		_, err := named.Evidence(clinic(t), text)
		if err == nil || !strings.Contains(err.Error(), want) || fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%q: %v (%s), want %s", text, err, fault.CodeOf(err), want)
		}
	}
	if _, err := named.Evidence(clinic(t), "smoke=yes,smoke=no"); !errors.Is(err, factorgraph.ErrContradictory) {
		t.Errorf("%v", err)
	}
}

func TestVariablesByName(t *testing.T) {
	var names []named.Variable
	if err := json.Unmarshal([]byte(`["age", 1, "0"]`), &names); err != nil {
		t.Fatal(err)
	}
	if of, err := named.Variables(clinic(t), names); err != nil || !slices.Equal(of, []int{2, 1, 0}) {
		t.Errorf("%v, %v", of, err)
	}
	if of, err := named.Variables[string](clinic(t), nil); err != nil || of != nil {
		t.Errorf("%v, %v", of, err)
	}
	if _, err := named.Variables(clinic(t), []string{"smoke", "ag"}); err == nil || !strings.Contains(err.Error(), `did you mean "age"?`) {
		t.Errorf("%v", err)
	}
	for _, text := range []string{`[null]`, `[true]`, `[{}]`} {
		if err := json.Unmarshal([]byte(text), &names); err == nil {
			t.Errorf("%s is read", text)
		}
	}
}

// TestEvidenceByLiterals: of a formula, whose variables are called by their numbers from 1 on.
func TestEvidenceByLiterals(t *testing.T) {
	formula, err := factorgraph.NewLabels([]int{2, 2, 2}, []string{"1", "2", "3"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]factorgraph.Evidence{
		"3": observed(2, 1), "-3": observed(2, 0), "3,-1": observed(0, 0, 2, 1),
		" 3 , -1 ": observed(0, 0, 2, 1), "3=1,1=0": observed(0, 0, 2, 1),
		"1 2 1": observed(2, 1), // a file's: one observation, by position
	} {
		got, err := named.Evidence(formula, text)
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for text, want := range map[string]factorgraph.Evidence{`[3, -1]`: observed(0, 0, 2, 1), `[]`: {}} {
		var v named.Values
		err := json.Unmarshal([]byte(text), &v)
		got, err2 := v.Evidence(formula)
		if err = errors.Join(err, err2); err != nil || v == nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, %v, want %+v", text, got, err, want)
		}
	}
	for _, text := range []string{`["3"x]`, `[0]`, `[1.5]`, `[null]`, `[true]`, `[[3]]`} {
		var v named.Values
		if err := json.Unmarshal([]byte(text), &v); err == nil {
			t.Errorf("%s: %+v", text, v)
		}
	}
	for text, of := range map[string]*factorgraph.Labels{"4": formula, "-1,1": formula, "1": clinic(t), "-2,1": clinic(t)} {
		if e, err := named.Evidence(of, text); fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%q: %+v, %v", text, e, err)
		}
	}
}

// FuzzEvidence: from any text, the evidence read is in the normal form and fits the model.
func FuzzEvidence(f *testing.F) {
	for _, text := range []string{"1 0 1", "smoke=yes,x ray=2", `{"smoke": {"yes": 0.8, "no": 0.2}, "1": 2, "age": [1, 2]}`, "{", "=", ",="} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		l := clinic(t)
		e, err := named.Evidence(l, text)
		if err != nil {
			if fault.CodeOf(err) != fault.BadInput {
				t.Errorf("%q: %v", text, err)
			}
			return
		}
		if err := e.Validate(&factorgraph.Model{Domains: l.Domains()}); err != nil {
			t.Errorf("%q: %v", text, err)
		}
	})
}

// TestNumbersThatAreNames: of values that are called by numbers, a number is the name and never a position.
func TestNumbersThatAreNames(t *testing.T) {
	l, err := factorgraph.NewLabels([]int{3}, []string{"grade"}, [][]string{{"1", "2", "3"}})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{"grade=1": 0, `{"grade": 1}`: 0, `{"grade": "3"}`: 2, "grade=0": -1, `{"grade": 0}`: -1} {
		e, err := named.Evidence(l, text)
		if (err == nil) != (want >= 0) || err == nil && e.Hard[0].Value != want {
			t.Errorf("%s: %+v, %v", text, e, err)
		}
	}
}

// TestBeliefsOfOneVariable: there is one, also of the same variable by another spelling.
func TestBeliefsOfOneVariable(t *testing.T) {
	l := clinic(t)
	list, err := named.Believe(l, "smoke=0.2/0.8,x ray=1")
	if err != nil || len(list) != 2 || !slices.Equal(list[1].Weights, []float64{0, 1, 0}) {
		t.Errorf("%v, %v", list, err)
	}
	for _, text := range []string{"smoke=0.2/0.8,smoke=0.3/0.7", `{"smoke": [0.5, 0.5], "smoke": "no"}`, "smoke=no,smoke=no"} {
		if list, err := named.Believe(l, text); err == nil || !strings.Contains(err.Error(), `two beliefs in "smoke"`) {
			t.Errorf("%s: %v, %v", text, list, err)
		}
	}
}
