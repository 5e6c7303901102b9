package cases

// Cells of variables: a value, none, or weights of all values.

import (
	"encoding/json"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
)

// missing are the words for a value that is not observed, unless the variable has a state of that name.
var missing = words{"?", "*", "NaN", "NA", "N/A", "#N/A", "<NA>", "null"}

const (
	notObserved = -1
	mostKnown   = 1 << 12 // texts that are remembered for a variable
)

// reading reads the cells of variables.
type reading struct {
	dialect
	labels  *factorgraph.Labels
	missing words
	valueOf []map[string]int // of texts, by variable
}

// cell returns the value in a cell of variable v, notObserved for none, or the weights of all values. A cell is
//
//   - the name of a value, or its position if it has no name; a number if it equals one of these, as 1.0 equals 1; #2 for position 2;
//   - empty, or a word for a missing value;
//   - a set of values, low|normal: weights of 1;
//   - weights of values, low:0.2|high:0.8, those of others 0, or a weight for each value, [0.2,0,0.8].
//
// The first of these that the text can be wins.
func (r *reading) cell(v int, text string) (value int, weights []float64, err error) {
	if text == "" {
		return notObserved, nil, nil
	}
	if x, ok := r.valueOf[v][text]; ok {
		return x, nil, nil
	}
	x, err := r.labels.Value(v, text)
	if err != nil {
		equal, isNumber := r.numbered(v, text)
		switch {
		case r.missing.has(text):
			x = notObserved
		case isNumber:
			x = equal
		case strings.HasPrefix(text, "["):
			weights, err := r.list(v, text)
			return notObserved, weights, err
		case strings.Contains(text, "|"):
			weights, err := r.alternatives(v, text)
			return notObserved, weights, err
		default:
			return notObserved, nil, r.alone(v, text, err)
		}
	}
	r.remember(v, text, x)
	return x, nil, nil
}

// remember keeps the value of a text, up to a number of texts.
func (r *reading) remember(v int, text string, x int) {
	if r.valueOf[v] == nil {
		r.valueOf[v] = map[string]int{}
	}
	if len(r.valueOf[v]) < mostKnown {
		r.valueOf[v][strings.Clone(text)] = x
	}
}

// numbered returns the one value of v whose name is the same number as a text, or the value at position k for the text #k.
func (r *reading) numbered(v int, text string) (value int, isNumber bool) {
	domain := r.labels.Domains()[v]
	if position, isPosition := strings.CutPrefix(text, "#"); isPosition {
		x, err := strconv.Atoi(position)
		return x, err == nil && x >= 0 && x < domain
	}
	number, err := r.number(text)
	if err != nil {
		return 0, false
	}
	matches := 0
	for x := range domain {
		if named, err := decimal.Parse(r.labels.OfValue(v, x)); err == nil && named == number {
			value = x
			matches++
		}
	}
	return value, matches == 1
}

// list reads a weight for each value of v, in brackets.
func (r *reading) list(v int, text string) ([]float64, error) {
	var numbers []decimal.Number
	if err := json.Unmarshal([]byte(text), &numbers); err != nil {
		return nil, r.wrong(v, text, "a list of numbers in brackets is needed: %w", err)
	}
	if domain := r.labels.Domains()[v]; len(numbers) != domain {
		return nil, r.wrong(v, text, "%d weights of %d values", len(numbers), domain)
	}
	weights := make([]float64, len(numbers))
	for x, w := range numbers {
		if weights[x] = float64(w); w < 0 {
			return nil, r.wrong(v, text, "a weight is at least 0")
		}
	}
	return weights, nil
}

// alternatives reads values between bars, with a weight behind a colon each, or none.
func (r *reading) alternatives(v int, text string) ([]float64, error) {
	weights := make([]float64, r.labels.Domains()[v])
	isThere := make([]bool, len(weights))
	weighted, parts := 0, 0
	for part := range strings.SplitSeq(text, "|") {
		x, w, hasWeight, err := r.alternative(v, strings.TrimSpace(part))
		switch {
		case err != nil:
			return nil, r.wrong(v, text, "%w", err)
		case isThere[x]:
			return nil, r.wrong(v, text, "%q is there twice", r.labels.OfValue(v, x))
		case hasWeight:
			weighted++
		}
		parts++
		weights[x], isThere[x] = w, true
	}
	if weighted != 0 && weighted != parts {
		return nil, r.wrong(v, text, "some values have a weight, others have none")
	}
	return weights, nil
}

// alternative reads a value, and the weight behind its last colon. The whole text being a value wins.
func (r *reading) alternative(v int, text string) (value int, weight float64, hasWeight bool, err error) {
	x, err := r.value(v, text)
	colon := strings.LastIndex(text, ":")
	if err == nil || colon < 0 {
		return x, 1, false, err
	}
	if x, err = r.value(v, strings.TrimSpace(text[:colon])); err != nil {
		return 0, 0, false, err
	}
	weight, err = r.weight(strings.TrimSpace(text[colon+1:]))
	return x, weight, err == nil, err
}

// value returns the value of v with a name, or with a number that equals the text.
func (r *reading) value(v int, text string) (int, error) {
	x, err := r.labels.Value(v, text)
	if err == nil {
		return x, nil
	}
	if equal, isNumber := r.numbered(v, text); isNumber {
		return equal, nil
	}
	return 0, err
}

// alone is the error of a text that is no value; of one with a weight it says what else is needed.
func (r *reading) alone(v int, text string, unknown error) error {
	if x, _, hasWeight, err := r.alternative(v, text); err == nil && hasWeight {
		return r.wrong(v, text, "a weight of %q alone says nothing: the other values need theirs, between bars", r.labels.OfValue(v, x))
	}
	return unknown
}

// wrong is an error in a cell of v.
func (r *reading) wrong(v int, text, format string, args ...any) error {
	return fault.New(fault.BadInput, "variable %.40q is %.80q: "+format, append([]any{r.labels.OfVariable(v), text}, args...)...)
}
