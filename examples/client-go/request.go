package main

// The question: a model as text, or in the native form.

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"strings"

	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
	"github.com/basetensor/basetensor/pkg/wire"
)

// request returns the message to submit.
func (o options) request(ctx context.Context, c *client.Client) (m wire.Request, err error) {
	m = wire.Request{Job: o.job, Tenant: o.tenant, DeadlineMS: o.deadline.Milliseconds(), Settings: o.settings}
	switch {
	case o.text != "":
		var text []byte
		text, err = os.ReadFile(o.text)
		m.Text = string(text)
	case o.model != "":
		err = o.find(ctx, c, &m)
	default:
		m.Model, m.Queries, err = grass()
		return m, err
	}
	if err != nil {
		return m, err
	}
	m.Queries, err = o.queries()
	return m, err
}

// find reads a model file, of any format that package formats knows; any other name is a registered model.
func (o options) find(ctx context.Context, c *client.Client, m *wire.Request) error {
	f, err := os.Open(o.model)
	if errors.Is(err, fs.ErrNotExist) && formats.Of(o.model) == "" {
		found, err := c.FindModel(ctx, strings.TrimPrefix(o.model, "digest:"))
		m.ModelDigest = found.Digest
		return err
	}
	if err != nil {
		return err
	}
	defer f.Close()
	model, err := formats.Read(f, "", o.model, uai.Limits{})
	if err != nil {
		return err
	}
	m.Model, err = wire.NewModel(model)
	return err
}

// queries returns the questions without evidence, and under every evidence.
func (o options) queries() ([]query.Query, error) {
	queries := []query.Query{o.ask}
	for _, text := range o.evid {
		q := o.ask
		q.Evid, q.EvidenceFile = text, text
		if !strings.ContainsAny(text, "={") { // else it is evidence by name, and no file
			e, err := os.ReadFile(text)
			if err != nil {
				return nil, err
			}
			q.Evid = string(e)
		}
		queries = append(queries, q)
	}
	return queries, nil
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
