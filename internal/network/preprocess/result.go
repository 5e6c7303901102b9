package preprocess

// The result: the simplified expression, the origins of indices, and connected parts.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// result makes the simplified expression.
func (w *work) result(e *sumproduct.Expression) *Result {
	r := &Result{Report: w.report, dims: e.Dims, Rounding: w.err}
	out := &sumproduct.Expression{
		Dims:    w.dims,
		Scale:   w.scale,
		Support: make([][]int, len(w.dims)),
		Unfit:   e.Unfit,
	}

	if w.zero != nil {
		r.Report.Zero = w.zero
		out.Scale = scaled.Number{}
		out.Dims = slices.Repeat([]int{1}, len(w.dims))
	} else {
		for _, t := range w.tables {
			if !t.gone {
				out.Tables = append(out.Tables, sumproduct.Table{Scope: t.scope, Data: t.data})
				r.Roundings = append(r.Roundings, t.err)
				r.Rounding += t.err
			}
		}
	}

	for i := range e.Dims {
		out.Support[i] = w.supportOf(e, i)
	}

	r.Origin = w.origins.resolve()[:len(e.Dims)]
	if w.zero != nil {
		for i := range r.Origin {
			r.Origin[i] = Origin{Index: -1}
		}
	}
	r.Expression = out
	r.Parts = Parts(out)
	r.Report.After = countExpression(out)
	r.Report.Parts = len(r.Parts)
	return r
}

// supportOf returns the values of index i that are left, as the network numbers them; nil for all.
func (w *work) supportOf(e *sumproduct.Expression, i int) []int {
	var before []int
	if i < len(e.Support) {
		before = e.Support[i]
	}
	if w.zero != nil || w.dims[i] == e.Dims[i] || w.origins.isGone(i) {
		return before
	}

	out := make([]int, 0, w.dims[i])
	for _, v := range w.origins.values[i] {
		if before != nil {
			v = before[v]
		}
		out = append(out, v)
	}
	return out
}

// Parts lists the tables of e by connected component, components in the order of their first
// tables, tables ascending. Tables without indices are parts of their own. Linear time.
func Parts(e *sumproduct.Expression) [][]int {
	parent := count(len(e.Dims))
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
