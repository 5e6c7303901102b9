package gradients

// Slices of an expression: some indices fixed to one value each.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// cutting is an expression with indices that slices fix.
type cutting struct {
	of      *sumproduct.Expression
	dims    []int // of the whole
	sliced  []int
	fixed   []bool  // by index
	left    []int   // dimensions of a slice
	scopes  [][]int // by table, of a slice
	offsets [][]int // by table: where its entries in a slice are, from the slice's first; nil: as they are
	strides [][]int // by table: of the sliced indices
}

// cut prepares slices over some indices.
func (p *Prepared) cut(sliced []int) *cutting {
	e := p.floats
	c := &cutting{
		of:      e,
		dims:    e.Dims,
		sliced:  sliced,
		fixed:   make([]bool, len(e.Dims)),
		left:    slices.Clone(e.Dims),
		scopes:  make([][]int, len(e.Tables)),
		offsets: make([][]int, len(e.Tables)),
		strides: make([][]int, len(e.Tables)),
	}
	for _, i := range sliced {
		c.fixed[i] = true
		c.left[i] = 1
	}
	stride := make([]int, len(e.Dims))
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
		c.scopes[t] = slices.DeleteFunc(slices.Clone(table.Scope), func(i int) bool { return c.fixed[i] })
		if len(c.scopes[t]) < len(table.Scope) {
			c.offsets[t] = sumproduct.Offsets[int](nil, e.Dims, c.scopes[t], stride)
		}
		for _, i := range table.Scope {
			stride[i] = 0
		}
	}
	return c
}

// digit is the value that slice s fixes an index to.
func (c *cutting) digit(s int64, index int) int {
	for k := len(c.sliced) - 1; k >= 0; k-- {
		d := int64(c.dims[c.sliced[k]])
		if c.sliced[k] == index {
			return int(s % d)
		}
		s /= d
	}
	return 0
}

// at returns slice s, and by table where it begins.
func (c *cutting) at(s int64) (*sumproduct.Expression, []int) {
	if len(c.sliced) == 0 {
		return c.of, nil
	}
	out := *c.of
	out.Dims = c.left
	out.Tables = make([]sumproduct.Table, len(c.of.Tables))
	base := make([]int, len(c.of.Tables))
	for t, table := range c.of.Tables {
		for k, i := range c.sliced {
			base[t] += c.strides[t][k] * c.digit(s, i)
		}
		data := table.Data
		if c.offsets[t] != nil {
			data = make([]float64, len(c.offsets[t]))
			for k, at := range c.offsets[t] {
				data[k] = table.Data[base[t]+at]
			}
		}
		out.Tables[t] = sumproduct.Table{Scope: c.scopes[t], Data: data}
	}
	return &out, base
}

// observed adds to slice s that an index has its value number at; nil where the slice excludes it.
func (c *cutting) observed(e *sumproduct.Expression, s int64, index, at int) *sumproduct.Expression {
	here := c.fixed != nil && c.fixed[index]
	if at < 0 || here && c.digit(s, index) != at {
		return nil
	}
	out := *e
	out.Tables = slices.Clone(e.Tables)
	if e.Dims[index] > 1 {
		one := make([]float64, e.Dims[index])
		one[at] = 1
		out.Tables = append(out.Tables, sumproduct.Table{Scope: []int{index}, Data: one})
	}
	return &out
}
