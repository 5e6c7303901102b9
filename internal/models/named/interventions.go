package named

// Interventions, which set variables, and beliefs, which the posteriors become.

import (
	"errors"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Do reads a text of evidence as the values to which variables are set: smoke=no, or {"smoke": "no"}. Errors carry bad_input.
func Do(l *factorgraph.Labels, text string) ([]factorgraph.Observation, error) {
	v, err := Parse(text)
	if err != nil {
		return nil, err
	}
	return observations(l, v)
}

// observations returns one value for each variable that is named. Weights in place of a value are an error.
func observations(l *factorgraph.Labels, v Values) ([]factorgraph.Observation, error) {
	e, err := v.Evidence(l)
	if err == nil && len(e.Soft) > 0 {
		err = fault.Wrap(fault.BadInput, errors.New("a variable is set to one value: smoke=no"))
	}
	return e.Hard, err
}

// Believe reads a text of evidence as distributions that the posteriors of variables become: smoke=0.2/0.8, or {"smoke": [0.2, 0.8]}.
// A value has probability 1. Errors carry bad_input.
func Believe(l *factorgraph.Labels, text string) ([]factorgraph.Likelihood, error) {
	v, err := Parse(text)
	if err != nil {
		return nil, err
	}
	return beliefs(l, v)
}

// beliefs returns one distribution for each variable that is named, in increasing order of variables.
func beliefs(l *factorgraph.Labels, v Values) ([]factorgraph.Likelihood, error) {
	isBelieved := make(map[int]bool, len(v))
	for _, s := range v {
		i, err := l.Variable(s.variable)
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
	beliefs := slices.Clone(e.Soft)
	for _, o := range e.Hard {
		certain := make([]float64, l.Domains()[o.Var])
		certain[o.Value] = 1
		beliefs = append(beliefs, factorgraph.Likelihood{Var: o.Var, Weights: certain})
	}
	slices.SortFunc(beliefs, func(a, b factorgraph.Likelihood) int { return a.Var - b.Var })
	return beliefs, nil
}
