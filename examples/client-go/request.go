package main

// The question: a model as text, or in the native form.

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	var model func() (*factorgraph.Model, error) // questions by position take its names
	switch {
	case o.text != "":
		var text []byte
		text, err = os.ReadFile(o.text)
		m.Text = string(text)
		model = func() (*factorgraph.Model, error) {
			return formats.Read(bytes.NewReader(text), "", o.text, uai.Limits{})
		}
	case o.model != "":
		model, err = o.find(ctx, c, &m)
	default:
		m.Model, m.Queries, err = grass()
		return m, err
	}
	if err == nil {
		err = o.position(model)
	}
	if err != nil {
		return m, err
	}
	m.Queries, err = o.queries()
	return m, err
}

// find reads a model file, of any format that package formats knows; any other name is a registered model. It returns a function
// that gets the model.
func (o options) find(ctx context.Context, c *client.Client, m *wire.Request) (func() (*factorgraph.Model, error), error) {
	f, err := os.Open(o.model)
	if errors.Is(err, fs.ErrNotExist) && formats.Of(o.model) == "" {
		found, err := c.FindModel(ctx, strings.TrimPrefix(o.model, "digest:"))
		m.ModelDigest = found.Digest
		return func() (*factorgraph.Model, error) { return registered(ctx, c, found.Digest) }, err
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	model, err := formats.Read(f, "", o.model, uai.Limits{})
	if err != nil {
		return nil, err
	}
	m.Model, err = wire.NewModel(model)
	return func() (*factorgraph.Model, error) { return model, nil }, err
}

// registered fetches a registered model, which is there in the native form or as the text of a file.
func registered(ctx context.Context, c *client.Client, digest string) (*factorgraph.Model, error) {
	g, err := c.Model(ctx, digest)
	if err != nil {
		return nil, err
	}
	if g.Model == nil {
		return formats.Read(strings.NewReader(g.Text), "", "", uai.Limits{})
	}
	return g.Model.Decode()
}

// position puts into o.ask the questions about variables that a message has by position alone.
func (o *options) position(model func() (*factorgraph.Model, error)) error {
	if o.sensitivity == "" && o.information == "" {
		return nil
	}
	m, err := model()
	if err != nil {
		return err
	}
	labels, err := m.Labels()
	if err != nil {
		return err
	}
	if o.sensitivity != "" {
		of, value, ok := strings.Cut(o.sensitivity, "=")
		if !ok {
			return fmt.Errorf("--sensitivity: %q is not VARIABLE=VALUE", o.sensitivity)
		}
		s := o.vary
		if s.Variable, err = labels.Variable(of); err == nil {
			s.Value, err = labels.Value(s.Variable, value)
		}
		if err != nil {
			return fmt.Errorf("--sensitivity: %w", err)
		}
		o.ask.Sensitivity = &s
	}
	if o.information != "" {
		var a query.Ask
		if a.Target, err = labels.Variable(o.information); err != nil {
			return fmt.Errorf("--ask: %w", err)
		}
		for _, name := range o.candidates {
			v, err := labels.Variable(name)
			if err != nil {
				return fmt.Errorf("--candidates: %w", err)
			}
			a.Candidates = append(a.Candidates, v)
		}
		o.ask.Information = &a
	}
	return nil
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
