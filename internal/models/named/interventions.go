package named

// Statements beside evidence: variables that are set, and posteriors that are believed.

import (
	"errors"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Do returns the values in a text of evidence to which variables are set: smoke=no, or {"smoke": "no"}. Errors carry bad_input.
func Do(l *factorgraph.Labels, text string) ([]factorgraph.Observation, error) {
	v, err := Parse(text)
	if err != nil {
		return nil, err
	}
	return observations(l, v)
}

// observations returns values for variables; weights are an error.
func observations(l *factorgraph.Labels, v Values) ([]factorgraph.Observation, error) {
	e, err := v.Evidence(l)
	if err == nil && len(e.Soft) > 0 {
		err = fault.Wrap(fault.BadInput, errors.New("a variable is set to one value: smoke=no"))
	}
	return e.Hard, err
}

// Believe returns the distributions in a text of evidence that the posteriors of variables become: smoke=0.2/0.8, or {"smoke": [0.2, 0.8]}.
// A value alone is believed for certain. Errors carry bad_input.
func Believe(l *factorgraph.Labels, text string) ([]factorgraph.Likelihood, error) {
	v, err := Parse(text)
	if err != nil {
		return nil, err
	}
	return beliefs(l, v)
}

// beliefs returns distributions of variables.
func beliefs(l *factorgraph.Labels, v Values) ([]factorgraph.Likelihood, error) {
	isBelieved := make(map[int]bool, len(v))
	for _, statement := range v {
		i, err := l.Variable(statement.of)
		if err != nil {
			return nil, err
		}
		if isBelieved[i] {
			return nil, fault.New(fault.BadInput, "two beliefs in %q", l.OfVariable(i))
		}
		isBelieved[i] = true
	}
	e, err := v.Evidence(l)
	if err != nil {
		return nil, err
	}
	list := slices.Clone(e.Soft)
	for _, o := range e.Hard {
		certain := make([]float64, l.Domains()[o.Var])
		certain[o.Value] = 1
		list = append(list, factorgraph.Likelihood{Var: o.Var, Weights: certain})
	}
	slices.SortFunc(list, func(a, b factorgraph.Likelihood) int { return a.Var - b.Var })
	return list, nil
}
