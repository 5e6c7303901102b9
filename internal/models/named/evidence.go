// Package named reads statements about a model by names: evidence, events, variables.
//
// A text becomes statements (text.go), which know no model. With the labels of a model they become evidence (evidence.go), interventions
// and beliefs (interventions.go) or the questions of a query (query.go, ask.go), all by positions.
package named

import (
	"encoding/json"
	"errors"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/internal/base/plaintext"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/uai"
)

// Evidence returns the evidence in a text on the variables with these labels. The text is as Parse reads it, or has the observations of
// a .uai.evid file. Errors carry bad_input.
func Evidence(l *factorgraph.Labels, text string) (factorgraph.Evidence, error) {
	if !Inline(text) {
		return uai.ReadEvidence(strings.NewReader(plaintext.String(text)), l.Domains())
	}
	v, err := Parse(text)
	if err != nil {
		return factorgraph.Evidence{}, err
	}
	return v.Evidence(l)
}

// Read is Evidence of a file's text, at most 1 GiB.
func Read(l *factorgraph.Labels, r io.Reader) (factorgraph.Evidence, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return factorgraph.Evidence{}, err
	}
	return Evidence(l, string(text))
}

// Evidence returns the evidence in the normal form, checked against the labels. v has a statement for each part of the evidence: a variable
// with its value, or with weights of its values. Time is linear in the number of statements. Errors carry bad_input and name variable and
// value.
func (v Values) Evidence(l *factorgraph.Labels) (factorgraph.Evidence, error) {
	var hard []factorgraph.Observation
	var soft []factorgraph.Likelihood
	type observation struct {
		variable int
		value    string
		isNumber bool
	}
	isKnown := make(map[observation]bool, len(v)) // the observations so far, as written
	observedValue := make(map[int]int, len(v))    // by variable
	for _, s := range v {
		i, err := l.Variable(s.variable)
		if err != nil {
			return factorgraph.Evidence{}, err
		}
		if s.isLiteral && !isOfFormula(l, i, s.variable) {
			return factorgraph.Evidence{}, fault.New(fault.BadInput,
				"%.80q is a literal of a formula, and the model is none: VARIABLE=VALUE is needed", s.variable)
		}
		if !s.hasWeights() {
			s.weights = s.slashedWeights(l, i)
		}
		if s.hasWeights() {
			weights, err := s.likelihood(l, i)
			if err != nil {
				return factorgraph.Evidence{}, err
			}
			soft = append(soft, factorgraph.Likelihood{Var: i, Weights: weights})
			continue
		}

		written := observation{i, s.value, s.isNumber}
		if isKnown[written] {
			continue // a repetition is not looked up again
		}
		x, err := s.observedValue(l, i)
		if err != nil {
			return factorgraph.Evidence{}, err
		}
		hard = append(hard, factorgraph.Observation{Var: i, Value: x})
		if earlier, isObserved := observedValue[i]; isObserved && earlier != x {
			break // Normal refuses two values of a variable; further ones need no look-up
		}
		isKnown[written], observedValue[i] = true, x
	}
	return Normal(l, hard, soft)
}

// isOfFormula reports whether variable i may be one of a formula: it is binary, and its name, a number from 1, is not its position.
func isOfFormula(l *factorgraph.Labels, i int, name string) bool {
	return l.OfVariable(i) == name && name != strconv.Itoa(i) && l.Domains()[i] == 2
}

// slashedWeights returns the weights in 0.2/0.8. It returns nil if the value is no list of numbers, or the name of a value of variable i.
func (s statement) slashedWeights(l *factorgraph.Labels, i int) (weights []float64) {
	if !strings.Contains(s.value, "/") {
		return nil
	}
	if _, err := l.Value(i, s.value); err == nil {
		return nil
	}
	for part := range strings.SplitSeq(s.value, "/") {
		w, err := decimal.Parse(strings.TrimSpace(part))
		if err != nil {
			return nil
		}
		weights = append(weights, w)
	}
	return weights
}

// observedValue returns the position of the value that is stated of variable i. A name wins. A JSON number that is no name is a position,
// unless the variable has values whose names are numbers other than their positions.
func (s statement) observedValue(l *factorgraph.Labels, i int) (int, error) {
	x, err := l.Value(i, s.value)
	if err != nil && strings.Contains(s.value, "=") {
		return 0, fault.New(fault.CodeOf(err), "%w; between assignments there are commas", err)
	}
	if err == nil || !s.isNumber {
		return x, err
	}
	position, parseErr := strconv.Atoi(s.value)
	if parseErr != nil || position < 0 || position >= l.Domains()[i] {
		return 0, err
	}
	for x := range l.Domains()[i] {
		if number, parseErr := strconv.Atoi(l.OfValue(i, x)); parseErr == nil && number != x {
			return 0, err
		}
	}
	return position, nil
}

// likelihood returns the weights of the values of variable i in their order.
func (s statement) likelihood(l *factorgraph.Labels, i int) ([]float64, error) {
	n := l.Domains()[i]
	if s.namedWeights == nil {
		if len(s.weights) != n {
			return nil, fault.New(fault.BadInput, "variable %.80q: %d weights for %d values", l.OfVariable(i), len(s.weights), n)
		}
		return s.weights, nil
	}
	weights, hasWeight := make([]float64, n), make([]bool, n)
	for _, w := range s.namedWeights {
		x, err := l.Value(i, w.value)
		if err != nil {
			return nil, err
		}
		if hasWeight[x] {
			return nil, fault.New(fault.BadInput, "variable %.80q: two weights for %.80q", l.OfVariable(i), l.OfValue(i, x))
		}
		weights[x], hasWeight[x] = w.weight, true
	}
	if x := slices.Index(hasWeight, false); x >= 0 {
		return nil, fault.New(fault.BadInput, "variable %.80q: no weight for %.80q", l.OfVariable(i), l.OfValue(i, x))
	}
	return weights, nil
}

// Normal is factorgraph.NewEvidence, checked against the labels. Its errors name contradicting variables and values, if they have names.
func Normal(
	l *factorgraph.Labels, hard []factorgraph.Observation, soft []factorgraph.Likelihood,
) (factorgraph.Evidence, error) {
	if l.Named() {
		if err := checkContradictions(l, hard); err != nil {
			return factorgraph.Evidence{}, err
		}
		if err := checkWeights(l, soft); err != nil {
			return factorgraph.Evidence{}, err
		}
	}
	e, err := factorgraph.NewEvidence(hard, soft)
	if err == nil {
		err = e.Validate(&factorgraph.Model{Domains: l.Domains()})
	}
	return e, err
}

// checkContradictions returns an error if a variable is observed at two values.
func checkContradictions(l *factorgraph.Labels, hard []factorgraph.Observation) error {
	observedValue := make(map[int]int, len(hard)) // by variable
	for _, o := range hard {
		if earlier, isObserved := observedValue[o.Var]; isObserved && earlier != o.Value {
			return fault.New(fault.BadInput, "%w: variable %.80q observed at %.80q and at %.80q",
				factorgraph.ErrContradictory, l.OfVariable(o.Var), l.OfValue(o.Var, earlier), l.OfValue(o.Var, o.Value))
		}
		observedValue[o.Var] = o.Value
	}
	return nil
}

// checkWeights returns an error unless all weights are finite numbers of at least 0, and a float64 holds the product of the weights that
// several likelihoods give to a value.
func checkWeights(l *factorgraph.Labels, soft []factorgraph.Likelihood) error {
	type valueOf struct{ variable, value int }
	products := map[valueOf]float64{}
	for _, likelihood := range soft {
		v := likelihood.Var
		for x, weight := range likelihood.Weights {
			product := weight
			earlier, isRepeated := products[valueOf{v, x}]
			if isRepeated {
				product = earlier * weight
			}
			products[valueOf{v, x}] = product

			isWeight := weight >= 0 && !math.IsInf(weight, 1)
			isLost := product < decimal.Least || math.IsInf(product, 1)
			switch {
			case !isWeight:
				return fault.New(fault.BadInput, "%w: variable %.80q: weight %v of %.80q, a finite number of at least 0 is needed",
					factorgraph.ErrEvidence, l.OfVariable(v), weight, l.OfValue(v, x))
			case isRepeated && earlier != 0 && weight != 0 && isLost:
				return fault.New(fault.BadInput, "%w: variable %.80q: the product of the weights of %.80q %w",
					factorgraph.ErrEvidence, l.OfVariable(v), l.OfValue(v, x), decimal.ErrRange)
			}
		}
	}
	return nil
}

// Variable is a name, or a position as number or string.
type Variable string

// UnmarshalJSON takes a position as number or string.
func (v *Variable) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(v))
	}
	var position json.Number
	if err := json.Unmarshal(b, &position); err != nil || position == "" { // null leaves it empty
		return errors.New("the name or the position of a variable is needed")
	}
	*v = Variable(position)
	return nil
}

// Variables returns the positions of variables. A variable that comes twice is an error. The result is nil if there are no names.
func Variables[S ~string](l *factorgraph.Labels, names []S) (positions []int, err error) {
	isListed := make(map[int]bool, len(names))
	for _, name := range names {
		v, err := l.Variable(string(name))
		if err != nil {
			return nil, err
		}
		if isListed[v] {
			return nil, fault.New(fault.BadInput, "variable %.80q twice", l.OfVariable(v))
		}
		isListed[v] = true
		positions = append(positions, v)
	}
	return positions, nil
}
