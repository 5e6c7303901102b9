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

// Write writes m so that Read returns it again: every number with the digits that identify it, factors in
// order. Factors that are not tables are written as tables of at most 2^20 entries; a larger one is
// fault.Unsupported. Models that Read would refuse (negative entries, a factor of zeros) are ErrModel; names
// are not part of the format.
func Write(w io.Writer, m *factorgraph.Model) error {
	if err := m.Validate(); err != nil {
		return fmt.Errorf("uai: %w", err)
	}
	tables := make([]*tensor.Dense, len(m.Factors))
	for j, f := range m.Factors {
		t, err := writable(j, f.Table)
		if err != nil {
			return err
		}
		tables[j] = t
	}
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

// writable returns factor j as a table that Read accepts.
func writable(j int, t tensor.Tensor) (*tensor.Dense, error) {
	d, ok := t.(*tensor.Dense)
	if !ok {
		var err error
		if d, err = tensor.ToDense(t, maxWritten); err != nil {
			return nil, fault.New(fault.Unsupported, "uai: factor %d: the format holds tables only: %w", j, err)
		}
	}
	zero := true
	for i, v := range d.Data {
		if v < 0 {
			return nil, fault.New(fault.BadInput,
				"uai: %w: factor %d: entry %d is %v, a probability model needs at least 0", ErrModel, j, i, v)
		}
		zero = zero && v == 0
	}
	if zero {
		return nil, fault.New(fault.BadInput, "uai: %w: factor %d: all entries are 0", ErrModel, j)
	}
	return d, nil
}

// writeInts writes the list on one line.
func writeInts(b *bufio.Writer, list []int) {
	for i, v := range list {
		if i > 0 {
			_ = b.WriteByte(' ')
		}
		_, _ = b.Write(strconv.AppendInt(b.AvailableBuffer(), int64(v), 10))
	}
	_ = b.WriteByte('\n')
}

// writeTable writes the length and the entries, one row of the last variable a line.
func writeTable(b *bufio.Writer, t *tensor.Dense) {
	row := 1
	if n := len(t.Shape); n > 0 {
		row = t.Shape[n-1]
	}
	fmt.Fprintf(b, "\n%d\n", len(t.Data))
	for i, v := range t.Data {
		_, _ = b.Write(decimal.Append(b.AvailableBuffer(), v))
		if (i+1)%row == 0 {
			_ = b.WriteByte('\n')
		} else {
			_ = b.WriteByte(' ')
		}
	}
}
