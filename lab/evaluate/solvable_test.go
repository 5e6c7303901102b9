package evaluate

import (
	"math"
	"strings"
	"testing"
)

// TestSolvableTable: a way is exact, gives an error beside what it states, or has no answer; other settings are rows of their own.
func TestSolvableTable(t *testing.T) {
	nan := math.NaN()
	row := func(family, method string, estimate, off, stated, seconds float64) Row {
		r := Row{Family: family, Method: method, Estimate: estimate, Error: off, Uncertainty: stated}
		r.CPU = seconds
		return r
	}
	got := solvableTable([]Row{
		row("a", "auto", 1, 1e-12, 0, 1), row("a", "auto", 1, 1e-12, 0, 3), row("a", "bp", nan, nan, nan, 1),
		row("b", "auto", 1, 1e-12, 0, 1), row("b", "auto", 1, 0.2, 0.5, 1), row("b", "bp", 1, 0.4, nan, 0.1),
	})
	for _, line := range []string{"| a | exact, 2.0 s | no answer, 1.0 s |", "| b | 0.1 (0.25), 1.0 s | 0.4 (–), 0.1 s |"} {
		if !strings.Contains(got, line) {
			t.Errorf("%q is not in\n%s", line, got)
		}
	}
}
