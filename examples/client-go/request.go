package main

// What is asked: a model as text, or in the native form.

import (
	"os"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/wire"
)

// request returns the message to submit.
func (o options) request() (wire.Request, error) {
	m := wire.Request{Job: o.job, Tenant: o.tenant, DeadlineMS: o.deadline.Milliseconds()}
	var err error
	if o.uai != "" {
		m.UAI, m.Queries, err = text(o.uai, o.evid)
	} else {
		m.Model, m.Queries, err = grass()
	}
	return m, err
}

// text is a model file and a query per evidence file, after one without evidence.
func text(path string, evid []string) (string, []query.Query, error) {
	model, err := os.ReadFile(path)
	if err != nil {
		return "", nil, err
	}
	queries := []query.Query{{Marginals: true}}
	for _, path := range evid {
		e, err := os.ReadFile(path)
		if err != nil {
			return "", nil, err
		}
		queries = append(queries, query.Query{Evid: string(e), EvidenceFile: path, Marginals: true})
	}
	return string(model), queries, nil
}

// The variables of grass. Their values are 0, no, and 1, yes.
const (
	rain = iota
	sprinkler
	wet
)

// grass is a factor graph in the native form, which has factors that no table can hold; these are tables. They are
// row-major, the last variable of the scope fastest.
func grass() (*wire.Model, []query.Query, error) {
	dense := func(scope []int, p ...float64) factorgraph.Factor {
		shape := make([]int, len(scope))
		for i := range shape {
			shape[i] = 2
		}
		return factorgraph.Factor{Scope: scope, Table: &tensor.Dense{Shape: shape, Data: p}}
	}
	body, err := wire.NewModel(&factorgraph.Model{
		Domains: []int{2, 2, 2},
		Names:   []string{"rain", "sprinkler", "wet"},
		Bayes:   true,
		Factors: []factorgraph.Factor{
			dense([]int{rain}, 0.8, 0.2),
			dense([]int{rain, sprinkler}, 0.6, 0.4, 0.99, 0.01),
			dense([]int{sprinkler, rain, wet}, 1, 0, 0.2, 0.8, 0.1, 0.9, 0.01, 0.99),
		},
	})
	sensor := factorgraph.Evidence{Soft: []factorgraph.Likelihood{{Var: wet, Weights: []float64{0.3, 0.7}}}}
	return body, []query.Query{
		{Marginals: true},
		{Evidence: factorgraph.Observe(map[int]int{wet: 1}), Marginals: true, Joint: []int{rain, sprinkler}},
		{Evidence: factorgraph.Observe(map[int]int{rain: 1, wet: 1}), Over: 2}, // ln P(rain | wet): over query 1
		{Evidence: sensor, Marginals: true},                                    // a sensor that is right in 7 of 10 cases
	}, err
}
