// One case per error of models and evidence, with its text; and the figures of Stats.

package factorgraph_test

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

func dense(shape []int, data ...float64) *tensor.Dense {
	return &tensor.Dense{Shape: shape, Data: data}
}

func one(domains []int, scope []int, t tensor.Tensor) *factorgraph.Model {
	return &factorgraph.Model{Domains: domains, Factors: []factorgraph.Factor{{Scope: scope, Table: t}}}
}

func TestModelValidate(t *testing.T) {
	for _, c := range []struct {
		m    *factorgraph.Model
		want string // "" means valid
	}{
		{nil, "invalid model: no model"},
		{&factorgraph.Model{}, ""},
		{one([]int{2}, []int{0}, dense([]int{2}, 1, -1)), ""},
		{one([]int{2}, nil, dense(nil, 3)), ""},
		{&factorgraph.Model{Domains: []int{2, 0}}, "invalid model: variable 1: domain of size 0, at least 1 is needed"},
		{&factorgraph.Model{Domains: []int{2}, Names: []string{"a", "b"}}, "invalid model: 2 names for 1 variables"},
		{&factorgraph.Model{Domains: []int{2}, States: [][]string{{"no", "yes"}, nil}},
			"invalid model: names of the values of 2 variables, the model has 1"},
		{&factorgraph.Model{Domains: []int{2, 3}, States: [][]string{nil, {"no", "yes"}}},
			"invalid model: variable 1: 2 names for 3 values"},
		{&factorgraph.Model{Domains: []int{2, 3}, States: [][]string{{"no", "yes"}, nil}}, ""},
		{
			one([]int{2}, []int{1}, dense([]int{2}, 1, 1)),
			"invalid model: factor 0: scope position 0: variable 1, the model has 1",
		},
		{
			one([]int{2}, []int{-1}, dense([]int{2}, 1, 1)),
			"invalid model: factor 0: scope position 0: variable -1, the model has 1",
		},
		{
			one([]int{2}, []int{0, 0}, dense([]int{2, 2}, 1, 1, 1, 1)),
			"invalid model: factor 0: variable 0 is twice in the scope",
		},
		{one([]int{2}, []int{0}, nil), "invalid model: factor 0: no table"},
		{one([]int{2}, []int{0}, (*tensor.Dense)(nil)), "invalid model: factor 0: …"},
		{one([]int{2}, []int{0}, dense([]int{2}, 1)), "invalid model: factor 0: …"},
		{one([]int{2}, []int{0}, dense([]int{2}, 1, math.NaN())), "invalid model: factor 0: …"},
		{
			one([]int{2}, []int{0}, dense([]int{1, 2}, 1, 1)),
			"invalid model: factor 0: table of order 2 over a scope of 1 variables",
		},
		{one([]int{2, 3}, []int{0, 1}, dense([]int{2, 2}, 1, 1, 1, 1)),
			"invalid model: factor 0: dimension 2 at scope position 1, variable 1 has a domain of 3"},
	} {
		check(t, c.m.Validate(), c.want, factorgraph.ErrModel)
	}
}

func TestEvidenceValidate(t *testing.T) {
	m := &factorgraph.Model{Domains: []int{2, 3}}
	hard := func(pairs ...int) (e factorgraph.Evidence) {
		for i := 0; i < len(pairs); i += 2 {
			e.Hard = append(e.Hard, factorgraph.Observation{Var: pairs[i], Value: pairs[i+1]})
		}
		return e
	}
	soft := func(v int, w ...float64) factorgraph.Evidence {
		return factorgraph.Evidence{Soft: []factorgraph.Likelihood{{Var: v, Weights: w}}}
	}
	twice := soft(0, 1, 1)
	twice.Soft = append(twice.Soft, twice.Soft[0])
	for _, c := range []struct {
		e    factorgraph.Evidence
		want string
	}{
		{factorgraph.Evidence{}, ""},
		{hard(0, 1, 1, 2), ""},
		{soft(1, 0, 0, 0), ""},
		{hard(2, 0), "invalid evidence: observation 0: variable 2, the model has 2"},
		{hard(-1, 0), "invalid evidence: observation 0: variable -1, the model has 2"},
		{hard(0, 2), "invalid evidence: observation 0: variable 0 at value 2, its domain is 0 to 1"},
		{hard(1, 0, 0, 0), "invalid evidence: observation 1: variable 0 after variable 1, increasing order is needed"},
		{hard(1, 0, 1, 0), "invalid evidence: observation 1: variable 1 after variable 1, increasing order is needed"},
		{hard(1, 0, 1, 2), "invalid evidence: contradictory: variable 1 observed at 0 and at 2"},
		{soft(2, 1), "invalid evidence: likelihood 0: variable 2, the model has 2"},
		{twice, "invalid evidence: likelihood 1: variable 0 after variable 0, increasing order is needed"},
		{soft(1, 1, 1), "invalid evidence: likelihood 0: 2 weights, variable 1 has 3 values"},
		{
			soft(0, 1, -1),
			"invalid evidence: likelihood 0: variable 0: weight -1 of value 1, a finite number of at least 0 is needed",
		},
		{
			soft(0, math.Inf(1), 1),
			"invalid evidence: likelihood 0: variable 0: weight +Inf of value 0, a finite number of at least 0 is needed",
		},
	} {
		check(t, c.e.Validate(m), c.want, factorgraph.ErrEvidence)
	}
	if !errors.Is(hard(1, 0, 1, 2).Validate(m), factorgraph.ErrContradictory) {
		t.Error("a contradiction is not ErrContradictory")
	}
}

func TestNewEvidenceNormalises(t *testing.T) {
	o := func(v, x int) factorgraph.Observation { return factorgraph.Observation{Var: v, Value: x} }
	e, err := factorgraph.NewEvidence([]factorgraph.Observation{o(5, 1), o(2, 0), o(5, 1)},
		[]factorgraph.Likelihood{
			{Var: 4, Weights: []float64{2, 3}},
			{Var: 1, Weights: []float64{1}},
			{Var: 4, Weights: []float64{5, 7}},
		})
	want := factorgraph.Evidence{Hard: []factorgraph.Observation{o(2, 0), o(5, 1)},
		Soft: []factorgraph.Likelihood{{Var: 1, Weights: []float64{1}}, {Var: 4, Weights: []float64{10, 21}}}}
	if err != nil || !reflect.DeepEqual(e, want) {
		t.Errorf("got %+v, %v, want %+v", e, err, want)
	}
	if got := factorgraph.Observe(map[int]int{5: 1, 2: 0}); !reflect.DeepEqual(got.Hard, want.Hard) {
		t.Errorf("Observe: %+v", got)
	}
	_, err = factorgraph.NewEvidence([]factorgraph.Observation{o(3, 1), o(3, 0)}, nil)
	check(t, err, "invalid evidence: contradictory: variable 3 observed at 1 and at 0", factorgraph.ErrContradictory)
	_, err = factorgraph.NewEvidence(nil, []factorgraph.Likelihood{{Var: 3, Weights: []float64{1}}, {Var: 3}})
	check(t, err, "invalid evidence: variable 3: likelihoods of 1 and of 0 weights", factorgraph.ErrEvidence)
}

func TestStats(t *testing.T) {
	exactly, err := factorgraph.Exactly(3, 1)
	if err != nil {
		t.Fatal(err)
	}
	m := &factorgraph.Model{Domains: []int{2, 2, 2, 5}, Factors: []factorgraph.Factor{
		{Scope: []int{0, 1, 2}, Table: exactly},
		{Scope: []int{3, 0}, Table: dense([]int{5, 2}, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0)},
		{Scope: []int{0}, Table: dense([]int{2}, 1, 0)},
		{Scope: nil, Table: dense(nil, 4)},
	}}
	want := factorgraph.Stats{Variables: 4, Factors: 4, Legs: 5, MaxDomain: 5, MaxArity: 3, MaxDegree: 2,
		Dense: 3, Symmetric: 1, Zeros: 6, Entries: 13}
	if got := m.Stats(); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := (&factorgraph.Model{}).Stats(); got != (factorgraph.Stats{}) {
		t.Errorf("empty model: %+v", got)
	}
}

// check compares err with its text; a text that ends in … leaves the tensor package's wording open.
func check(t *testing.T, err error, want string, sentinel error) {
	t.Helper()
	if want == "" {
		if err != nil {
			t.Errorf("refused: %v", err)
		}
		return
	}
	tail, ok := "", false
	if err != nil {
		head, open := strings.CutSuffix(want, "…")
		tail, ok = strings.CutPrefix(err.Error(), head)
		ok = ok && open == (tail != "")
	}
	if !ok {
		t.Errorf("got %v, want %q", err, want)
		return
	}
	if !errors.Is(err, sentinel) || fault.CodeOf(err) != fault.BadInput {
		t.Errorf("%q does not carry %q and bad_input", err, sentinel)
	}
}

// TestNegativeProbabilities: a negative entry is refused in a Bayesian network, by names and line, and in no other model.
func TestNegativeProbabilities(t *testing.T) {
	m := &factorgraph.Model{
		Domains: []int{2, 2}, Names: []string{"Cloud", "Rain"}, States: [][]string{nil, {"yes", "no"}}, Lines: []int{3, 5},
		Factors: []factorgraph.Factor{
			{Scope: []int{0}, Table: &tensor.Dense{Shape: []int{2}, Data: []float64{0.5, 0.5}}},
			{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{0.5, 0.5, 1.8, -0.8}}},
		},
	}
	if err := m.Validate(); err != nil {
		t.Error(err)
	}
	m.Bayes = true
	const want = `the table of "Rain" (line 5): entry 3 ("Cloud" = 1, "Rain" = "no") is -0.8, and a probability is at least 0`
	err := m.Validate()
	if !errors.Is(err, factorgraph.ErrModel) || fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), want) {
		t.Error(err)
	}
}
