package formats_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/query"
)

// TestTurnedTables: answers about a network with a table whose numbers are the other way round have a warning that names the node, its
// line, the states of the parents and the sum, and says so, in every format. The sums are by hand: 0.9 + 0.2; with two parents 0.9 + 0.6
// and all others of six other than 1.
func TestTurnedTables(t *testing.T) {
	const turned = "; with its numbers the other way round all rows would sum to 1: "
	const one = `the row of "rain" = "no" sums to 1.1, which rounding does not explain (and 1 more of its 2 rows not to 1)` + turned
	const two = `the table of "c" (line 7): the row of "a" = "no", "b" = "low" sums to 1.5, which rounding does not explain (and 5 more of ` +
		"its 6 rows not to 1)" + turned
	for file, want := range map[string]string{
		"m.bif": `the table of "wet" (line 5): ` + one, "m.net": `the table of "wet" (line 5): ` + one,
		"m.xdsl": `the table of "wet" (line 3): ` + one,
		"m.xml":  `the table of "wet" (line 7): ` + one, "m.json": `the table of "wet" (line 5): ` + one, "parents.bif": two,
		"parents.net": strings.Replace(two, "1.5", "1.1", 1),
		"m.uai": "factor 1: the row of x_0 = 0 (line 10) sums to 1.1, which rounding does not explain (and 1 more of " +
			"its 2 rows not to 1)" + turned,
	} {
		m := load(t, filepath.Join("testdata", "turned", file))
		r := answer(t, m, query.Query{})
		if len(r.Warnings) != 1 || !strings.HasPrefix(r.Warnings[0], want) {
			t.Errorf("%s: %q, want %s…", file, r.Warnings, want)
		}
	}
}
