package preprocess

// The result: the simplified expression, the origins of indices, and connected parts.

import (
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// newResult returns the result for the original expression, of which e was made.
func newResult(original *sumproduct.Expression, e *expression) *Result {
	r := &Result{Report: e.report, Rounding: e.err, dims: original.Dims}
	out := &sumproduct.Expression{
		Dims:    e.dims,
		Scale:   e.scale,
		Support: make([][]int, len(e.dims)),
		Unfit:   original.Unfit,
	}
	r.Origin = e.origins.resolve()[:len(original.Dims)]

	if e.report.Zero == nil {
		for _, t := range e.tables {
			if t != nil {
				out.Tables = append(out.Tables, sumproduct.Table{Scope: t.scope, Data: t.data})
				r.Roundings = append(r.Roundings, t.err)
				r.Rounding += t.err
			}
		}
	} else {
		out.Scale = scaled.Number{}
		out.Dims = slices.Repeat([]int{1}, len(e.dims))
		for i := range r.Origin {
			r.Origin[i] = Origin{Index: -1}
		}
	}

	for i := range original.Dims {
		out.Support[i] = remaining(original, e, i)
	}

	r.Expression = out
	r.Parts = components(out)
	r.Report.After = countExpression(out)
	r.Report.Parts = len(r.Parts)
	return r
}

// remaining returns the values of index i that are left, as the network numbers them; nil for all.
func remaining(original *sumproduct.Expression, e *expression, i int) []int {
	var before []int
	if i < len(original.Support) {
		before = original.Support[i]
	}
	if e.report.Zero != nil || e.dims[i] == original.Dims[i] || e.origins.isGone(i) {
		return before
	}

	values := make([]int, 0, e.dims[i])
	for _, v := range e.origins.values[i] {
		if before != nil {
			v = before[v]
		}
		values = append(values, v)
	}
	return values
}

// Recover returns the marginal of index i of the expression given from marginals of the simplified
// expression: marginals[j] has one entry per value of index j, and is only looked at for j =
// Origin[i].Index of dimension above 1. The entries count the values of the expression given; a
// value that was removed has probability 0. It returns ErrSummedOut for an index that Options did
// not keep, and where Z is 0.
func (r *Result) Recover(i int, marginals [][]float64) ([]float64, error) {
	if i < 0 || i >= len(r.Origin) {
		return nil, fmt.Errorf("%w: no index %d, there are %d",
			sumproduct.ErrExpression, i, len(r.Origin))
	}
	o := r.Origin[i]
	d := r.dims[i]
	rows := len(o.From)
	if o.From == nil {
		rows = len(o.Given) / d
	}

	p := []float64{1}
	switch {
	case rows == 0:
		return nil, fmt.Errorf("%w: index %d", ErrSummedOut, i)
	case rows == 1:
	case o.Index >= len(marginals) || len(marginals[o.Index]) != rows:
		return nil, fmt.Errorf("%w: index %d needs a marginal of index %d with %d entries",
			sumproduct.ErrExpression, i, o.Index, rows)
	default:
		p = marginals[o.Index]
	}

	marginal := make([]float64, d)
	for v, q := range p {
		if o.From != nil {
			marginal[o.From[v]] += q
			continue
		}
		for x := range marginal {
			marginal[x] += float64(q * o.Given[v*d+x])
		}
	}
	return marginal, nil
}

// components lists the tables of e by connected component, components in the order of their first
// tables, tables ascending. Tables without indices are parts of their own. Linear time.
func components(e *sumproduct.Expression) [][]int {
	parent := sequence(len(e.Dims))
	find := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}

	for _, t := range e.Tables {
		for _, i := range t.Scope[min(1, len(t.Scope)):] {
			parent[find(i)] = find(t.Scope[0])
		}
	}

	part := map[int]int{}
	var parts [][]int
	for n, t := range e.Tables {
		p, known := len(parts), false
		if len(t.Scope) > 0 {
			root := find(t.Scope[0])
			if p, known = part[root]; !known {
				p = len(parts)
				part[root] = p
			}
		}
		if !known {
			parts = append(parts, nil)
		}
		parts[p] = append(parts[p], n)
	}
	return parts
}
