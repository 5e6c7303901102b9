package costs

import (
	"math"
	"strings"

	"github.com/basetensor/basetensor/pkg/uai"
)

// comparisons are the functions of two variables x and y that have parameters in place of a table: the distance by which x fails to be so,
// beside a constant added to y.
var comparisons = map[string]func(difference float64) float64{ // of y + constant − x
	">=": func(d float64) float64 { return d },
	">":  func(d float64) float64 { return d + 1 },
	"<=": func(d float64) float64 { return -d },
	"<":  func(d float64) float64 { return 1 - d },
	"=":  math.Abs,
}

// disjunction is the function of two variables that one lies behind the other by some distance.
const disjunction = "disj"

var arithmeticNames = strings.Join([]string{">=", ">", "<=", "<", "=", disjunction}, ", ")

// arithmetic reports whether a function has parameters in place of a table, and their number.
func arithmetic(kind string) (parameters int, ok bool) {
	if kind == disjunction {
		return 3, true
	}
	return 2, comparisons[kind] != nil
}

// compare adds a function with parameters: of a comparison a constant, and the largest distance that is not forbidden; of a disjunction the
// two distances, and the cost.
func (n *network) compare(called, kind string, scope []int, parameters []float64) {
	if len(scope) != 2 {
		n.Bad(uai.ErrModel, "%s: %s is of two variables, not of %d", called, kind, len(scope))
		return
	}
	if wanted, _ := arithmetic(kind); len(parameters) != wanted {
		n.Bad(uai.ErrModel, "%s: %s has %d parameters, not %d", called, kind, wanted, len(parameters))
		return
	}
	t := n.function(called, scope, 0)
	if t == nil {
		return
	}
	for i := range t.Data {
		x, y := float64(i/t.Shape[1]), float64(i%t.Shape[1])
		if kind == disjunction {
			if x < y+parameters[1] && y < x+parameters[0] {
				t.Data[i] = parameters[2]
			}
			continue
		}
		distance := comparisons[kind](y + parameters[0] - x)
		if t.Data[i] = max(distance, 0); distance > parameters[1] {
			t.Data[i] = math.Inf(1)
		}
	}
}
