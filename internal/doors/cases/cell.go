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
var missing = wordSet{"?", "*", "NaN", "NA", "N/A", "#N/A", "<NA>", "null"}

const (
	notObserved = -1
	mostKnown   = 1 << 12 // texts that are remembered for a variable
)

// cellReader reads the cells of variables.
type cellReader struct {
	dialect
	labels  *factorgraph.Labels // the names of variables and values
	missing wordSet             // for a value that is not observed
	valueOf []map[string]int    // per variable, the values of texts that were read before
}

// cell returns the value in a cell of variable v, notObserved for none, or the weights of all values. A cell is
//
//   - the name of a value, or its position if it has no name; a number if it equals one of these, as 1.0 equals 1; #2 for position 2;
//   - empty, or a word for a missing value;
//   - a set of values, low|normal: weights of 1;
//   - weights of values, low:0.2|high:0.8, those of others 0, or a weight for each value, [0.2,0,0.8].
//
// The first of these that the text can be wins.
func (r *cellReader) cell(v int, text string) (value int, weights []float64, err error) {
	if text == "" {
		return notObserved, nil, nil
	}
	if x, ok := r.valueOf[v][text]; ok {
		return x, nil, nil
	}
	x, err := r.labels.Value(v, text)
	if err != nil {
		equal, isNumber := r.valueByNumber(v, text)
		switch {
		case r.missing.has(text):
			x = notObserved
		case isNumber:
			x = equal
		case strings.HasPrefix(text, "["):
			weights, err := r.readWeightList(v, text)
			return notObserved, weights, err
		case strings.Contains(text, "|"):
			weights, err := r.readAlternatives(v, text)
			return notObserved, weights, err
		default:
			return notObserved, nil, r.unknownValue(v, text, err)
		}
	}
	r.remember(v, text, x)
	return x, nil, nil
}

// remember keeps the value of a text, unless too many are kept.
func (r *cellReader) remember(v int, text string, x int) {
	if r.valueOf[v] == nil {
		r.valueOf[v] = map[string]int{}
	}
	if len(r.valueOf[v]) < mostKnown {
		r.valueOf[v][strings.Clone(text)] = x
	}
}

// valueByNumber returns the value that a text means as a number: value k for #k, or the one value whose name is the
// same number. isNumber is false if there is none.
func (r *cellReader) valueByNumber(v int, text string) (value int, isNumber bool) {
	domain := r.labels.Domains()[v]
	if position, isPosition := strings.CutPrefix(text, "#"); isPosition {
		x, err := strconv.Atoi(position)
		return x, err == nil && x >= 0 && x < domain
	}
	number, err := r.parseNumber(text)
	if err != nil {
		return 0, false
	}
	matches := 0
	for x := range domain {
		if nameAsNumber, err := decimal.Parse(r.labels.OfValue(v, x)); err == nil && nameAsNumber == number {
			value = x
			matches++
		}
	}
	return value, matches == 1
}

// readWeightList reads a weight for each value of v, in brackets.
func (r *cellReader) readWeightList(v int, text string) ([]float64, error) {
	var numbers []decimal.Number
	if err := json.Unmarshal([]byte(text), &numbers); err != nil {
		return nil, r.cellError(v, text, "a list of numbers in brackets is needed: %w", err)
	}
	if domain := r.labels.Domains()[v]; len(numbers) != domain {
		return nil, r.cellError(v, text, "%d weights of %d values", len(numbers), domain)
	}
	weights := make([]float64, len(numbers))
	for x, w := range numbers {
		if weights[x] = float64(w); w < 0 {
			return nil, r.cellError(v, text, "a weight is at least 0")
		}
	}
	return weights, nil
}

// readAlternatives reads values between bars, low|normal, either all or none of them with a weight behind a colon. It
// returns the weights of all values: 0 of those that are not there, and 1 of those without a weight.
func (r *cellReader) readAlternatives(v int, text string) ([]float64, error) {
	weights := make([]float64, r.labels.Domains()[v])
	isThere := make([]bool, len(weights))
	weighted, parts := 0, 0 // the number of parts with a weight, and of all parts
	for part := range strings.SplitSeq(text, "|") {
		x, w, hasWeight, err := r.readAlternative(v, strings.TrimSpace(part))
		switch {
		case err != nil:
			return nil, r.cellError(v, text, "%w", err)
		case isThere[x]:
			return nil, r.cellError(v, text, "%q is there twice", r.labels.OfValue(v, x))
		case hasWeight:
			weighted++
		}
		parts++
		weights[x], isThere[x] = w, true
	}
	if weighted != 0 && weighted != parts {
		return nil, r.cellError(v, text, "some values have a weight, others have none")
	}
	return weights, nil
}

// readAlternative reads a value, and the weight behind its last colon. If the whole text is a value, it has no weight.
func (r *cellReader) readAlternative(v int, text string) (value int, weight float64, hasWeight bool, err error) {
	x, err := r.findValue(v, text)
	colon := strings.LastIndex(text, ":")
	if err == nil || colon < 0 {
		return x, 1, false, err
	}
	if x, err = r.findValue(v, strings.TrimSpace(text[:colon])); err != nil {
		return 0, 0, false, err
	}
	weight, err = r.parseWeight(strings.TrimSpace(text[colon+1:]))
	return x, weight, err == nil, err
}

// findValue returns the value of v that has the text as its name, or that the text means as a number.
func (r *cellReader) findValue(v int, text string) (int, error) {
	x, err := r.labels.Value(v, text)
	if err == nil {
		return x, nil
	}
	if equal, isNumber := r.valueByNumber(v, text); isNumber {
		return equal, nil
	}
	return 0, err
}

// unknownValue returns the error for a text that is no value. If it is a value with a weight, it says that the other
// values need theirs.
func (r *cellReader) unknownValue(v int, text string, unknown error) error {
	if x, _, hasWeight, err := r.readAlternative(v, text); err == nil && hasWeight {
		return r.cellError(v, text, "a weight of %q alone says nothing: the other values need theirs, between bars", r.labels.OfValue(v, x))
	}
	return unknown
}

// cellError returns an error in a cell of v.
func (r *cellReader) cellError(v int, text, format string, args ...any) error {
	return fault.New(fault.BadInput, "variable %.40q is %.80q: "+format, append([]any{r.labels.OfVariable(v), text}, args...)...)
}
