package plan

import (
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

func TestTablesThatSpanTooMuchOrForbid(t *testing.T) {
	table := func(data ...float64) sumproduct.Table { return sumproduct.Table{Scope: []int{0, 1}, Data: data} }
	ordinary := table(1, 1e-12, 3, 0.5)
	for _, c := range []struct {
		name       string
		tables     []sumproduct.Table
		wide, hard bool
	}{
		{"ordinary", []sumproduct.Table{ordinary}, false, false},
		{"zeros span nothing", []sumproduct.Table{table(0, 1, 1, 0)}, false, true},
		{"one that spans 2^265", []sumproduct.Table{table(1e-80, 1, 1, 1)}, true, false},
		{"both signs", []sumproduct.Table{table(-1e80, 1, 1, 1)}, true, false},
		{"many that meet", slices.Repeat([]sumproduct.Table{ordinary}, 20), true, false},
		{"a few that meet", slices.Repeat([]sumproduct.Table{ordinary}, 5), false, false},
		{"a weight of 0", []sumproduct.Table{{Scope: []int{0}, Data: []float64{0, 1}}}, false, false},
	} {
		e := &sumproduct.Expression{Dims: []int{2, 2}, Tables: c.tables}
		if got := proposal.ExceedsRange(e); got != c.wide {
			t.Errorf("%s: wide %v", c.name, got)
		}
		if got := proposal.HasConstraint(e); got != c.hard {
			t.Errorf("%s: forbids %v", c.name, got)
		}
	}
}
