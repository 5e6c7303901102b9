package gradients

// Slices of an expression: some indices fixed to one value each.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// slicing is an expression with indices that its slices fix.
type slicing struct {
	whole     *sumproduct.Expression
	dims      []int   // of whole
	sliced    []int   // indices that slices fix
	isSliced  []bool  // by index
	sliceDims []int   // dimensions of a slice: 1 for the sliced indices
	scopes    [][]int // by table: its scope in a slice
	// offsets is, by table, the index in the whole table of each entry in a slice, relative to the slice's first entry. nil: a slice has
	// the whole table.
	offsets [][]int
	strides [][]int // by table: the strides of the sliced indices
}

// newSlicing returns the slices of p.floats in which the given indices are fixed. A slice has the same tables without these indices. By
// table: scopes has what remains of the scope; strides has the strides of the sliced indices in the whole table; offsets has, for each
// entry of a slice, how far it is behind the slice's first entry in the whole table, and is nil for a table without sliced indices.
func (p *Prepared) newSlicing(sliced []int) *slicing {
	e := p.floats
	c := &slicing{
		whole:     e,
		dims:      e.Dims,
		sliced:    sliced,
		isSliced:  make([]bool, len(e.Dims)),
		sliceDims: slices.Clone(e.Dims),
		scopes:    make([][]int, len(e.Tables)),
		offsets:   make([][]int, len(e.Tables)),
		strides:   make([][]int, len(e.Tables)),
	}
	for _, i := range sliced {
		c.isSliced[i] = true
		c.sliceDims[i] = 1
	}

	// By table: what a slice has of it.
	stride := make([]int, len(e.Dims)) // of each index in the present table; 0: it is not in the scope
	for t, table := range e.Tables {
		c.scopes[t] = table.Scope
		if len(sliced) == 0 {
			continue
		}
		sumproduct.Strides(stride, e.Dims, table.Scope)
		c.strides[t] = make([]int, len(sliced))
		for k, i := range sliced {
			c.strides[t][k] = stride[i]
		}
		c.scopes[t] = slices.DeleteFunc(slices.Clone(table.Scope), func(i int) bool { return c.isSliced[i] })
		if len(c.scopes[t]) < len(table.Scope) {
			c.offsets[t] = sumproduct.Offsets[int](nil, e.Dims, c.scopes[t], stride)
		}
		for _, i := range table.Scope {
			stride[i] = 0
		}
	}
	return c
}

// valueIn returns the value that an index is fixed to in the slice with the given number. It returns 0 for an index that is not sliced. The
// values of the sliced indices are the digits of the number, the last index fastest.
func (c *slicing) valueIn(number int64, index int) int {
	for k := len(c.sliced) - 1; k >= 0; k-- {
		d := int64(c.dims[c.sliced[k]])
		if c.sliced[k] == index {
			return int(number % d)
		}
		number /= d
	}
	return 0
}

// slice returns the slice with the given number as an expression, and by table the index of the slice's first entry in the whole table
// (nil: 0 for each). Entry k of a slice of table t is offsets[t][k] behind its first entry; offsets[t] is nil for a table without sliced
// indices.
func (c *slicing) slice(number int64) (e *sumproduct.Expression, firstEntries []int) {
	if len(c.sliced) == 0 {
		return c.whole, nil
	}
	out := *c.whole
	out.Dims = c.sliceDims
	out.Tables = make([]sumproduct.Table, len(c.whole.Tables))
	firstEntries = make([]int, len(c.whole.Tables))
	for t, table := range c.whole.Tables {
		for k, i := range c.sliced {
			firstEntries[t] += c.strides[t][k] * c.valueIn(number, i)
		}
		data := table.Data
		if c.offsets[t] != nil {
			data = make([]float64, len(c.offsets[t]))
			for k, offset := range c.offsets[t] {
				data[k] = table.Data[firstEntries[t]+offset]
			}
		}
		out.Tables[t] = sumproduct.Table{Scope: c.scopes[t], Data: data}
	}
	return &out, firstEntries
}

// observed returns e, which is slice number, with the observation that an index has a value: with a table that is 1 there and 0
// elsewhere. It returns nil if the slice fixes the index to another value, or if value is −1, which stands for a value that evidence
// excludes.
func (c *slicing) observed(e *sumproduct.Expression, number int64, index, value int) *sumproduct.Expression {
	isFixed := c.isSliced != nil && c.isSliced[index]
	if value < 0 || isFixed && c.valueIn(number, index) != value {
		return nil
	}
	out := *e
	out.Tables = slices.Clone(e.Tables)
	if e.Dims[index] > 1 {
		indicator := make([]float64, e.Dims[index])
		indicator[value] = 1
		out.Tables = append(out.Tables, sumproduct.Table{Scope: []int{index}, Data: indicator})
	}
	return &out
}
