package structured

import (
	"strings"
	"testing"
)

// TestDamagedRestIsRefused: a table of the rest that the sum would leave out, or read beyond its end, is an error that names it.
func TestDamagedRestIsRefused(t *testing.T) {
	fit := func(tables ...Table) *Fit { return &Fit{Domains: []int{2, 3}, Rest: tables, Order: []int{0, 1}} }
	pair := Table{Scope: []int{0, 1}, Values: make([]float64, 6)}
	if err := fit(pair).checkRest(); err != nil {
		t.Fatal(err)
	}
	for want, table := range map[string]Table{
		"table 1 of the rest has no variable":      {Scope: nil, Values: []float64{0.5}},
		"table 1 of the rest has variable 2 of 2":  {Scope: []int{2}, Values: []float64{1, 1}},
		"table 1 of the rest has 2 entries":        {Scope: []int{1}, Values: []float64{1, 1}},
		"table 1 of the rest has entry -1":         {Scope: []int{0}, Values: []float64{1, -1}},
		"table 1 of the rest has variable 1 of 2,": {Scope: []int{1, 1}, Values: make([]float64, 9)},
	} {
		if err := fit(pair, table).checkRest(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}
