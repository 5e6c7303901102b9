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

// Data is cases; those that are equal are one, with a weight.
type Data struct {
	Rows      int64   // that are cases
	Weight    float64 // of all rows; their number if there is no column of weights
	Wrong     []error // the first rows that are no cases, with their lines
	Left      int64   // rows that are no cases
	variables []int   // that some case observes, ascending
	distinct  []distinct
}

// distinct is a case and how often it is there.
type distinct struct {
	observed []cell // in the order of variables
	weight   float64
	row      int64 // the first
}

// mostWrong bounds the errors of rows that are kept.
const mostWrong = 10

// cell is an observation.
type cell struct{ variable, value int32 }

// Distinct is the number of different cases.
func (d *Data) Distinct() int { return len(d.distinct) }

// Read reads all cases. Rows that are none are left out and counted, and the first of them are kept as errors. It is an error if there is
// no case.
func Read(ctx context.Context, in *cases.Reader) (*Data, error) {
	d := &Data{}
	place := map[string]int{}
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		c, err := in.Next()
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
		if err := usable(&c, in); err != nil {
			if d.Left++; len(d.Wrong) < mostWrong {
				d.Wrong = append(d.Wrong, fault.New(fault.CodeOf(err), "row %d: %w", c.Number, err))
			}
			continue
		}
		d.add(&c, place)
	}
	switch {
	case d.Rows == 0 && d.Left > 0:
		return nil, fault.New(fault.CodeOf(d.Wrong[0]), "none of %d rows is a case: %w", d.Left, d.Wrong[0])
	case d.Rows == 0:
		return nil, fault.New(fault.BadInput, "there is no case: a row after the header is needed")
	case d.Weight == 0:
		return nil, fault.New(fault.BadInput, "all of %d rows have the weight 0", d.Rows)
	}
	isObserved := map[int]bool{}
	for _, c := range d.distinct {
		for _, o := range c.observed {
			isObserved[int(o.variable)] = true
		}
	}
	d.variables = slices.Sorted(maps.Keys(isObserved))
	return d, nil
}

// usable returns an error unless a case has a value or none in every cell.
func usable(c *cases.Case, in *cases.Reader) error {
	if c.Err != nil || len(c.Evidence.Soft) == 0 {
		return c.Err
	}
	return fault.New(fault.BadInput,
		"line %d: variable %q has several values or weights in one cell: a model is fitted to one value or none",
		c.Line, in.Variable(c.Evidence.Soft[0].Var))
}

// add adds a case. place has the positions of the distinct ones.
func (d *Data) add(c *cases.Case, place map[string]int) {
	d.Rows++
	d.Weight += c.Weight
	if c.Weight == 0 {
		return
	}
	key := make([]byte, 0, 128)
	for _, o := range c.Evidence.Hard {
		key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(o.Var)), uint64(o.Value))
	}
	if k, isKnown := place[string(key)]; isKnown {
		d.distinct[k].weight += c.Weight
		return
	}
	observed := make([]cell, len(c.Evidence.Hard))
	for i, o := range c.Evidence.Hard {
		observed[i] = cell{int32(o.Var), int32(o.Value)}
	}
	place[string(key)] = len(d.distinct)
	d.distinct = append(d.distinct, distinct{observed: observed, weight: c.Weight, row: c.Number})
}

// Digest identifies the cases.
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

// query returns the question for the gradients of some cases.
func (d *Data) query(some []distinct) query.Query {
	column := make(map[int32]int, len(d.variables))
	for k, v := range d.variables {
		column[int32(v)] = k
	}
	c := &query.Cases{Variables: d.variables, Rows: make([][]int, len(some)), Weights: make([]float64, len(some))}
	for i, each := range some {
		row := slices.Repeat([]int{-1}, len(d.variables))
		for _, o := range each.observed {
			row[column[o.variable]] = int(o.value)
		}
		c.Rows[i], c.Weights[i] = row, each.weight
	}
	return query.Query{Cases: c, Gradients: true}
}
