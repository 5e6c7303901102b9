package evaluate

// Tables in Markdown, of all experiments.

import (
	"fmt"
	"strings"
)

// Table is one that a page shows.
type Table struct{ Name, Text string }

// pivot is a table of medians: a row per name that by gives, a column per name that across gives, both in the sequence in which they come
// first; – where there is no number.
func pivot(head string, rows []Row, by, across func(Row) string, value func(Row) float64) string {
	var b strings.Builder
	columns := names(rows, across)
	fmt.Fprintf(&b, "| %s | %s |\n|---|%s\n", head, strings.Join(columns, " | "), strings.Repeat("--:|", len(columns)))
	for _, g := range groups(rows, by) {
		fmt.Fprintf(&b, "| %s |", g.name)
		for _, column := range columns {
			var values []float64
			for _, r := range g.rows {
				if across(r) == column {
					values = append(values, value(r))
				}
			}
			fmt.Fprintf(&b, " %s |", middle(values))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func methodOf(r Row) string { return r.Method }

// strengthTables are of some strengths: weak, moderate, strong.
func strengthTables(rows []Row) []Table {
	var some []Row
	for _, r := range rows {
		if r.Strength == 0.5 || r.Strength == 1 || r.Strength == 3 {
			some = append(some, r)
		}
	}
	by := func(r Row) string { return fmt.Sprintf("%s, Δ = %g", r.label(), r.Strength) }
	return []Table{{"lnz", pivot("median \\|Δ ln Z\\|", some, by, methodOf, ofError)}}
}

// componentTables are of the least and the largest number of components.
func componentTables(rows []Row) []Table {
	ends := map[string][2]float64{} // the least and the largest number of components
	for _, r := range rows {
		e, ok := ends[sized(r)]
		if !ok {
			e = [2]float64{r.Step, r.Step}
		}
		ends[sized(r)] = [2]float64{min(e[0], r.Step), max(e[1], r.Step)}
	}
	var some []Row
	for _, r := range rows {
		if e := ends[sized(r)]; r.Step == e[0] || r.Step == e[1] {
			some = append(some, r)
		}
	}
	by := func(r Row) string { return fmt.Sprintf("%s, r = %g", sized(r), r.Step) }
	return []Table{{"lnz", pivot("median \\|Δ ln Z\\|", some, by, methodOf, ofError)}}
}

// timeTables list the errors of each method as it goes on, and when the first and the last estimate was there.
func timeTables(rows []Row) []Table {
	var b strings.Builder
	methods := names(rows, methodOf)
	fmt.Fprintf(&b, "| model | %s |\n|---|%s\n", strings.Join(methods, " | "), strings.Repeat("---|", len(methods)))
	for _, g := range groups(rows, titled) {
		fmt.Fprintf(&b, "| %s |", g.name)
		for _, m := range methods {
			var said []string
			of := ofMethod(g.rows, m)
			for _, r := range of {
				said = append(said, fmt.Sprintf("%.1g", r.Error))
			}
			if len(of) == 0 {
				b.WriteString(" – |")
				continue
			}
			fmt.Fprintf(&b, " %s (%.2g to %.2g s) |", strings.Join(said, ", "), of[0].Seconds, of[len(of)-1].Seconds)
		}
		b.WriteString("\n")
	}
	return []Table{{"errors", b.String()}}
}

func count(rows []Row, is func(Row) bool) (n int) {
	for _, r := range rows {
		if is(r) {
			n++
		}
	}
	return n
}

// reuseTables are of the error with projectors of either kind under values of the model, where something is lost.
func reuseTables(rows []Row) []Table {
	by := func(r Row) string { return r.Family + ", " + r.Method }
	observations := func(r Row) string { return fmt.Sprintf("%g", r.Step) }
	var some []Row
	for _, g := range groups(rows, by) {
		if strings.Contains(g.name, "values of the model") && count(g.rows, func(r Row) bool { return r.Error > settled }) > 0 {
			some = append(some, g.rows...)
		}
	}
	return []Table{{"lnz", pivot("median \\|Δ ln Z\\| under observations", some, by, observations, ofError)}}
}

// calibrationTable is a line per group, and one of all.
func calibrationTable(head string, rows []Row, by func(Row) string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "| %s | estimates | failed | none stated | to rounding | of the others within 3 × stated | median stated ", head)
	b.WriteString("| median error |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
	for _, g := range append(groups(rows, by), group{"**all**", rows}) {
		c := calibrate(g.rows, "")
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %s | %s | %s |\n", g.name, c.models, c.failed, c.unstated, c.settled,
			share(c.within, c.others()), middle([]float64{c.stated}), middle([]float64{c.err}))
	}
	return b.String()
}

// calibrationTables are of the families, for each method where there are several.
func calibrationTables(rows []Row) []Table {
	by := Row.label
	if len(names(rows, methodOf)) > 1 {
		by = func(r Row) string { return r.Method + ", " + r.label() }
	}
	return []Table{{"families", calibrationTable("family", rows, by)}}
}

func constraintTables(rows []Row) []Table {
	return []Table{{"families", calibrationTable("family", rows, Row.label)}}
}

// largeTables compare at equal processor time.
func largeTables(rows []Row) []Table { return []Table{{"kinds", largeTable(rows)}} }
