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
	cellReader
	csv             *csv.Reader
	bytes           *rowLimiter      // bounds the bytes of a row
	header          []string         // the names of the columns
	idColumns       []int            // the columns that are carried over
	variableColumns []variableColumn // the columns of variables, sorted by variable
	weightColumn    int              // the column of weights; −1: none
	rows            int64            // the number of rows that were read
	most            int64            // the largest number of rows that are read; 0: all
	hasMore         bool             // whether the input has more rows than that

	hasRowNames bool // rows begin with a name that the header has no column for, as R writes them between blanks
}

// variableColumn is a column of a variable.
type variableColumn struct{ column, variable int }

// NewReader reads the header, and finds the separator by it: comma, semicolon, tab or white space. A column is a variable's by its name
// or position, unless columns says that it is none. Errors carry bad_input and name the column.
func NewReader(r io.Reader, labels *factorgraph.Labels, columns Columns) (*Reader, error) {
	// the dialect
	limited := &rowLimiter{reader: r}
	text, err := plaintext.Reader(limited)
	if err != nil {
		return nil, err
	}
	buffered := bufio.NewReaderSize(text, 1<<16)
	form := findDialect(buffered, columns.knownNames(labels))
	in := &Reader{csv: form.newReader(buffered), bytes: limited, weightColumn: -1, cellReader: cellReader{
		dialect: form, labels: labels, missing: slices.Concat(missing, columns.Missing), valueOf: make([]map[string]int, len(labels.Domains())),
	}}
	in.csv.ReuseRecord = true

	// the header
	header, err := in.csv.Read()
	if err == io.EOF {
		return nil, fault.New(fault.BadInput, "there is no header: a row of the variables' names is needed")
	}
	if err != nil {
		return nil, inputError(err)
	}
	if err := in.assignColumns(in.rowCells(header), columns); err != nil {
		return nil, err
	}
	return in, nil
}

// knownNames returns a function that reports whether a name is a variable's or that of a column with a role.
func (c *Columns) knownNames(labels *factorgraph.Labels) func(name string) bool {
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

// assignColumns decides the role of every column: carried over, left out, weights, or a variable.
func (r *Reader) assignColumns(header []string, columns Columns) error {
	for _, name := range header {
		r.header = append(r.header, strings.TrimSpace(name))
	}
	if err := columns.checkNames(r.header); err != nil {
		return err
	}
	columnOf := map[int]int{} // by variable
	for c, name := range r.header {
		isIgnored := name != "" && slices.Contains(columns.Ignore, name)
		switch {
		case name != "" && name == columns.Weight:
			r.weightColumn = c
			if !isIgnored {
				r.idColumns = append(r.idColumns, c)
			}
		case isIgnored:
		case slices.Contains(columns.IDs, name):
			r.idColumns = append(r.idColumns, c)
		default:
			if err := r.assignOther(c, columns, columnOf); err != nil {
				return err
			}
		}
	}
	slices.SortFunc(r.variableColumns, func(a, b variableColumn) int { return cmp.Compare(a.variable, b.variable) })
	return nil
}

// checkNames returns an error unless every column that has a role by its name is there once, and has one role.
func (c *Columns) checkNames(header []string) error {
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

// assignOther decides the role of column c, which has none by its name: a variable's, or one that programs add.
// columnOf has the columns of variables so far.
func (r *Reader) assignOther(c int, columns Columns, columnOf map[int]int) error {
	name := r.header[c]
	isWeight := name == numCases && columns.Weight == "" && r.weightColumn < 0 // the first of this name, if no weight was named
	v, err := 0, error(nil)
	if name != "" {
		v, err = r.labels.Variable(name)
	}
	isVariable := name != "" && err == nil
	switch first, isTwice := columnOf[v]; { // isTwice means nothing unless the name is a variable's, and is tested last
	case name == "" || !isVariable && (isWeight || isAdded(name)):
		r.idColumns = append(r.idColumns, c)
		if isWeight {
			r.weightColumn = c
		}
	case err != nil:
		return fault.New(fault.BadInput, "column %d: %w%s", c+1, err, columns.Advice)
	case isTwice:
		return fault.New(fault.BadInput, "columns %d and %d are both variable %q", first+1, c+1, r.labels.OfVariable(v))
	default:
		columnOf[v] = c
		r.variableColumns = append(r.variableColumns, variableColumn{c, v})
	}
	return nil
}

// IDs returns the names of the columns that are carried over.
func (r *Reader) IDs() []string {
	names := make([]string, len(r.idColumns))
	for i, c := range r.idColumns {
		names[i] = r.header[c]
	}
	return names
}

// AddedColumns describes the columns that are carried over though nobody asked for it: without a name, IDnum, and pandas'
// numbers of rows.
func (r *Reader) AddedColumns() (columns []string) {
	for _, c := range r.idColumns {
		switch name := r.header[c]; {
		case name == "":
			columns = append(columns, fmt.Sprintf("column %d (without a name)", c+1))
		case isAdded(name):
			columns = append(columns, fmt.Sprintf("column %q", name))
		}
	}
	return columns
}

// LimitRows makes Next end after this many rows.
func (r *Reader) LimitRows(maxRows int) { r.most = int64(maxRows) }

// HasMore reports, once Next has ended, whether the input has rows beyond the limit.
func (r *Reader) HasMore() bool { return r.hasMore }

// Variable returns the name of a variable.
func (r *Reader) Variable(v int) string { return r.labels.OfVariable(v) }

// Next returns the next case, or io.EOF after the last, which is the last of the file or of the most rows that are read. An error in one
// row is in its Err. Any other error ends the file.
func (r *Reader) Next() (Case, error) {
	// the row
	r.bytes.rowBytes = 0 // the limit on bytes is for each row
	record, err := r.csv.Read()
	if err == io.EOF {
		return Case{}, io.EOF
	}
	if r.hasMore = r.most > 0 && r.rows == r.most; r.hasMore { // more rows than the limit
		return Case{}, io.EOF
	}
	r.rows++
	c := Case{Number: r.rows, IDs: make([]string, len(r.idColumns)), Weight: 1}
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

	// its cells
	c.Line, _ = r.csv.FieldPos(0)
	record = r.withoutRowName(r.rowCells(record))
	for i, column := range r.idColumns {
		if column < len(record) {
			c.IDs[i] = record[column]
		}
	}
	if len(record) != len(r.header) {
		c.Err = fault.New(fault.BadInput, "line %d: %d cells, the header has %d", c.Line, len(record), len(r.header))
		return c, nil
	}
	if column, err := r.fillCase(&c, record); err != nil {
		line, _ := r.csv.FieldPos(column)
		c.Err = fault.New(fault.BadInput, "line %d: %w", line, err)
	}
	return c, nil
}

// withoutRowName returns the cells of a row without the row's name. Rows have names, as R writes them, if white space separates cells and
// the first row has one cell more than the header.
func (r *Reader) withoutRowName(record []string) []string {
	if r.rows == 1 {
		r.hasRowNames = r.separator == ' ' && len(record) == len(r.header)+1
	}
	if r.hasRowNames {
		return record[1:]
	}
	return record
}

// fillCase reads the weight and the evidence of a case. With an error it returns the column.
func (r *Reader) fillCase(c *Case, record []string) (column int, err error) {
	if r.weightColumn >= 0 {
		if c.Weight, err = r.dialect.parseWeight(strings.TrimSpace(record[r.weightColumn])); err != nil {
			return r.weightColumn, fault.New(fault.BadInput, "column %q: %w", r.header[r.weightColumn], err)
		}
	}
	for _, o := range r.variableColumns {
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

// inputError returns an error of reading with a code: bad_input if it has none.
func inputError(err error) error {
	if code := fault.CodeOf(err); code != fault.Internal {
		return err
	}
	return fault.Wrap(fault.BadInput, err)
}

// rowLimiter fails if one row takes too many bytes.
type rowLimiter struct {
	reader   io.Reader
	rowBytes int // bytes since the row began, with read-ahead
}

// Read reads, and counts the bytes of the row.
func (c *rowLimiter) Read(p []byte) (int, error) {
	if c.rowBytes > mostRow {
		return 0, fault.New(fault.BadInput, "a row has more than %d bytes: is a quote not closed?", mostRow)
	}
	n, err := c.reader.Read(p)
	c.rowBytes += n
	return n, err
}

// String describes the columns and their roles. It identifies a run.
func (r *Reader) String() string {
	var b strings.Builder
	for _, o := range r.variableColumns {
		fmt.Fprintf(&b, "%d:%d ", o.column, o.variable)
	}
	return fmt.Sprintf("%q %v %q %d %s", r.header, r.idColumns, r.missing, r.weightColumn, b.String())
}
