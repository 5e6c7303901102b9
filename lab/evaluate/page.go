package evaluate

// The tables of a page, between lines that name them.

import (
	"regexp"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/pkg/fault"
)

var tableMark = regexp.MustCompile(`(?s)<!-- table: ([a-z-]+) ([a-z-]+) -->\n.*?<!-- end -->`)

// Page returns a page in Markdown with tables in the places that name them, between <!-- table: EXPERIMENT NAME --> and <!-- end -->, from
// the rows that rows returns of an experiment; where it returns none the place stays as it is. Errors: from rows; fault.BadInput for an
// experiment or a table of no such name, and for a page without any.
func Page(page string, rows func(Experiment) ([]Row, error)) (string, error) {
	known := map[string][]Table{}
	var wrong error
	found := false
	page = tableMark.ReplaceAllStringFunc(page, func(place string) string {
		found = true
		parts := tableMark.FindStringSubmatch(place)
		tables, ok := known[parts[1]]
		if !ok && wrong == nil {
			tables, wrong = tablesOf(parts[1], rows)
			known[parts[1]] = tables
		}
		if tables == nil || wrong != nil {
			return place
		}
		k := slices.IndexFunc(tables, func(t Table) bool { return t.Name == parts[2] })
		if k < 0 {
			wrong = fault.New(fault.BadInput, "evaluate: %s has no table %q", parts[1], parts[2])
			return place
		}
		return "<!-- table: " + parts[1] + " " + parts[2] + " -->\n" + strings.TrimSpace(tables[k].Text) + "\n<!-- end -->"
	})
	if !found {
		return "", fault.New(fault.BadInput, "evaluate: the page has no place for a table")
	}
	return page, wrong
}

// tablesOf are the tables of an experiment; none without rows.
func tablesOf(name string, rows func(Experiment) ([]Row, error)) ([]Table, error) {
	if name == "all" {
		return nil, fault.New(fault.BadInput, "evaluate: a table of all experiments")
	}
	found, err := Find(name)
	if err != nil {
		return nil, err
	}
	list, err := rows(found[0])
	if err != nil || len(list) == 0 {
		return nil, err
	}
	if found[0].Tables == nil {
		return nil, fault.New(fault.BadInput, "evaluate: %s has no tables", name)
	}
	return found[0].Tables(list), nil
}
