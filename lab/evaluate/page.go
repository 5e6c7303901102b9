package evaluate

// The tables of a page, between lines that name them.

import (
	"regexp"
	"strings"

	"github.com/basetensor/basetensor/pkg/fault"
)

var tableMark = regexp.MustCompile(`(?s)<!-- families: ([a-z]+) -->\n.*?<!-- end -->`)

// Page returns a page in Markdown with the tables of the experiment families in the places that name them:
// between <!-- families: NAME --> and <!-- end -->. Errors: fault.BadInput for a table of no such name, and for a page without any.
func Page(page string, rows []Row) (string, error) {
	tables := familyTables(rows)
	var wrong error
	found := false
	page = tableMark.ReplaceAllStringFunc(page, func(place string) string {
		found = true
		name := tableMark.FindStringSubmatch(place)[1]
		for _, t := range tables {
			if t.name == name {
				return "<!-- families: " + name + " -->\n" + strings.TrimSpace(t.text) + "\n<!-- end -->"
			}
		}
		wrong = fault.New(fault.BadInput, "evaluate: no table %q", name)
		return place
	})
	if !found {
		return "", fault.New(fault.BadInput, "evaluate: the page has no place for a table")
	}
	return page, wrong
}
