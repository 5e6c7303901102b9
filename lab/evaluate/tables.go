package evaluate

// Tables in Markdown.

import (
	"fmt"
	"strings"
)

// Table is one that a page shows.
type Table struct{ Name, Text string }

// table has a row per group, with its name and cells; columns are the names of all columns, with | between them.
func table(columns string, list []group, cells func(rows []Row) []any) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s |\n|---|%s\n", columns, strings.Repeat("--:|", strings.Count(columns, " | ")))
	for _, g := range list {
		fmt.Fprintf(&b, "| %s |", g.name)
		for _, c := range cells(g.rows) {
			fmt.Fprintf(&b, " %v |", c)
		}
		b.WriteString("\n")
	}
	return b.String()
}
