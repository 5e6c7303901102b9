package query_test

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

func hard(pairs ...int) factorgraph.Evidence {
	var e factorgraph.Evidence
	for i := 0; i < len(pairs); i += 2 {
		e.Hard = append(e.Hard, factorgraph.Observation{Var: pairs[i], Value: pairs[i+1]})
	}
	return e
}

func soft(v int, weights ...float64) factorgraph.Evidence {
	return factorgraph.Evidence{Soft: []factorgraph.Likelihood{{Var: v, Weights: weights}}}
}

// TestCheckNamesTheField: errors that hold for every model are found without one; the rest needs the domains.
func TestCheckNamesTheField(t *testing.T) {
	domains := []int{2, 3, 1 << 20}
	for _, c := range []struct {
		q       query.Query
		field   string // "" for a query that is right
		anyhow  bool   // found without the model
		sayings string
	}{
		{q: query.Query{}},
		{q: query.Query{Evidence: hard(0, 1, 1, 2), Marginals: true, Over: 1, Joint: []int{1, 0}}},
		{q: query.Query{Evidence: soft(1, 0, 0.5, 7)}},
		{query.Query{Evidence: hard(1, 0, 0, 0)}, "evidence.h[1]", true, "variable 0 = 0 after variable 1"},
		{query.Query{Evidence: hard(1, 0, 1, 0)}, "evidence.h[1]", true, "after variable 1"},
		{query.Query{Evidence: hard(1, 0, 1, 2)}, "evidence.h[1]", true, "contradictory"},
		{query.Query{Evidence: hard(0, -1)}, "evidence.h[0]", true, "variable 0 = -1"},
		{query.Query{Evidence: hard(0, 2)}, "evidence.h[0]", false, "out of range"},
		{query.Query{Evidence: hard(3, 0)}, "evidence.h[0]", false, "out of range"},
		{query.Query{Evidence: soft(1)}, "evidence.s[0]", true, "has no numbers"},
		{query.Query{Evidence: soft(1, 1, 1)}, "evidence.s[0]", false, "2 numbers for variable 1"},
		{query.Query{Evidence: soft(3, 1, 1)}, "evidence.s[0]", false, "2 numbers for variable 3"},
		{query.Query{Evidence: soft(0, 1, math.NaN())}, "evidence.s[0]", true, "variable 0 = 1 has the weight NaN"},
		{query.Query{Evidence: soft(0, 1, -1)}, "evidence.s[0]", false, "variable 0 = 1 has the weight -1"},
		{query.Query{Evidence: hard(0, 1), Evid: "1 0 1"}, "evid", true, "both"},
		{query.Query{Over: -1}, "over", true, "names no query"},
		{query.Query{Over: 3}, "over", true, "names no query"},
		{query.Query{Over: 2}, "over", true, "itself"},
		{q: query.Query{Evidence: hard(2, 1), Information: &query.Ask{Target: 1, Utility: [][]float64{{1, 2, -3}}}}},
		{query.Query{Information: &query.Ask{Target: -1}}, "information.target", true, "variable -1"},
		{query.Query{Information: &query.Ask{Target: 3}}, "information.target", false, "variable 3, the model has 3"},
		{query.Query{Evidence: hard(1, 0), Information: &query.Ask{Target: 1}}, "information.target", true, "is observed"},
		{query.Query{Information: &query.Ask{Target: 1, Candidates: []int{1}}}, "information.candidates", true, "the target"},
		{query.Query{Information: &query.Ask{Target: 1, Candidates: []int{0, 0}}}, "information.candidates", true, "twice"},
		{query.Query{Evidence: hard(0, 0), Information: &query.Ask{Target: 1, Candidates: []int{0}}}, "information.candidates", true, "observed"},
		{query.Query{Evidence: hard(0, 0), Information: &query.Ask{Target: 1}}, "information.candidates", false, "more than 1048576 pairs"},
		{query.Query{Information: &query.Ask{Target: 0, Candidates: []int{1}, Utility: [][]float64{{1, math.NaN()}}}},
			"information.utility[0]", true, "NaN"},
		{query.Query{Information: &query.Ask{Target: 0, Candidates: []int{1}, Utility: [][]float64{{1}}}},
			"information.utility[0]", false, "1 numbers"},
		{q: query.Query{Targets: []int{2, 0}}},
		{q: query.Query{MPE: true, Best: query.MaxBest}},
		{query.Query{Best: 2}, "best", true, "mpe is needed"},
		{query.Query{Map: []int{1}, Best: 2}, "best", true, "mpe is needed"},
		{query.Query{MPE: true, Best: -1}, "best", true, "at least 1"},
		{query.Query{MPE: true, Best: query.MaxBest + 1}, "best", true, "at most 1000"},
		{query.Query{Targets: []int{1, 1}}, "targets", true, "variable 1 twice"},
		{query.Query{Targets: []int{-1}}, "targets", true, "variable -1"},
		{query.Query{Targets: []int{3}}, "targets", false, "variable 3, the model has 3"},
		{query.Query{Joint: []int{0, 0}}, "joint", true, "twice"},
		{query.Query{Joint: []int{-1}}, "joint", true, "variable -1"},
		{query.Query{Joint: []int{3}}, "joint", false, "variable 3, the model has 3"},
		{query.Query{Joint: []int{2, 0}}, "joint", false, "more than 1048576 cells"},
	} {
		queries := []query.Query{{}, c.q}
		for _, known := range []bool{true, false} {
			err := query.CheckForm(queries)
			if known {
				err = query.Check(domains, queries)
			}
			if c.field == "" || !known && !c.anyhow {
				if err != nil {
					t.Errorf("%+v, model known %v: %v", c.q, known, err)
				}
				continue
			}
			var of interface{ Field() (int, string, error) }
			at, field := -1, ""
			if errors.As(err, &of) {
				at, field, _ = of.Field()
			}
			if at != 1 || field != c.field || fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), c.sayings) {
				t.Errorf("%+v, model known %v: %v, want field %s: %s", c.q, known, err, c.field, c.sayings)
			}
		}
	}
	if err := query.Check(domains, []query.Query{{Evidence: hard(1, 0, 1, 2)}}); !errors.Is(err, factorgraph.ErrContradictory) {
		t.Errorf("two values of one variable: %v", err)
	}
	if err := query.Check(nil, []query.Query{{Evidence: hard(0, 0)}}); err == nil {
		t.Error("a model without variables has variable 0")
	}
	if err := query.Check(domains, nil); fault.CodeOf(err) != fault.BadInput {
		t.Errorf("no query: %v", err)
	}
}

// Evidence is also checked by factorgraph; both say the same of it.
func TestCheckAgreesWithFactorgraph(t *testing.T) {
	m := &factorgraph.Model{Domains: []int{2, 3}}
	for _, e := range []factorgraph.Evidence{{}, hard(0, 1), hard(1, 2), hard(1, 3), hard(2, 0), hard(
		1, 0, 0, 0,
	), hard(-1, 0), soft(0, 1, 2), soft(0, 1), soft(0, 1, -2),
		soft(0, 0, math.Inf(1)), soft(1, 0, 0, 0), soft(2, 1), soft(-1, 1)} {
		if one, other := query.Check(m.Domains, []query.Query{{Evidence: e}}), e.Validate(m); (one == nil) != (other == nil) {
			t.Errorf("%+v: %v and %v", e, one, other)
		}
	}
}

// Messages with thousands of queries are checked at every stage.
// TestCheckOfManyCandidatesAndObservations takes time in proportion to their number: with the product of both this test ends in hours.
func TestCheckOfManyCandidatesAndObservations(t *testing.T) {
	const n = 1 << 20
	q := query.Query{Information: &query.Ask{Target: 2 * n}}
	for v := range n {
		q.Evidence.Hard = append(q.Evidence.Hard, factorgraph.Observation{Var: 2 * v})
	}
	domains := slices.Repeat([]int{1}, 2*n+1)
	if err := query.Check(domains, []query.Query{q}); err != nil {
		t.Error(err)
	}
	q.Information.Candidates = []int{1, 2*n - 2}
	if err := query.Check(domains, []query.Query{q}); err == nil || !strings.Contains(err.Error(), "is observed") {
		t.Error(err)
	}
}

func TestCheckAllocatesNothing(t *testing.T) {
	queries := []query.Query{{Evidence: hard(0, 1, 1, 2)}, {Evidence: soft(1, 0, 0.5, 7), Over: 1}}
	domains := []int{2, 3}
	if n := testing.AllocsPerRun(100, func() {
		if query.Check(domains, queries) != nil || query.CheckForm(queries) != nil {
			t.Fatal("refused")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func ExampleCheck() {
	err := query.Check([]int{2, 3}, []query.Query{{Marginals: true}, {Joint: []int{0, 2}}})
	fmt.Println(err)
	// Output:
	// query 1: joint: variable 2, the model has 2
}

// Positions in words become names in quotes, where there are some.
func TestNamesInTexts(t *testing.T) {
	n := query.Names{Variables: []string{"smoke", "", "a \"b\""}, States: [][]string{{"no", "yes"}, nil, {"x"}}}
	for text, want := range map[string]string{
		"variable 0 = 1; the weights of variable 1": `"smoke" = "yes"; the weights of variable 1`,
		"x_2 = 0, x_0 = 7 and x_9":                  `"a \"b\"" = "x", "smoke" = 7 and variable 9`,
		`"variable 0" stays, as does prefix_x_0`:    `"variable 0" stays, as does prefix_x_0`,
		"variable 1 = 3":                            "variable 1 = 3",
	} {
		got := n.Text(text)
		if got != want || n.Text(got) != got {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
	if text := "variable 0"; (query.Names{}).Text(text) != text {
		t.Error("names of none")
	}
	e := &query.ErrorInfo{Message: "variable 0"}
	r := query.Result{Error: e, Warnings: []string{"x_0"}}
	w := r.Warnings
	r.Name(n)
	if r.Error.Message != `"smoke"` || r.Warnings[0] != `"smoke"` || e.Message != "variable 0" || w[0] != "x_0" {
		t.Errorf("%+v %+v", r, r.Error)
	}
}
