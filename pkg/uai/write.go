// Writing a model.

package uai

import (
	"bufio"
	"fmt"
	"io"
	"strconv"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// maxWritten bounds the table that a CP or symmetric factor is written out as: the format holds tables only.
const maxWritten = 1 << 20

// Write writes m such that Read returns it again: factors in their order, and every number with the digits that
// identify it. Factors that are not tables are written as tables of at most 2^20 entries; a larger one is
// fault.Unsupported. A model that Read would refuse, with negative entries or a factor of zeros, is ErrModel. Names are
// not part of the format.
func Write(w io.Writer, m *factorgraph.Model) error {
	if err := m.Validate(); err != nil {
		return fmt.Errorf("uai: %w", err)
	}

	// all factors as tables
	tables := make([]*tensor.Dense, len(m.Factors))
	for j, f := range m.Factors {
		t, err := asTable(j, f.Table)
		if err != nil {
			return err
		}
		tables[j] = t
	}

	// the header, the scopes and the tables
	b := bufio.NewWriter(w)
	kind := "MARKOV"
	if m.Bayes {
		kind = "BAYES"
	}
	fmt.Fprintf(b, "%s\n%d\n", kind, len(m.Domains))
	writeInts(b, m.Domains)
	fmt.Fprintln(b, len(m.Factors))
	for _, f := range m.Factors {
		if len(f.Scope) == 0 {
			fmt.Fprintln(b, 0)
			continue
		}
		fmt.Fprintf(b, "%d ", len(f.Scope))
		writeInts(b, f.Scope)
	}
	for _, t := range tables {
		writeTable(b, t)
	}
	return b.Flush()
}

// asTable returns factor j as a table that Read accepts: without negative entries, and with one that is not 0.
func asTable(j int, t tensor.Tensor) (*tensor.Dense, error) {
	d, ok := t.(*tensor.Dense)
	if !ok {
		var err error
		if d, err = tensor.ToDense(t, maxWritten); err != nil {
			return nil, fault.New(fault.Unsupported, "uai: factor %d: the format holds tables only: %w", j, err)
		}
	}
	isZero := true
	for i, v := range d.Data {
		if v < 0 {
			return nil, fault.New(fault.BadInput,
				"uai: %w: factor %d: entry %d is %v, a probability model needs at least 0", ErrModel, j, i, v)
		}
		isZero = isZero && v == 0
	}
	if isZero {
		return nil, fault.New(fault.BadInput, "uai: %w: factor %d: all entries are 0", ErrModel, j)
	}
	return d, nil
}

// writeInts writes a list on one line.
func writeInts(b *bufio.Writer, list []int) {
	for i, v := range list {
		if i > 0 {
			_ = b.WriteByte(' ') // b keeps its first error, and Flush returns it
		}
		_, _ = b.Write(strconv.AppendInt(b.AvailableBuffer(), int64(v), 10))
	}
	_ = b.WriteByte('\n')
}

// writeTable writes the length of a table and its entries, a line for each row of the last variable.
func writeTable(b *bufio.Writer, t *tensor.Dense) {
	rowLength := 1
	if n := len(t.Shape); n > 0 {
		rowLength = t.Shape[n-1]
	}
	fmt.Fprintf(b, "\n%d\n", len(t.Data))
	for i, v := range t.Data {
		_, _ = b.Write(decimal.Append(b.AvailableBuffer(), v)) // b keeps its first error, and Flush returns it
		if (i+1)%rowLength == 0 {
			_ = b.WriteByte('\n')
		} else {
			_ = b.WriteByte(' ')
		}
	}
}
