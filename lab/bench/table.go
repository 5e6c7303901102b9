// The table for people, on the terminal.

package bench

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"
)

type column struct {
	head  string
	width int // least, on the terminal
	left  bool
	cell  func(Row) string
}

// columns of the table; marginals only with mar, counts only of formulas.
func columns(mar, formulas bool) []column {
	list := []column{
		{"model", 12, true, func(r Row) string { return r.Model }},
		{"variables", 9, false, func(r Row) string { return strconv.Itoa(r.Variables) }},
		{"width", 5, false, func(r Row) string { return format(r.Width, "%d") }},
		{"log2 table", 10, false, func(r Row) string { return format(r.Log2Table, "%.1f") }},
		{"flops", 8, false, func(r Row) string { return format(r.Flops, "%.2g") }},
		{"real flops", 10, false, func(r Row) string { return format(r.RealFlops, "%.2g") }},
		{"slices", 6, false, func(r Row) string { return format(r.Slices, "%.6g") }},
		{"wall s", 7, false, func(r Row) string { return fmt.Sprintf("%.2f", r.Wall) }},
		{"CPU s", 7, false, func(r Row) string { return fmt.Sprintf("%.2f", r.CPU) }},
		{"peak MiB", 8, false, func(r Row) string { return formatPeak(r.Peak) }},
		{"error", 7, false, func(r Row) string { return format(r.Error, "%.1g") }},
	}

	if mar {
		list = append(list, column{"MAR error", 9, false, func(r Row) string {
			return format(r.MarError, "%.1g")
		}})
	}
	if formulas {
		list = append(list,
			column{"log10 count", 13, false, func(r Row) string { return format(r.Log10Z, "%.8f") }},
			column{"published", 13, false, func(r Row) string { return format(r.Reference, "%.8f") }})
	}
	return append(list, column{"status", 0, true, func(r Row) string { return string(r.Status) }})
}

const unknown = "–"

func format[T int | float64](v *T, format string) string {
	if v == nil {
		return unknown
	}
	return fmt.Sprintf(format, *v)
}

func formatPeak(bytes int64) string {
	if bytes == 0 {
		return unknown
	}
	return strconv.FormatInt((bytes+1<<19)>>20, 10)
}

// formatLog writes log10 Z, −Inf in words.
func formatLog(v *float64) string {
	if v != nil && math.IsInf(*v, -1) {
		return "−∞ (Z = 0)"
	}
	return format(v, "%.10g")
}

// Table prints rows one by one in columns that are as wide as its models' names need.
type Table struct {
	columns []column
}

// NewTable makes a table for the rows of the given models.
func NewTable(models []Model, mar, formulas bool) *Table {
	t := &Table{columns: columns(mar, formulas)}
	for _, m := range models {
		t.columns[0].width = max(t.columns[0].width, utf8.RuneCountInString(m.Name))
	}
	return t
}

// Head is the line of the columns' names, without a line end.
func (t *Table) Head() string {
	return t.line(func(c column) string { return c.head })
}

// Line is one row, with the beginning of its note behind the status.
func (t *Table) Line(r Row) string {
	line := t.line(func(c column) string { return c.cell(r) })
	if r.Note != "" && !r.Status.Solved() {
		line += fmt.Sprintf(": %.80s", r.Note)
	}
	return line
}

func (t *Table) line(cell func(column) string) string {
	var b strings.Builder
	for i, c := range t.columns {
		if i > 0 {
			b.WriteString("  ")
		}
		text := cell(c)
		gap := strings.Repeat(" ", max(0, c.width-utf8.RuneCountInString(text)))
		if c.left {
			b.WriteString(text + gap)
		} else {
			b.WriteString(gap + text)
		}
	}
	return strings.TrimRight(b.String(), " ")
}

// Summary counts the rows per status and adds up their times: "52 of 57 solved; over_budget 4,
// timeout 1; …".
func Summary(rows []Row) string {
	solved, order, count := 0, []Status{}, map[Status]int{}
	wall, cpu := 0.0, 0.0
	for _, r := range rows {
		if wall, cpu = wall+r.Wall, cpu+r.CPU; r.Status.Solved() {
			solved++
		}
		if r.Status == OK {
			continue
		}
		if count[r.Status]++; count[r.Status] == 1 {
			order = append(order, r.Status)
		}
	}

	parts := make([]string, len(order))
	for i, s := range order {
		parts[i] = fmt.Sprintf("%s %d", s, count[s])
	}
	text := fmt.Sprintf("%d of %d solved", solved, len(rows))
	if len(parts) > 0 {
		text += " (" + strings.Join(parts, ", ") + ")"
	}
	return fmt.Sprintf("%s; %.1f s, %.1f s of CPU time", text, wall, cpu)
}
