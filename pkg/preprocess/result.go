package preprocess

// The result: what is left, where everything went, and what hangs together.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/einsum"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// result makes the expression of what is left.
func (w *work) result(e *einsum.Expression) *Result {
	r := &Result{Report: w.report, dims: e.Dims}
	out := &einsum.Expression{Dims: w.dims, Scale: w.scale, Support: make([][]int, len(w.dims))}
	if w.zero != nil {
		r.Report.Zero = w.zero
		out.Scale = scaled.Number{}
		out.Dims = slices.Repeat([]int{1}, len(w.dims))
	} else {
		for _, t := range w.tables {
			if !t.gone {
				out.Tables = append(out.Tables, einsum.Table{Scope: t.scope, Data: t.data})
			}
		}
	}
	for i := range e.Dims {
		out.Support[i] = w.supportOf(e, i)
		r.Origin = append(r.Origin, w.origin(i))
	}
	r.Expression = out
	r.Parts = Parts(out)
	r.Report.After = countExpression(out)
	r.Report.Parts = len(r.Parts)
	return r
}

// supportOf returns the values of index i that are left, as the network numbers them; nil for all.
func (w *work) supportOf(e *einsum.Expression, i int) []int {
	var before []int
	if i < len(e.Support) {
		before = e.Support[i]
	}
	if w.zero != nil || w.dims[i] == e.Dims[i] || w.alias[i].into != itself {
		return before
	}
	out := make([]int, 0, w.dims[i])
	for _, v := range w.values[i] {
		if before != nil {
			v = before[v]
		}
		out = append(out, v)
	}
	return out
}

// origin follows the aliases of index i to an index that is left.
func (w *work) origin(i int) Origin {
	j := i
	var path []int
	for w.alias[j].into >= 0 {
		path = append(path, j)
		j = w.alias[j].into
	}
	if w.alias[j].into == summed || w.zero != nil {
		return Origin{Index: -1}
	}
	o := Origin{Index: j, From: slices.Clone(w.values[j])}
	for k := len(path) - 1; k >= 0; k-- {
		for v, x := range o.From {
			o.From[v] = w.alias[path[k]].of[x]
		}
	}
	return o
}

// Parts lists the tables of e by connected component, components in the order of their first tables, tables
// ascending. Tables without indices are parts of their own. Linear time.
func Parts(e *einsum.Expression) [][]int {
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
