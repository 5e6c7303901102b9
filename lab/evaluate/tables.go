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

// pivot is a table of medians: a row per name that by gives, a column per name that across gives, both in the sequence in which they come
// first; – where there is no number.
func pivot(head string, rows []Row, by, across func(Row) string, value func(Row) float64) string {
	columns := names(rows, across)
	return table(strings.Join(append([]string{head}, columns...), " | "), groups(rows, by), func(rows []Row) (cells []any) {
		for _, column := range columns {
			var values []float64
			for _, r := range rows {
				if across(r) == column {
					values = append(values, value(r))
				}
			}
			cells = append(cells, middle(values))
		}
		return cells
	})
}
