package cases

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// Table writes results as rows.
type Table struct {
	labels  *factorgraph.Labels
	targets []int
	domains []int // of the targets
	ids     []string
	lnZ0    float64 // ln Z without evidence
	buffer  *bufio.Writer
	out     *csv.Writer
}

// newTable returns a table over w.
func newTable(w io.Writer, labels *factorgraph.Labels, targets, domains []int, ids []string, lnZ0 float64) *Table {
	t := &Table{labels: labels, targets: targets, ids: ids, lnZ0: lnZ0, buffer: bufio.NewWriterSize(w, 1<<16)}
	for _, v := range targets {
		t.domains = append(t.domains, domains[v])
	}
	t.out = csv.NewWriter(t.buffer)
	return t
}

// header is the first row.
func (t *Table) header() []string {
	row := append([]string{"row"}, t.ids...)
	for i, v := range t.targets {
		for x := range t.domains[i] {
			row = append(row, fmt.Sprintf("P(%s=%s)", t.labels.OfVariable(v), t.labels.OfValue(v, x)))
		}
	}
	return inert(append(row, "ln_p_evidence", "exact", "error"))
}

// row returns the row of a case; r is nil where the case was not asked.
func (t *Table) row(c *Case, r *query.Result) (row []string, failed bool) {
	row = append(make([]string, 0, 8+len(t.ids)), strconv.FormatInt(c.Number, 10))
	row = append(row, c.IDs...)
	var reason string
	var p [][]float64
	var lnP, exact string
	switch {
	case r == nil:
		reason = c.Err.Error()
	case r.Status != query.StatusOK:
		reason = fmt.Sprintf("%s: %s", r.Error.Code, r.Error.Message)
	case r.Zero:
		reason, lnP, exact = "impossible evidence", "-inf", strconv.FormatBool(r.Exact)
		if r.Conflict != nil {
			reason = "impossible: " + Impossible(r.Conflict)
		}
	default:
		p, lnP, exact = query.Probabilities(r.Marginals), shortest(*r.LogZ-t.lnZ0), strconv.FormatBool(r.Exact)
		if len(p) != len(t.targets) && len(t.targets) > 0 {
			p, reason = nil, "no marginals"
			if n := len(r.Warnings); n > 0 {
				reason = r.Warnings[n-1]
			}
		}
	}
	for i, d := range t.domains {
		for x := range d {
			cell := ""
			if p != nil {
				cell = shortest(p[i][x])
			}
			row = append(row, cell)
		}
	}
	return inert(append(row, lnP, exact, reason)), reason != ""
}

// Impossible says which observations contradict each other, and beside which variables that the query sets.
func Impossible(c *query.Conflict) string {
	text := "the model without any evidence"
	if last := len(c.Observations) - 1; last >= 0 {
		texts := each(c.Observations)
		text = texts[last]
		if last > 0 {
			text = strings.Join(texts[:last], ", ") + " with " + text
		}
	}
	if len(c.Do) > 0 {
		text += " under do(" + strings.Join(each(c.Do), ",") + ")"
	}
	return text
}

// each writes observations, and values that are set.
func each(observations []query.Observed) []string {
	texts := make([]string, len(observations))
	for i, o := range observations {
		value := "its weights"
		if o.Value != nil {
			value = cmp.Or(o.State, strconv.Itoa(*o.Value))
		}
		texts[i] = cmp.Or(o.Name, strconv.Itoa(o.Variable)) + "=" + value
	}
	return texts
}

// write appends a row.
func (t *Table) write(row []string) error { return t.out.Write(row) }

// inert returns cells that a spreadsheet or a terminal does not run. If a cell begins as a formula does and is no number, it is text
// behind an apostrophe. Control characters but tabs and ends of lines are replaced.
func inert(row []string) []string {
	for i, cell := range row {
		if strings.ContainsFunc(cell, isCommand) {
			cell = strings.Map(func(c rune) rune {
				if isCommand(c) {
					return unicode.ReplacementChar
				}
				return c
			}, cell)
		}
		if cell != "" && strings.IndexByte("=+-@\t\r\n", cell[0]) >= 0 {
			if _, err := strconv.ParseFloat(cell, 64); err != nil {
				cell = "'" + cell
			}
		}
		row[i] = cell
	}
	return row
}

// isCommand reports whether a character is a command to a terminal, and no part of a text.
func isCommand(c rune) bool { return unicode.IsControl(c) && c != '\t' && c != '\n' && c != '\r' }

// flush writes out the complete rows.
func (t *Table) flush() error {
	t.out.Flush()
	if err := t.out.Error(); err != nil {
		return err
	}
	return t.buffer.Flush()
}

// shortest writes a number so that it is read back to the last bit.
func shortest(x float64) string {
	if x == 0 || math.IsNaN(x) {
		x = math.Abs(x)
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// same reports whether a written row belongs to a case.
func (t *Table) same(row []string, c *Case) bool {
	return row[0] == strconv.FormatInt(c.Number, 10) && slices.Equal(row[1:1+len(t.ids)], inert(slices.Clone(c.IDs)))
}
