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
	labels  *factorgraph.Labels // the names of variables and values
	targets []int               // variables whose posteriors are written
	domains []int               // the numbers of values of the targets
	ids     []string            // the names of columns that are carried over from the input
	lnZ0    float64             // ln Z without evidence
	buffer  *bufio.Writer       // under out
	out     *csv.Writer
}

// newTable returns a table that writes to w. domains has the number of values of every variable.
func newTable(w io.Writer, labels *factorgraph.Labels, targets, domains []int, ids []string, lnZ0 float64) *Table {
	t := &Table{labels: labels, targets: targets, ids: ids, lnZ0: lnZ0, buffer: bufio.NewWriterSize(w, 1<<16)}
	for _, v := range targets {
		t.domains = append(t.domains, domains[v])
	}
	t.out = csv.NewWriter(t.buffer)
	return t
}

// header returns the first row: the names of the columns.
func (t *Table) header() []string {
	row := append([]string{"row"}, t.ids...)
	for i, v := range t.targets {
		for x := range t.domains[i] {
			row = append(row, fmt.Sprintf("P(%s=%s)", t.labels.OfVariable(v), t.labels.OfValue(v, x)))
		}
	}
	return makeInert(append(row, "ln_p_evidence", "exact", "error"))
}

// resultRow returns the row of a case with its result; r is nil if the case has an error of its own. failed is true if
// the row has an error.
func (t *Table) resultRow(c *Case, r *query.Result) (row []string, failed bool) {
	row = append(make([]string, 0, 8+len(t.ids)), strconv.FormatInt(c.Number, 10))
	row = append(row, c.IDs...)

	// what the result has: p[i] are the posteriors of target i, reason says why there are none
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
			reason = "impossible: " + DescribeConflict(r.Conflict)
		}
	default:
		p, lnP, exact = query.Probabilities(r.Marginals), formatNumber(*r.LogZ-t.lnZ0), strconv.FormatBool(r.Exact)
		if len(p) != len(t.targets) && len(t.targets) > 0 {
			p, reason = nil, "no marginals"
			if n := len(r.Warnings); n > 0 {
				reason = r.Warnings[n-1]
			}
		}
	}

	// the cells of the posteriors
	for i, d := range t.domains {
		for x := range d {
			cell := ""
			if p != nil {
				cell = formatNumber(p[i][x])
			}
			row = append(row, cell)
		}
	}
	return makeInert(append(row, lnP, exact, reason)), reason != ""
}

// DescribeConflict says which observations contradict each other, and under which values that the query sets.
func DescribeConflict(c *query.Conflict) string {
	text := "the model without any evidence"
	if last := len(c.Observations) - 1; last >= 0 {
		texts := observationTexts(c.Observations)
		text = texts[last]
		if last > 0 {
			text = strings.Join(texts[:last], ", ") + " with " + text
		}
	}
	if len(c.Do) > 0 {
		text += " under do(" + strings.Join(observationTexts(c.Do), ",") + ")"
	}
	return text
}

// observationTexts returns each observation as NAME=VALUE.
func observationTexts(observations []query.Observed) []string {
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

// writeRow appends a row.
func (t *Table) writeRow(row []string) error { return t.out.Write(row) }

// makeInert changes cells so that no spreadsheet and no terminal runs them, and returns the row. A cell that begins as
// a formula does and is no number gets an apostrophe in front. Control characters are replaced, but for tabs and ends
// of lines.
func makeInert(row []string) []string {
	for i, cell := range row {
		if strings.ContainsFunc(cell, isCommand) {
			cell = strings.Map(func(c rune) rune {
				if isCommand(c) {
					return unicode.ReplacementChar
				}
				return c
			}, cell)
		}
		if mayBeFormula := cell != "" && strings.IndexByte("=+-@\t\r\n", cell[0]) >= 0; mayBeFormula {
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

// formatNumber writes a number with as few digits as read back to the last bit.
func formatNumber(x float64) string {
	if x == 0 || math.IsNaN(x) {
		x = math.Abs(x) // without a sign
	}
	return strconv.FormatFloat(x, 'g', -1, 64)
}

// isRowOf reports whether a written row belongs to a case.
func (t *Table) isRowOf(row []string, c *Case) bool {
	return row[0] == strconv.FormatInt(c.Number, 10) && slices.Equal(row[1:1+len(t.ids)], makeInert(slices.Clone(c.IDs)))
}
