// Package cases answers a CSV file row by row: every row is a case with its observations, and gets a row of posteriors. The rows
// go through a pipeline in jobs of fifty, many at a time, and leave in the order in which they came; memory does not grow with them.
package cases

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
)

// mostRow bounds the bytes of one row: a quote that is not closed must not read a whole file into memory.
const mostRow = 16 << 20

// Case is one row of the input.
type Case struct {
	Number   int64    // of the row, from 1, without the header
	IDs      []string // cells that are carried over
	Evidence factorgraph.Evidence
	Err      error // why the row cannot be asked
}

// Columns says which columns are no variables. Columns without a name are carried over.
type Columns struct {
	IDs    []string // carried over
	Ignore []string // left out
}

// Reader reads cases.
type Reader struct {
	labels  *factorgraph.Labels
	in      *csv.Reader
	bytes   *counter
	header  []string
	ids     []int      // columns that are carried over
	observe []observed // columns of variables, by variable
	rows    int64
}

// observed is a column of a variable.
type observed struct{ column, variable int }

// NewReader reads the header. A column is a variable's by its name or position, unless columns says that it is none. Errors carry
// bad_input and name the column.
func NewReader(r io.Reader, labels *factorgraph.Labels, columns Columns) (*Reader, error) {
	limited := &counter{r: r}
	buffered := bufio.NewReader(limited)
	if mark, _ := buffered.Peek(3); bytes.Equal(mark, []byte("\ufeff")) {
		buffered.Discard(3)
	}
	in := &Reader{labels: labels, in: csv.NewReader(buffered), bytes: limited}
	in.in.FieldsPerRecord = -1
	in.in.ReuseRecord = true
	header, err := in.in.Read()
	if err == io.EOF {
		return nil, fault.New(fault.BadInput, "there is no header: a row of the variables' names is needed")
	}
	if err != nil {
		return nil, inputError(err)
	}
	if err := in.assign(header, columns); err != nil {
		return nil, err
	}
	return in, nil
}

// assign decides the role of every column.
func (r *Reader) assign(header []string, columns Columns) error {
	of := map[int]int{} // column of a variable
	named := map[string]bool{}
	for c, name := range header {
		name = strings.TrimSpace(name)
		r.header = append(r.header, name)
		if slices.Contains(columns.IDs, name) && slices.Contains(columns.Ignore, name) {
			return fault.New(fault.BadInput, "column %q cannot be both carried over and left out", name)
		}
		if slices.Contains(columns.IDs, name) || slices.Contains(columns.Ignore, name) || name == "" {
			if named[name] && name != "" {
				return fault.New(fault.BadInput, "two columns are called %q", name)
			}
			named[name] = true
			if !slices.Contains(columns.Ignore, name) {
				r.ids = append(r.ids, c)
			}
			continue
		}
		v, err := r.labels.Variable(name)
		if err != nil {
			return fault.New(fault.BadInput, "column %d: %w; --id carries a column over, --ignore leaves it out", c+1, err)
		}
		if first, twice := of[v]; twice {
			return fault.New(fault.BadInput, "columns %d and %d are both variable %q", first+1, c+1, r.labels.OfVariable(v))
		}
		of[v] = c
		r.observe = append(r.observe, observed{c, v})
	}
	for _, name := range slices.Concat(columns.IDs, columns.Ignore) {
		if !named[name] {
			return fault.New(fault.BadInput, "there is no column called %q", name)
		}
	}
	slices.SortFunc(r.observe, func(a, b observed) int { return cmp.Compare(a.variable, b.variable) })
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

// Next returns the next case, io.EOF after the last. An error in one row is in its Err; the error returned ends the file.
func (r *Reader) Next() (Case, error) {
	r.bytes.since = 0
	record, err := r.in.Read()
	if err == io.EOF {
		return Case{}, io.EOF
	}
	r.rows++
	c := Case{Number: r.rows, IDs: make([]string, len(r.ids))}
	var parse *csv.ParseError
	switch {
	case errors.As(err, &parse):
		at := fmt.Sprintf("line %d", parse.StartLine)
		if parse.Line != parse.StartLine {
			at = fmt.Sprintf("lines %d to %d", parse.StartLine, parse.Line)
		}
		c.Err = fault.New(fault.BadInput, "%s: %w", at, parse.Err)
		return c, nil
	case err != nil:
		return c, inputError(err)
	}
	for i, column := range r.ids {
		if column < len(record) {
			c.IDs[i] = record[column]
		}
	}
	if len(record) != len(r.header) {
		line, _ := r.in.FieldPos(0)
		c.Err = fault.New(fault.BadInput, "line %d: %d cells, the header has %d", line, len(record), len(r.header))
		return c, nil
	}
	for _, o := range r.observe {
		cell := strings.TrimSpace(record[o.column])
		if cell == "" {
			continue
		}
		x, err := r.labels.Value(o.variable, cell)
		if err != nil {
			line, _ := r.in.FieldPos(o.column)
			c.Err = fault.New(fault.BadInput, "line %d: %w", line, err)
			return c, nil
		}
		c.Evidence.Hard = append(c.Evidence.Hard, factorgraph.Observation{Var: o.variable, Value: x})
	}
	return c, nil
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
	return fmt.Sprintf("%q %v %s", r.header, r.ids, b.String())
}
