// Package lower writes a base tensor network as an expression: dense tables over shared indices.
package lower

// Build and Shape: a network as an expression, with and without its entries.

import (
	"context"

	"github.com/basetensor/basetensor/internal/base/arena"
	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Shape returns the hypergraph of Build's expression without making its tables:
// same indices, same numbers, same dimensions, same edges.
//
// Indices are the hidden index of every CP tensor, which legs with identity vectors share (for
// cores "factors" and identity maps index i is variable i), the counters of symmetric tensors, and
// the legs left. The numbering does not depend on weights or entries; the dimensions do: values
// excluded by zeros (evidence above all) are not counted, and an index that is left with one value
// has dimension 1 and is in no edge. A network known to be 0 has dimensions 1 and no edges.
//
// Errors: from Network.Validate; ErrOverBudget for symmetric tensors whose counters cannot
// be written down; the context's. Cost: one pass over the tensors, more over those that
// have zeros.
func Shape(ctx context.Context, net *btn.Network) (contractionorder.Hypergraph, error) {
	l, err := lay(ctx, net, false, nil)
	if err != nil {
		return contractionorder.Hypergraph{}, err
	}

	h := contractionorder.Hypergraph{Dims: l.indexDims(), Edges: [][]int{}}
	if l.zero {
		return h, nil
	}

	for _, t := range l.tables {
		if l.pace.Over(tableWork) {
			return contractionorder.Hypergraph{}, l.pace.Err()
		}
		if !t.gone {
			if scope := l.scope(t, h.Dims); len(scope) > 0 {
				h.Edges = append(h.Edges, scope)
			}
		}
	}

	return h, nil
}

// Build returns net as an expression, Z(net) = its value.
//
//   - A dense tensor is a table. Matrices of CP tensors that meet it are applied to it (mode
//     products), as long as that does not make it larger.
//   - A CP tensor of rank r is a star: a hidden index of dimension r, its weights, a matrix per
//     leg.
//   - A symmetric tensor is a chain of counters: the state after leg ℓ is the number that the legs so far have
//     counted, states from which S goes on in the same way being one (two for parity). A
//     symmetry-CP tensor has one more index, over its terms, that all its legs and the last counter
//     share.
//
// Each table's largest entry is in [1, 2), the powers of two are in Scale.
// Errors and cost as for Shape.
//
// Where an entry relative to others of its tensor is beyond float64, Unfit says so:
// the pattern of zeros is right and the value is not.
func Build(ctx context.Context, net *btn.Network) (*sumproduct.Expression, error) {
	return build(ctx, net, false, nil)
}

// BuildWide is Build with every entry as it is: tables have exponents where that takes some,
// symmetric tensors are chains of plain counters, whose states are not joined, and maps are tables
// of their own. It is for package wide; the numbering of its indices differs from Shape's.
func BuildWide(ctx context.Context, net *btn.Network) (*sumproduct.Expression, error) {
	return build(ctx, net, true, nil)
}

// build writes the tables of a layout in the order of the tensors: the living entries of
// each, the largest scaled into [1, 2) where every entry survives that.
func build(ctx context.Context, net *btn.Network, wide bool, c *chains) (*sumproduct.Expression, error) {
	l, err := lay(ctx, net, wide, c)
	if err != nil {
		return nil, err
	}

	e := expression(l, net)
	if l.zero {
		return e, nil
	}

	for _, v := range l.counters {
		if i := l.number[l.find(v)]; i >= 0 {
			if e.Counters == nil {
				e.Counters = make([]bool, l.count)
			}
			e.Counters[i] = true
		}
	}

	e.Unfit = l.unfit
	e.Tables = make([]sumproduct.Table, 0, len(l.tables))
	var slab arena.Slab[float64]
	for k, t := range l.tables {
		l.tables[k] = nil // of a large network the collector takes one while the next is made
		if t.gone {
			continue
		}
		if l.pace.Over(tableWork + int64(len(t.data))) {
			return nil, l.pace.Err()
		}

		data := restrict(l, t, t.data, slab.Make)
		exp := exponents(l, t)
		if exp == nil && !wide && !loses(data) {
			e.Scale = e.Scale.Mul(floats.Normalise(data))
		}

		scope := l.scope(t, e.Dims)
		switch {
		case len(scope) > 0:
			e.Tables = append(e.Tables, sumproduct.Table{
				Scope:   scope,
				Data:    data,
				Exp:     exp,
				Rounded: t.rounded,
			})
		default:
			e.Scale = e.Scale.Mul(first(data, exp))
		}
	}
	return e, nil
}

// expression is the expression of a layout without its tables.
func expression(l *layout, net *btn.Network) *sumproduct.Expression {
	e := &sumproduct.Expression{
		Dims:      l.indexDims(),
		Scale:     l.scale,
		Support:   make([][]int, l.count),
		Variables: make([]int, len(net.Variables)),
	}
	for i, v := range net.Variables {
		e.Variables[i] = l.number[l.find(l.hidden[v.Link])]
	}
	if l.zero {
		e.Scale = scaled.Number{}
		return e
	}
	for v, i := range l.number {
		if i >= 0 && !l.whole(v) {
			e.Support[i] = l.values(v)
		}
	}
	return e
}

// exponents are those of the living entries of a table, nil for a table without.
func exponents(l *layout, t *raw) []int64 {
	if t.exp == nil {
		return nil
	}
	return restrict(l, t, t.exp, func(n int) []int64 { return make([]int64, n) })
}

// first is the first entry of a table.
func first(data []float64, exp []int64) scaled.Number {
	if exp == nil {
		return scaled.FromFloat(data[0])
	}
	return scaled.Make(data[0], exp[0])
}

// indexDims returns the dimension of every index: the number of values alive.
func (l *layout) indexDims() []int {
	dims := make([]int, l.count)
	for v, i := range l.number {
		switch {
		case i < 0:
		case l.zero:
			dims[i] = 1
		case l.whole(v):
			dims[i] = l.dims[v]
		default:
			dims[i] = len(l.values(v))
		}
	}
	return dims
}

// scope returns the indices of dimension above 1 of t, each once.
func (l *layout) scope(t *raw, dims []int) []int {
	var few [8]int
	scope := few[:0]
next:
	for _, v := range t.nodes {
		i := l.number[l.find(v)]
		for _, s := range scope {
			if s == i {
				continue next
			}
		}
		if dims[i] > 1 {
			scope = append(scope, i)
		}
	}
	return l.scopes.Copy(scope)
}

// restrict copies the living part of a list over the entries of t, axes in
// the sequence of scope, into memory from room.
func restrict[T float64 | int64 | int](l *layout, t *raw, list []T, room func(int) []T) []T {
	if l.plain(t) {
		out := room(len(list))
		copy(out, list)
		return out
	}
	g := l.gather(t)
	size := 1
	for _, a := range g.axes {
		size *= len(a.offset)
	}

	out := room(size)
	x := make([]int, len(g.axes))

	for k := range out {
		at := 0
		for a, i := range x {
			at += g.axes[a].offset[i]
		}
		out[k] = list[at]
		for a := len(x) - 1; a >= 0; a-- {
			if x[a]++; x[a] < len(g.axes[a].offset) {
				break
			}
			x[a] = 0
		}
	}
	return out
}

// plain reports whether all of t is alive and its modes are different indices.
func (l *layout) plain(t *raw) bool {
	for k, v := range t.nodes {
		r := l.find(v)
		if !l.whole(r) {
			return false
		}
		for _, w := range t.nodes[:k] {
			if l.find(w) == r {
				return false
			}
		}
	}
	return true
}

// loses says whether normalising would take digits from small entries:
// such a table stays as it is, so that its zeros are the network's.
func loses(data []float64) bool {
	top, low, _ := floats.Extent(data)
	return top > 0 && low-top < floats.Lowest
}
