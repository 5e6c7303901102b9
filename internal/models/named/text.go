package named

// Reading: a text becomes statements that name variables and values. Nothing here knows the model.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/internal/base/jsontext"
	"github.com/basetensor/basetensor/internal/base/plaintext"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Values is evidence on variables, in the order of the text: {"smoke": "yes"} observes a value,
// {"smoke": [0.2, 0.8]}, {"smoke": {"no": 0.2, "yes": 0.8}} and smoke=0.2/0.8 multiply the weights of all values.
// A variable may come twice. For a formula a list of literals is the same: [3, -7] is {"3": 1, "7": 0}.
// A JSON number is a position if no value has it as its name; all other variables and values that have names go by them.
type Values []statement

// statement is the evidence on one variable: a value, or the weights of its values in order or by name.
type statement struct {
	variable     string
	value        string // as written; "" if there are weights
	isNumber     bool   // value is a JSON number
	isLiteral    bool   // of a formula: variable is its number there, and value is 1 or 0
	weights      []float64
	namedWeights []namedWeight
}

// hasWeights reports whether the statement gives weights and no value.
func (s *statement) hasWeights() bool { return s.weights != nil || s.namedWeights != nil }

// namedWeight is the weight of the value that is called value.
type namedWeight struct {
	value  string
	weight float64
}

// Inline reports whether a text is evidence itself and not the name of a file with it: a JSON object, assignments, or literals.
func Inline(text string) bool {
	text = trim(text)
	return strings.HasPrefix(text, "{") || strings.Contains(text, "=") || isLiterals(text)
}

// trim removes white space around a text and a byte-order mark before it, and converts UTF-16 to UTF-8.
func trim(text string) string { return strings.TrimSpace(plaintext.String(text)) }

// Parse reads a JSON object, as Values; or assignments, smoke=yes,xray=abnormal, with commas or on lines of their own; or literals of a
// formula, 3,-7. Errors carry bad_input.
func Parse(text string) (v Values, err error) {
	text = trim(text)
	switch {
	case isLiterals(text):
		return parseLiterals(strings.Split(text, ",")), nil
	case strings.HasPrefix(text, "{"):
		d := json.NewDecoder(strings.NewReader(text))
		if err = d.Decode(&v); err == nil && d.More() {
			err = errors.New("something after the JSON object")
		}
		return v, fault.Wrap(fault.BadInput, err)
	}
	return parseAssignments(text)
}

// parseAssignments reads smoke=yes,xray=abnormal. A part between commas without = belongs to the value before it: age=[0,40) is one value.
func parseAssignments(text string) (v Values, err error) {
	for line := range strings.Lines(text) {
		lineStart := len(v)
		for part := range strings.SplitSeq(line, ",") {
			variable, value, isAssignment := strings.Cut(part, "=")
			switch {
			case isAssignment:
				v = append(v, statement{variable: strings.TrimSpace(variable), value: strings.TrimSpace(value)})
			case len(v) > lineStart:
				v[len(v)-1].value += "," + strings.TrimRight(part, " \t\r\n")
			case strings.TrimSpace(line) != "":
				return nil, fault.New(fault.BadInput, "%.80q is no assignment: VARIABLE=VALUE is needed", strings.TrimSpace(part))
			}
		}
	}
	return v, nil
}

// literal is a number other than 0: 3 states that variable 3 of a formula is true, −7 that variable 7 is false.
var literal = regexp.MustCompile(`^-?[1-9][0-9]{0,17}$`)

// isLiterals reports whether a text is a list of literals, with commas between them. The observations of a .uai.evid file are numbers
// without commas, and so no list of literals if there is more than one.
func isLiterals(text string) bool {
	for part := range strings.SplitSeq(text, ",") {
		if !literal.MatchString(strings.TrimSpace(part)) {
			return false
		}
	}
	return true
}

// parseLiterals returns the statements of literals: 3 is variable "3" at "1", and −7 is variable "7" at "0".
func parseLiterals(literals []string) (v Values) {
	for _, text := range literals {
		variable, isNegative := strings.CutPrefix(strings.TrimSpace(text), "-")
		s := statement{variable: variable, value: "1", isLiteral: true}
		if isNegative {
			s.value = "0"
		}
		v = append(v, s)
	}
	return v
}

// UnmarshalJSON reads an object or a list of literals. It keeps repeated keys, which a map would swallow. An empty object is not nil.
func (v *Values) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	if b[0] == '[' {
		return v.unmarshalLiterals(b)
	}
	*v = Values{}
	return eachField(b, `an object of variables and values is needed: {"3": 1}`, func(key string, raw json.RawMessage) error {
		s := statement{variable: key}
		if err := s.unmarshalValue(raw); err != nil {
			return fmt.Errorf("variable %.80q: %w", key, err)
		}
		*v = append(*v, s)
		return nil
	})
}

// unmarshalLiterals reads a JSON list of literals. An empty list is not nil.
func (v *Values) unmarshalLiterals(b []byte) error {
	var numbers []json.Number
	if err := json.Unmarshal(b, &numbers); err != nil {
		return errors.New("an object of variables and values, or a list of literals is needed: [3, -7]")
	}
	var literals []string
	for _, n := range numbers {
		if !literal.MatchString(string(n)) {
			return fmt.Errorf("%.80q is no literal", string(n))
		}
		literals = append(literals, string(n))
	}
	if *v = parseLiterals(literals); *v == nil {
		*v = Values{}
	}
	return nil
}

// eachField calls f with each field of a JSON object in the order of the text. If b is no object, the error is the text of needed.
func eachField(b []byte, needed string, f func(key string, raw json.RawMessage) error) error {
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
		if err := f(key.(string), raw); err != nil { // the scanner lets only strings be keys
			return err
		}
	}
	_, err := d.Token() // the closing brace
	return err
}

// errValue lists the forms of a value.
var errValue = errors.New("a value, a list of a weight per value, or an object of values and weights is needed")

// unmarshalValue reads what the JSON object has for the variable: a string, a number, true or false is a value; a list has weights in the
// order of the values, and an object has weights by name.
func (s *statement) unmarshalValue(raw json.RawMessage) (err error) {
	switch raw[0] {
	case '"':
		return json.Unmarshal(raw, &s.value)
	case '[':
		return s.unmarshalWeights(raw)
	case '{':
		s.namedWeights = []namedWeight{}
		return eachField(raw, "", func(value string, raw json.RawMessage) error { // no text for other values: it is an object
			if string(raw) == "null" {
				return errValue
			}
			var weight decimal.Number
			if err := json.Unmarshal(raw, &weight); err != nil {
				return fmt.Errorf("%w: %w", errValue, jsontext.Explain(raw, err))
			}
			s.namedWeights = append(s.namedWeights, namedWeight{value, float64(weight)})
			return nil
		})
	case 'n': // null
		return errValue
	}
	s.value = string(raw)
	isBoolean := raw[0] == 't' || raw[0] == 'f'
	s.isNumber = !isBoolean
	return nil
}

// unmarshalWeights reads a list with a weight for each value. An empty list is not nil.
func (s *statement) unmarshalWeights(raw json.RawMessage) error {
	var weights []*decimal.Number
	if err := json.Unmarshal(raw, &weights); err != nil {
		return fmt.Errorf("%w: %w", errValue, jsontext.Explain(raw, err))
	}
	s.weights = []float64{}
	for _, w := range weights {
		isNull := w == nil
		if isNull {
			return errValue
		}
		s.weights = append(s.weights, float64(*w))
	}
	return nil
}
