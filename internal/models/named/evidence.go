// Package named reads statements about a model by names: evidence, events, variables.
package named

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/internal/base/jsontext"
	"github.com/basetensor/basetensor/internal/base/plaintext"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/uai"
)

// Values is evidence on variables, in the order of the text: {"smoke": "yes"} observes a value,
// {"smoke": [0.2, 0.8]}, {"smoke": {"no": 0.2, "yes": 0.8}} and smoke=0.2/0.8 multiply the weights of all values.
// A variable may come twice. For a formula a list of literals is the same: [3, -7] is {"3": 1, "7":
// 0}. A JSON number is a position where it is no name; elsewhere variables and values with names go
// by them.
type Values []value

// value is the evidence on one variable: the value it is at, or the weights of its values, in order or by name.
type value struct {
	of      string
	at      string
	number  bool // at is a JSON number
	literal bool // of a formula: the variable's number, and 1 or 0
	weights []float64
	by      []weight
}

type weight struct {
	of string
	w  float64
}

// Inline reports whether a text is evidence itself and not the name of a file with it: a JSON object, assignments, or literals.
func Inline(text string) bool {
	text = trim(text)
	return strings.HasPrefix(text, "{") || strings.Contains(text, "=") || isLiterals(text)
}

// trim leaves out white space and a byte-order mark; UTF-16 becomes UTF-8.
func trim(text string) string { return strings.TrimSpace(plaintext.String(text)) }

// Evidence returns the evidence in a text on the variables with these labels. The text is a JSON
// object, as Values; or assignments, smoke=yes,xray=abnormal, with commas or on lines of their own;
// or literals of a formula, 3,-7; or the observations of a .uai.evid file. Errors carry bad_input.
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

// Parse reads a JSON object, assignments or literals.
func Parse(text string) (v Values, err error) {
	text = trim(text)
	switch {
	case isLiterals(text):
		return literals(strings.Split(text, ",")), nil
	case strings.HasPrefix(text, "{"):
		d := json.NewDecoder(strings.NewReader(text))
		if err = d.Decode(&v); err == nil && d.More() {
			err = errors.New("something after the JSON object")
		}
		return v, fault.Wrap(fault.BadInput, err)
	}
	return assignments(text)
}

// assignments reads smoke=yes,xray=abnormal. Text without = belongs to the value before its comma.
func assignments(text string) (v Values, err error) {
	for line := range strings.Lines(text) {
		first := len(v)
		for part := range strings.SplitSeq(line, ",") {
			of, at, ok := strings.Cut(part, "=")
			switch {
			case ok:
				v = append(v, value{of: strings.TrimSpace(of), at: strings.TrimSpace(at)})
			case len(v) > first:
				v[len(v)-1].at += "," + strings.TrimRight(part, " \t\r\n")
			case strings.TrimSpace(line) != "":
				return nil, fault.New(fault.BadInput, "%.80q is no assignment: VARIABLE=VALUE is needed", strings.TrimSpace(part))
			}
		}
	}
	return v, nil
}

// UnmarshalJSON keeps repeated keys, which a map would swallow. An empty object is not nil.
func (v *Values) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if b[0] == '[' {
		return v.literals(b)
	}
	*v = Values{}
	return fields(b, `an object of variables and values is needed: {"3": 1}`, func(key string, raw json.RawMessage) error {
		one := value{of: key}
		if err := one.read(raw); err != nil {
			return fmt.Errorf("variable %.80q: %w", key, err)
		}
		*v = append(*v, one)
		return nil
	})
}

// fields calls f with the fields of an object in their order.
func fields(b []byte, needed string, f func(key string, raw json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New(needed)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		if err := f(key.(string), raw); err != nil { // the scanner lets only strings stand there
			return err
		}
	}
	_, err := d.Token()
	return err
}

// errValue lists the forms of a value.
var errValue = errors.New("a value, a list of a weight per value, or an object of values and weights is needed")

// read reads the evidence on the variable.
func (v *value) read(raw json.RawMessage) (err error) {
	switch raw[0] {
	case '"':
		return json.Unmarshal(raw, &v.at)
	case '[':
		var weights []*decimal.Number
		if err := json.Unmarshal(raw, &weights); err != nil {
			return fmt.Errorf("%w: %w", errValue, jsontext.Explain(raw, err))
		}
		v.weights = []float64{}
		for _, w := range weights {
			if w == nil {
				return errValue
			}
			v.weights = append(v.weights, float64(*w))
		}
		return nil
	case '{':
		v.by = []weight{}
		return fields(raw, "", func(key string, raw json.RawMessage) error {
			w := weight{of: key}
			if string(raw) == "null" {
				return errValue
			}
			var number decimal.Number
			if err := json.Unmarshal(raw, &number); err != nil {
				return fmt.Errorf("%w: %w", errValue, jsontext.Explain(raw, err))
			}
			w.w = float64(number)
			v.by = append(v.by, w)
			return nil
		})
	case 'n':
		return errValue
	}
	v.at = string(raw) // a number, true or false, as it is written
	v.number = raw[0] != 't' && raw[0] != 'f'
	return nil
}

// Evidence returns the evidence in the normal form, checked against the labels. Errors carry bad_input and name variable and value.
func (v Values) Evidence(l *factorgraph.Labels) (factorgraph.Evidence, error) {
	var hard []factorgraph.Observation
	var soft []factorgraph.Likelihood
	type said struct {
		variable int
		at       string
		number   bool
	}
	known, at := make(map[said]bool, len(v)), make(map[int]int, len(v))
	for _, one := range v {
		i, err := l.Variable(one.of)
		if err != nil {
			return factorgraph.Evidence{}, err
		}
		formula := l.OfVariable(i) == one.of && one.of != strconv.Itoa(i) && l.Domains()[i] == 2 // formulas begin at 1
		if one.literal && !formula {
			return factorgraph.Evidence{}, fault.New(fault.BadInput,
				"%.80q is a literal of a formula, and the model is none: VARIABLE=VALUE is needed", one.of)
		}
		if one.weights == nil && one.by == nil {
			one.weights = one.slashed(l, i)
		}
		if one.weights == nil && one.by == nil {
			s := said{i, one.at, one.number}
			if known[s] {
				continue
			}
			x, err := one.value(l, i)
			if err != nil {
				return factorgraph.Evidence{}, err
			}
			hard = append(hard, factorgraph.Observation{Var: i, Value: x})
			if first, twice := at[i]; twice && first != x {
				return Normal(l, hard, soft) // its error: many values of one variable are not looked up one by one
			}
			known[s], at[i] = true, x
			continue
		}
		w, err := one.likelihood(l, i)
		if err != nil {
			return factorgraph.Evidence{}, err
		}
		soft = append(soft, factorgraph.Likelihood{Var: i, Weights: w})
	}
	return Normal(l, hard, soft)
}

// slashed returns the weights in 0.2/0.8, nil if the text is no list of numbers, or the name of a value.
func (v value) slashed(l *factorgraph.Labels, i int) (weights []float64) {
	if !strings.Contains(v.at, "/") {
		return nil
	}
	if _, err := l.Value(i, v.at); err == nil {
		return nil
	}
	for part := range strings.SplitSeq(v.at, "/") {
		w, err := decimal.Parse(strings.TrimSpace(part))
		if err != nil {
			return nil
		}
		weights = append(weights, w)
	}
	return weights
}

// value returns the position of the observed value of variable i. A name wins; a JSON number without a value of that name is a position,
// unless other values have numbers as names.
func (v value) value(l *factorgraph.Labels, i int) (int, error) {
	x, err := l.Value(i, v.at)
	if err != nil && strings.Contains(v.at, "=") {
		return 0, fault.New(fault.CodeOf(err), "%w; between assignments there are commas", err)
	}
	if err == nil || !v.number {
		return x, err
	}
	n, wrong := strconv.Atoi(v.at)
	for x := range l.Domains()[i] {
		if m, is := strconv.Atoi(l.OfValue(i, x)); is == nil && m != x {
			wrong = err
		}
	}
	if wrong != nil || n < 0 || n >= l.Domains()[i] {
		return 0, err
	}
	return n, nil
}

// Normal is factorgraph.NewEvidence, checked against the labels, whose errors name the
// contradicting variables and values.
func Normal(
	l *factorgraph.Labels, hard []factorgraph.Observation, soft []factorgraph.Likelihood,
) (factorgraph.Evidence, error) {
	if l.Named() {
		if err := contradiction(l, hard); err != nil {
			return factorgraph.Evidence{}, err
		}
		if err := wrongWeight(l, soft); err != nil {
			return factorgraph.Evidence{}, err
		}
	}
	e, err := factorgraph.NewEvidence(hard, soft)
	if err == nil {
		err = e.Validate(&factorgraph.Model{Domains: l.Domains()})
	}
	return e, err
}

// likelihood returns the weights of the values of variable i in their order.
func (v value) likelihood(l *factorgraph.Labels, i int) ([]float64, error) {
	if v.by == nil {
		if n := l.Domains()[i]; len(v.weights) != n {
			return nil, fault.New(fault.BadInput, "variable %.80q: %d weights for %d values", l.OfVariable(i), len(v.weights), n)
		}
		return v.weights, nil
	}
	w, seen := make([]float64, l.Domains()[i]), make([]bool, l.Domains()[i])
	for _, one := range v.by {
		x, err := l.Value(i, one.of)
		if err != nil {
			return nil, err
		}
		if seen[x] {
			return nil, fault.New(fault.BadInput, "variable %.80q: two weights for %.80q", l.OfVariable(i), l.OfValue(i, x))
		}
		w[x], seen[x] = one.w, true
	}
	if x := slices.Index(seen, false); x >= 0 {
		return nil, fault.New(fault.BadInput, "variable %.80q: no weight for %.80q", l.OfVariable(i), l.OfValue(i, x))
	}
	return w, nil
}

// contradiction returns an error if a variable is observed at two values.
func contradiction(l *factorgraph.Labels, hard []factorgraph.Observation) error {
	at := make(map[int]int, len(hard))
	for _, o := range hard {
		if x, twice := at[o.Var]; twice && x != o.Value {
			return fault.New(fault.BadInput, "%w: variable %.80q observed at %.80q and at %.80q",
				factorgraph.ErrContradictory, l.OfVariable(o.Var), l.OfValue(o.Var, x), l.OfValue(o.Var, o.Value))
		}
		at[o.Var] = o.Value
	}
	return nil
}

// wrongWeight returns an error unless all weights are finite numbers of at least 0, and a float64 holds the product for each value.
func wrongWeight(l *factorgraph.Labels, soft []factorgraph.Likelihood) error {
	product := map[factorgraph.Observation]float64{}
	for _, s := range soft {
		for x, w := range s.Weights {
			of := factorgraph.Observation{Var: s.Var, Value: x}
			before, twice := product[of]
			if product[of] = w; twice {
				product[of] = before * w
			}
			switch p := product[of]; {
			case !(w >= 0) || math.IsInf(w, 1):
				return fault.New(fault.BadInput, "%w: variable %.80q: weight %v of %.80q, a finite number of at least 0 is needed",
					factorgraph.ErrEvidence, l.OfVariable(s.Var), w, l.OfValue(s.Var, x))
			case twice && before != 0 && w != 0 && (p < decimal.Least || math.IsInf(p, 1)):
				return fault.New(fault.BadInput, "%w: variable %.80q: the product of the weights of %.80q %w",
					factorgraph.ErrEvidence, l.OfVariable(s.Var), l.OfValue(s.Var, x), decimal.ErrRange)
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
	var n json.Number
	if err := json.Unmarshal(b, &n); err != nil || n == "" {
		return errors.New("the name or the position of a variable is needed")
	}
	*v = Variable(n)
	return nil
}

// Variables returns the positions of variables, without repetition; nil for none.
func Variables[S ~string](l *factorgraph.Labels, names []S) (of []int, err error) {
	seen := make(map[int]bool, len(names))
	for _, name := range names {
		v, err := l.Variable(string(name))
		if err != nil {
			return nil, err
		}
		if seen[v] {
			return nil, fault.New(fault.BadInput, "variable %.80q twice", l.OfVariable(v))
		}
		seen[v] = true
		of = append(of, v)
	}
	return of, nil
}

// Read is Evidence of a file's text, at most 1 GiB.
func Read(l *factorgraph.Labels, r io.Reader) (factorgraph.Evidence, error) {
	text, err := io.ReadAll(r)
	if err != nil {
		return factorgraph.Evidence{}, err
	}
	return Evidence(l, string(text))
}
