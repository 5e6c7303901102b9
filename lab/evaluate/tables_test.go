package evaluate

// The tables of a page, by hand.

import (
	"math"
	"strings"
	"testing"
)

// TestTables: medians stand in the row and the column of their names, – where there is none; counts are counts.
func TestTables(t *testing.T) {
	nan := math.NaN()
	row := func(model, family, method string, strength, step, off, stated float64) Row {
		r := Row{Model: model, Family: family, Method: method, Variables: 9, Strength: strength, Step: step, Error: off, Estimate: off,
			Uncertainty: stated, Largest: nan, MarginalError: nan, Seconds: step, Guarantee: silent()}
		return r
	}
	rows := []Row{
		row("a", "grid", "bp", 1, 1, 0.1, 0.1), row("b", "grid", "bp", 1, 1, 0.3, 0.05), row("c", "grid", "bp", 1, 1, 0.7, nan),
		row("a", "grid", "tree", 1, 2, 1e-12, 1e-12), row("b", "complete", "tree", 3, 4, 0.02, 0.3), row("c", "grid", "tree", 0.7, 2, 5, 1),
		row("c", "grid", "tree", 1, 2, nan, nan),
	}
	for name, c := range map[string]struct {
		tables []Table
		want   []string
	}{
		"strength":   {strengthTables(rows), []string{"| bp | tree |\n", "| grid, Δ = 1 | 0.3 | 1e-12 |\n", "| complete, Δ = 3 | – | 0.02 |\n"}},
		"components": {componentTables(rows), []string{"| grid, 9 variables, r = 1 | 0.3 | – |\n", "| grid, 9 variables, r = 2 | – | 2.5 |\n"}},
		"time": {timeTables(rows), []string{
			"| grid, 9 variables, Δ=1 | 0.1, 0.3, 0.7 (1 to 1 s) | 1e-12, NaN (2 to 2 s) |\n",
			"| complete, 9 variables, Δ=3 | – | 0.02 (4 to 4 s) |\n",
		}},
		"calibration-of-more": {calibrationTables(rows), []string{
			"| bp, grid | 3 | 0 | 1 | 0 | 1 of 2 (50.0 %) | 0.075 | 0.2 |\n", "| tree, grid | 3 | 1 | 0 | 1 | 0 of 1 (0.0 %) | 1 | 5 |\n",
			"| **all** | 7 | 1 | 1 | 1 | 2 of 4 (50.0 %) | 0.2 | 0.2 |\n",
		}},
		"calibration": {calibrationTables(rows[3:]), []string{"| complete | 1 | 0 | 0 | 0 | 1 of 1 (100.0 %) | 0.3 | 0.02 |\n"}},
		"constraints": {constraintTables(rows), []string{"| grid | 6 | 1 | 1 | 1 | 1 of 3 (33.3 %) | 0.1 | 0.3 |\n"}},
	} {
		text := ""
		for _, table := range c.tables {
			text += table.Text
		}
		for _, want := range c.want {
			if !strings.Contains(text, want) {
				t.Errorf("%s has no %q:\n%s", name, want, text)
			}
		}
		if strings.Contains(text, "grid, Δ = 0.7") {
			t.Errorf("%s has a strength that is not asked for", name)
		}
	}
}

// TestCoverageCountsMarginalsApart: the columns of marginals are of the other method's rows.
func TestCoverageCountsMarginalsApart(t *testing.T) {
	row := func(method string, largest, stated float64) Row {
		r := Row{Family: "qmr", Method: method, LnZ: 1, Estimate: 2, Error: 1, Uncertainty: 0.1, Largest: largest, Guarantee: silent()}
		r.MarginalStated = stated
		return r
	}
	got := coverageTable([]Row{row("z", 0.5, 0.5), row("m", 0.2, 0.1), row("m", 0.2, math.NaN())}, "z", "m")
	const want = "| qmr | 1 | 1 | 0 | 0 of 1 (0.0 %) | 10 | 1 | 0.1 | 2 | 1 | 1 of 2 (50.0 %) | 2 | 0.2 | 0.5 |\n"
	if !strings.Contains(got, want) {
		t.Errorf("%s has no %s", got, want)
	}
}
