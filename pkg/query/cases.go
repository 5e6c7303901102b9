package query

import (
	"errors"
	"fmt"
	"math"
	"reflect"
)

// Cases are sets of observations of the same variables, a row each: cases of a data set, of which equal ones are one row with a weight.
type Cases struct {
	// Variables are those of the columns of Rows, distinct.
	Variables []int `msgpack:"variables" json:"variables"`
	// Rows has a value per variable in every row, −1 where it is not observed. At most MaxCells values together.
	Rows [][]int `msgpack:"rows" json:"rows"`
	// Weights is how often each row counts; absent: once.
	Weights []float64 `msgpack:"weights,omitempty" json:"weights,omitempty"`
}

// MaxCells bounds the values of all cases of a query together.
const MaxCells = 1 << 24

// cases are many sets of observations, whose likelihood is asked for.
var cases = kind{
	field: "cases",
	check: func(domains []int, isModelKnown bool, q *Query) (string, error) {
		if q.Cases == nil {
			return "", nil
		}
		return checkCases(domains, isModelKnown, q)
	},
}

// checkCases returns the first field of a query's cases that is wrong, and why. If isModelKnown, variables and values
// have to be in the range of domains. Beside cases a query may ask for gradients only, and may have no evidence.
func checkCases(domains []int, isModelKnown bool, q *Query) (field string, err error) {
	// nothing but gradients beside them
	c := q.Cases
	rest := *q // the query without what cases may have beside them
	rest.Cases, rest.Gradients, rest.EvidenceFile = nil, false, ""
	hasEvidence := !rest.Evidence.IsEmpty() || rest.Evid != ""
	// OfVariables: it asks for something about variables, and not for Z and a ratio alone.
	if !reflect.ValueOf(rest).IsZero() && (hasEvidence || rest.Over != 0 || rest.OfVariables()) {
		return "cases", errors.New("they have the place of evidence, and beside them gradients alone may be asked for")
	}

	// variables and rows
	if err := checkDistinct(domains, isModelKnown, c.Variables); err != nil {
		return "cases.variables", err
	}
	if len(c.Rows) == 0 || len(c.Rows) > MaxCells/max(1, len(c.Variables)) {
		return "cases.rows", fmt.Errorf("%d rows of %d variables: 1 to %d values together", len(c.Rows), len(c.Variables), MaxCells)
	}
	for i, row := range c.Rows {
		if len(row) != len(c.Variables) {
			return fmt.Sprintf("cases.rows[%d]", i), fmt.Errorf("%d values of %d variables", len(row), len(c.Variables))
		}
		for k, x := range row { // −1: not observed
			if x < -1 || isModelKnown && x >= domains[c.Variables[k]] {
				return fmt.Sprintf("cases.rows[%d]", i), fmt.Errorf("variable %d = %d is out of range", c.Variables[k], x)
			}
		}
	}

	// weights
	if len(c.Weights) > 0 && len(c.Weights) != len(c.Rows) {
		return "cases.weights", fmt.Errorf("%d weights of %d rows", len(c.Weights), len(c.Rows))
	}
	for i, w := range c.Weights {
		if math.IsNaN(w) || math.IsInf(w, 0) {
			return fmt.Sprintf("cases.weights[%d]", i), fmt.Errorf("%v is no number of times", w)
		}
	}
	return "", nil
}
