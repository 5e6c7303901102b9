package fit

// The cases that a model is fitted to.

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/people/cases"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Data is cases; those that are equal are one, with a weight.
type Data struct {
	Rows      int64
	variables []int // that some case observes, ascending
	distinct  []distinct
}

// distinct is a case and how often it is there.
type distinct struct {
	observed []cell // in the order of variables
	weight   float64
	row      int64 // the first
}

// cell is an observation.
type cell struct{ variable, value int32 }

// Distinct is the number of different cases.
func (d *Data) Distinct() int { return len(d.distinct) }

// Read reads all cases. Its error names the row that is wrong.
func Read(in *cases.Reader) (*Data, error) {
	d := &Data{}
	place := map[string]int{}
	isObserved := map[int]bool{}
	var key []byte
	for {
		c, err := in.Next()
		if err == io.EOF {
			break
		}
		if err == nil && c.Err != nil {
			err = fault.New(fault.CodeOf(c.Err), "row %d: %w", c.Number, c.Err)
		}
		if err != nil {
			return nil, err
		}
		d.Rows++
		key = key[:0]
		var observed []cell
		for _, o := range c.Evidence.Hard {
			key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(o.Var)), uint64(o.Value))
			observed = append(observed, cell{int32(o.Var), int32(o.Value)})
			isObserved[o.Var] = true
		}
		if k, known := place[string(key)]; known {
			d.distinct[k].weight++
			continue
		}
		place[string(key)] = len(d.distinct)
		d.distinct = append(d.distinct, distinct{observed: observed, weight: 1, row: c.Number})
	}
	if d.Rows == 0 {
		return nil, fault.New(fault.BadInput, "there is no case: a row after the header is needed")
	}
	for v := range isObserved {
		d.variables = append(d.variables, v)
	}
	slices.Sort(d.variables)
	return d, nil
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
