package fit

// The cases that a model is fitted to.

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/doors/cases"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Data is a set of cases. Equal cases are stored once, with the sum of their weights.
type Data struct {
	Rows        int64          // number of rows that are cases
	Weight      float64        // weight of all rows; their number if there is no column of weights
	RowErrors   []error        // errors of the first rows that are no cases
	SkippedRows int64          // number of rows that are no cases
	variables   []int          // variables that some case observes, ascending
	distinct    []weightedCase // the different cases, in the order of their first rows
}

// weightedCase is a case with the weight of all rows that equal it.
type weightedCase struct {
	observed []cell // in the order of variables
	weight   float64
	row      int64 // the first row of it
}

// maxWrong bounds the errors of rows that are kept.
const maxWrong = 10

// cell is an observation: variable has value.
type cell struct{ variable, value int32 }

// Distinct is the number of different cases.
func (d *Data) Distinct() int { return len(d.distinct) }

// Read reads all cases. A row that is no case is left out and counted; the first maxWrong of these are kept as errors.
// It is an error if no row is a case.
func Read(ctx context.Context, in *cases.Reader) (*Data, error) {
	// Read the rows, and store equal cases once.
	data := &Data{}
	positions := map[string]int{} // of cases in data.distinct, for addCase
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		row, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := checkCase(&row, in); err != nil {
			if data.SkippedRows++; len(data.RowErrors) < maxWrong {
				data.RowErrors = append(data.RowErrors, fault.New(fault.CodeOf(err), "row %d: %w", row.Number, err))
			}
			continue
		}
		data.addCase(&row, positions)
	}

	// Something must be left to learn from.
	switch {
	case data.Rows == 0 && data.SkippedRows > 0: // so RowErrors has one
		return nil, fault.New(fault.CodeOf(data.RowErrors[0]), "none of %d rows is a case: %w", data.SkippedRows, data.RowErrors[0])
	case data.Rows == 0:
		return nil, fault.New(fault.BadInput, "there is no case: a row after the header is needed")
	case data.Weight == 0:
		return nil, fault.New(fault.BadInput, "all of %d rows have the weight 0", data.Rows)
	}
	isObserved := map[int]bool{}
	for _, row := range data.distinct {
		for _, observation := range row.observed {
			isObserved[int(observation.variable)] = true
		}
	}
	data.variables = slices.Sorted(maps.Keys(isObserved))
	return data, nil
}

// checkCase returns an error if a row is no case, or has several values or weights in one cell.
func checkCase(row *cases.Case, in *cases.Reader) error {
	if row.Err != nil || len(row.Evidence.Soft) == 0 {
		return row.Err
	}
	return fault.New(fault.BadInput,
		"line %d: variable %q has several values or weights in one cell: a model is fitted to one value or none",
		row.Line, in.Variable(row.Evidence.Soft[0].Var))
}

// addCase adds a case, or its weight to that of an equal one. positions has the index in d.distinct of each case, by
// the bytes of its observations.
func (d *Data) addCase(row *cases.Case, positions map[string]int) {
	d.Rows++
	d.Weight += row.Weight
	if row.Weight == 0 {
		return
	}

	// A case that equals an earlier one adds its weight to that.
	key := make([]byte, 0, 128)
	for _, observation := range row.Evidence.Hard {
		key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(observation.Var)), uint64(observation.Value))
	}
	if k, isKnown := positions[string(key)]; isKnown {
		d.distinct[k].weight += row.Weight
		return
	}
	observed := make([]cell, len(row.Evidence.Hard))
	for i, observation := range row.Evidence.Hard {
		observed[i] = cell{int32(observation.Var), int32(observation.Value)}
	}
	positions[string(key)] = len(d.distinct)
	d.distinct = append(d.distinct, weightedCase{observed: observed, weight: row.Weight, row: row.Number})
}

// Digest returns a digest of the cases and their weights.
func (d *Data) Digest() string {
	h := sha256.New()
	var b []byte
	for _, c := range d.distinct {
		b = binary.LittleEndian.AppendUint64(b[:0], math.Float64bits(c.weight))
		b = binary.AppendUvarint(b, uint64(len(c.observed)))
		for _, o := range c.observed {
			b = binary.AppendUvarint(binary.AppendUvarint(b, uint64(o.variable)), uint64(o.value))
		}
		h.Write(b)
	}
	return fmt.Sprintf("sha256:%s", hex.EncodeToString(h.Sum(nil)))
}

// gradientQuery returns the query for the likelihood of some cases and its gradient. Row i has case i; column k has
// variable d.variables[k], and -1 where the case does not observe it.
func (d *Data) gradientQuery(selected []weightedCase) query.Query {
	columnOf := make(map[int32]int, len(d.variables))
	for k, v := range d.variables {
		columnOf[int32(v)] = k
	}
	queryCases := &query.Cases{Variables: d.variables, Rows: make([][]int, len(selected)), Weights: make([]float64, len(selected))}
	for i, selectedCase := range selected {
		row := slices.Repeat([]int{-1}, len(d.variables))
		for _, observation := range selectedCase.observed {
			row[columnOf[observation.variable]] = int(observation.value)
		}
		queryCases.Rows[i], queryCases.Weights[i] = row, selectedCase.weight
	}
	return query.Query{Cases: queryCases, Gradients: true}
}
