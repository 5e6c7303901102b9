// Package cases answers a CSV file row by row: every row is a case with its observations, and gets a row of posteriors. The rows
// go through a pipeline in jobs of fifty, many at a time, and leave in the order in which they came; memory does not grow with them.
package cases

import (
	"bufio"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/base/plaintext"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
)

// mostRow bounds the bytes of one row: a quote that is not closed must not read a whole file into memory.
const mostRow = 16 << 20

// Case is one row of the input.
type Case struct {
	Number   int64    // of the row, from 1, without the header
	Line     int      // of the file, that the row begins in
	IDs      []string // cells that are carried over
	Weight   float64  // of the column of weights; 1 if there is none
	Evidence factorgraph.Evidence
	Err      error // why the row cannot be asked; it names the line
}

// Columns says which columns are no variables, and which cells are missing. Columns without a name are carried over, and so are Netica's
// IDnum and the unnamed ones of pandas.
type Columns struct {
	IDs     []string // carried over
	Ignore  []string // left out
	Weight  string   // the column of how often a case counts, carried over too; empty: Netica's NumCases, if it is there
	Missing []string // words for a missing value, beside the usual ones
	Advice  string   // the end of the error for a column that is no variable's
}

// Reader reads cases.
type Reader struct {
	reading
	in      *csv.Reader
	bytes   *counter
	header  []string
	ids     []int      // columns that are carried over
	observe []observed // columns of variables, by variable
	weight  int        // column; −1: none
	rows    int64
	most    int64 // rows that are read; 0: all
	hasMore bool  // than that

	hasRowNames bool // rows begin with a name that the header has no column for, as R writes them between blanks
}

// observed is a column of a variable.
type observed struct{ column, variable int }

// NewReader reads the header, and finds the separator by it: comma, semicolon, tab or white space. A column is a variable's by its name
// or position, unless columns says that it is none. Errors carry bad_input and name the column.
func NewReader(r io.Reader, labels *factorgraph.Labels, columns Columns) (*Reader, error) {
	limited := &counter{r: r}
	text, err := plaintext.Reader(limited)
	if err != nil {
		return nil, err
	}
	buffered := bufio.NewReaderSize(text, 1<<16)
	form := find(buffered, columns.known(labels))
	in := &Reader{in: form.reader(buffered), bytes: limited, weight: -1, reading: reading{
		dialect: form, labels: labels, missing: slices.Concat(missing, columns.Missing), valueOf: make([]map[string]int, len(labels.Domains())),
	}}
	in.in.ReuseRecord = true
	header, err := in.in.Read()
	if err == io.EOF {
		return nil, fault.New(fault.BadInput, "there is no header: a row of the variables' names is needed")
	}
	if err != nil {
		return nil, inputError(err)
	}
	if err := in.assign(in.cells(header), columns); err != nil {
		return nil, err
	}
	return in, nil
}

// known returns a function that reports whether a column is a variable's or has a role.
func (c *Columns) known(labels *factorgraph.Labels) func(name string) bool {
	names := map[string]bool{numCases: true, idNum: true, c.Weight: true}
	for _, name := range slices.Concat(c.IDs, c.Ignore) {
		names[name] = true
	}
	for v := range labels.Domains() {
		names[labels.OfVariable(v)] = true
	}
	delete(names, "")
	return func(name string) bool { return names[name] }
}

// assign decides the role of every column.
func (r *Reader) assign(header []string, columns Columns) error {
	for _, name := range header {
		r.header = append(r.header, strings.TrimSpace(name))
	}
	if err := columns.check(r.header); err != nil {
		return err
	}
	columnOf := map[int]int{} // by variable
	for c, name := range r.header {
		isIgnored := name != "" && slices.Contains(columns.Ignore, name)
		switch {
		case name != "" && name == columns.Weight:
			r.weight = c
			if !isIgnored {
				r.ids = append(r.ids, c)
			}
		case isIgnored:
		case slices.Contains(columns.IDs, name):
			r.ids = append(r.ids, c)
		default:
			if err := r.assignOther(c, columns, columnOf); err != nil {
				return err
			}
		}
	}
	slices.SortFunc(r.observe, func(a, b observed) int { return cmp.Compare(a.variable, b.variable) })
	return nil
}

// check returns an error unless every column that has a role by its name is there once, and has one role.
func (c *Columns) check(header []string) error {
	for _, name := range slices.Concat(c.IDs, c.Ignore, []string{c.Weight}) {
		first := slices.Index(header, name)
		switch {
		case name == "":
		case first < 0:
			return fault.New(fault.BadInput, "there is no column called %q", name)
		case slices.Contains(header[first+1:], name):
			return fault.New(fault.BadInput, "two columns are called %q", name)
		case slices.Contains(c.IDs, name) && slices.Contains(c.Ignore, name):
			return fault.New(fault.BadInput, "column %q cannot be both carried over and left out", name)
		}
	}
	return nil
}

// assignOther decides the role of a column that columns give none. columnOf has the columns of the variables before.
func (r *Reader) assignOther(c int, columns Columns, columnOf map[int]int) error {
	name := r.header[c]
	isWeight := name == numCases && columns.Weight == "" && r.weight < 0
	v, err := 0, error(nil)
	if name != "" {
		v, err = r.labels.Variable(name)
	}
	switch first, isTwice := columnOf[v]; {
	case name == "" || err != nil && (isWeight || isAdded(name)):
		r.ids = append(r.ids, c)
		if isWeight {
			r.weight = c
		}
	case err != nil:
		return fault.New(fault.BadInput, "column %d: %w%s", c+1, err, columns.Advice)
	case isTwice:
		return fault.New(fault.BadInput, "columns %d and %d are both variable %q", first+1, c+1, r.labels.OfVariable(v))
	default:
		columnOf[v] = c
		r.observe = append(r.observe, observed{c, v})
	}
	return nil
}

// IDs are the names of the columns that are carried over.
func (r *Reader) IDs() []string {
	names := make([]string, len(r.ids))
	for i, c := range r.ids {
		names[i] = r.header[c]
	}
	return names
}

// Added names the columns that are no variables and have no role, in words: those without a name, of IDnum and of pandas' numbers of rows.
func (r *Reader) Added() (columns []string) {
	for _, c := range r.ids {
		switch name := r.header[c]; {
		case name == "":
			columns = append(columns, fmt.Sprintf("column %d (without a name)", c+1))
		case isAdded(name):
			columns = append(columns, fmt.Sprintf("column %q", name))
		}
	}
	return columns
}

// Limit ends the rows after the first most of them.
func (r *Reader) Limit(most int) { r.most = int64(most) }

// HasMore reports, once Next has ended, whether the input has rows beyond the limit.
func (r *Reader) HasMore() bool { return r.hasMore }

// Variable is the name of a variable.
func (r *Reader) Variable(v int) string { return r.labels.OfVariable(v) }

// Next returns the next case, io.EOF after the last. An error in one row is in its Err; the error returned ends the file.
func (r *Reader) Next() (Case, error) {
	r.bytes.since = 0
	record, err := r.in.Read()
	if err == io.EOF {
		return Case{}, io.EOF
	}
	if r.hasMore = r.most > 0 && r.rows == r.most; r.hasMore {
		return Case{}, io.EOF
	}
	r.rows++
	c := Case{Number: r.rows, IDs: make([]string, len(r.ids)), Weight: 1}
	var parse *csv.ParseError
	switch {
	case errors.As(err, &parse):
		place := fmt.Sprintf("line %d", parse.StartLine)
		if parse.Line != parse.StartLine {
			place = fmt.Sprintf("lines %d to %d", parse.StartLine, parse.Line)
		}
		c.Line = parse.StartLine
		c.Err = fault.New(fault.BadInput, "%s: %w", place, parse.Err)
		return c, nil
	case err != nil:
		return c, inputError(err)
	}
	c.Line, _ = r.in.FieldPos(0)
	record = r.withoutName(r.cells(record))
	for i, column := range r.ids {
		if column < len(record) {
			c.IDs[i] = record[column]
		}
	}
	if len(record) != len(r.header) {
		c.Err = fault.New(fault.BadInput, "line %d: %d cells, the header has %d", c.Line, len(record), len(r.header))
		return c, nil
	}
	if column, err := r.fill(&c, record); err != nil {
		line, _ := r.in.FieldPos(column)
		c.Err = fault.New(fault.BadInput, "line %d: %w", line, err)
	}
	return c, nil
}

// withoutName returns the cells of a row without its name, if the first row says that there are names.
func (r *Reader) withoutName(record []string) []string {
	if r.rows == 1 {
		r.hasRowNames = r.separator == ' ' && len(record) == len(r.header)+1
	}
	if r.hasRowNames {
		return record[1:]
	}
	return record
}

// fill reads weight and evidence of a case. With its error comes the column.
func (r *Reader) fill(c *Case, record []string) (column int, err error) {
	if r.weight >= 0 {
		if c.Weight, err = r.dialect.weight(strings.TrimSpace(record[r.weight])); err != nil {
			return r.weight, fault.New(fault.BadInput, "column %q: %w", r.header[r.weight], err)
		}
	}
	for _, o := range r.observe {
		x, weights, err := r.cell(o.variable, strings.TrimSpace(record[o.column]))
		switch {
		case err != nil:
			c.Evidence = factorgraph.Evidence{}
			return o.column, err
		case weights != nil:
			c.Evidence.Soft = append(c.Evidence.Soft, factorgraph.Likelihood{Var: o.variable, Weights: weights})
		case x != notObserved:
			c.Evidence.Hard = append(c.Evidence.Hard, factorgraph.Observation{Var: o.variable, Value: x})
		}
	}
	return 0, nil
}

// inputError is an error of reading, with its code.
func inputError(err error) error {
	if code := fault.CodeOf(err); code != fault.Internal {
		return err
	}
	return fault.Wrap(fault.BadInput, err)
}

// counter fails when one row takes too many bytes.
type counter struct {
	r     io.Reader
	since int // bytes since the row began, with read-ahead
}

// Read reads, and counts.
func (c *counter) Read(p []byte) (int, error) {
	if c.since > mostRow {
		return 0, fault.New(fault.BadInput, "a row has more than %d bytes: is a quote not closed?", mostRow)
	}
	n, err := c.r.Read(p)
	c.since += n
	return n, err
}

// String describes the columns, which identify a run.
func (r *Reader) String() string {
	var b strings.Builder
	for _, o := range r.observe {
		fmt.Fprintf(&b, "%d:%d ", o.column, o.variable)
	}
	return fmt.Sprintf("%q %v %q %d %s", r.header, r.ids, r.missing, r.weight, b.String())
}
