package evaluate

// The tables of a page, by hand.

import (
	"math"
	"strings"
	"testing"
)

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
