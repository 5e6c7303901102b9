package costs

import (
	"math"
	"strings"

	"github.com/basetensor/basetensor/pkg/uai"
)

// comparisons has, by its operator, the cost of violating "x OP y + constant": a function of the difference d = y + constant − x, where
// a result of at most 0 means that the comparison holds. For instance x ≥ y + constant is violated by d.
var comparisons = map[string]func(d float64) float64{
	">=": func(d float64) float64 { return d },
	">":  func(d float64) float64 { return d + 1 },
	"<=": func(d float64) float64 { return -d },
	"<":  func(d float64) float64 { return 1 - d },
	"=":  math.Abs,
}

// disjunction is the keyword of the function that demands x ≥ y + a or y ≥ x + b, with the parameters a, b and the cost of a violation.
const disjunction = "disj"

// formulaNames lists the keywords of formulas for errors.
var formulaNames = strings.Join([]string{">=", ">", "<=", "<", "=", disjunction}, ", ")

// formulaParameters returns the number of parameters of a function that is given by a formula; ok is false if kind is no such function.
func formulaParameters(kind string) (parameters int, ok bool) {
	if kind == disjunction {
		return 3, true
	}
	return 2, comparisons[kind] != nil
}

// addFormula adds the cost function of two variables x and y that a formula defines, written out as a table. The
// parameters of a comparison are the constant added to y and the largest violation that is not forbidden; those of a
// disjunction are its two distances and its cost.
func (n *network) addFormula(title, kind string, scope []int, parameters []float64) {
	if len(scope) != 2 {
		n.FailInput(uai.ErrModel, "%s: %s is of two variables, not of %d", title, kind, len(scope))
		return
	}
	if needed, _ := formulaParameters(kind); len(parameters) != needed { // the caller has checked the kind
		n.FailInput(uai.ErrModel, "%s: %s has %d parameters, not %d", title, kind, needed, len(parameters))
		return
	}
	t := n.addFunction(title, scope, 0)
	if t == nil {
		return
	}
	for i := range t.Data {
		x, y := float64(i/t.Shape[1]), float64(i%t.Shape[1]) // entry i has the values x and y, y fastest
		if kind == disjunction {
			distanceY, distanceX, cost := parameters[0], parameters[1], parameters[2]
			if isTooClose := x < y+distanceX && y < x+distanceY; isTooClose {
				t.Data[i] = cost
			}
			continue
		}
		constant, mostAllowed := parameters[0], parameters[1]
		violation := comparisons[kind](y + constant - x) // how far the comparison is violated, at most 0 if it holds
		if t.Data[i] = max(violation, 0); violation > mostAllowed {
			t.Data[i] = math.Inf(1)
		}
	}
}
