// Package lower writes a base tensor network as an expression: dense tables over shared indices.
//
// A layout splits the tensors of the network into raw tables over nodes, merges nodes into indices and removes values that only zeros
// have. Build and its variants copy the raw tables of a layout into an expression.
package lower

// Build and Shape: a network as an expression, with and without its entries.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/base/arena"
	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Shape returns the hypergraph of Build's expression without making its tables. It has the same indices with the same numbers and
// dimensions, and the same edges.
//
// There are three kinds of indices. Every CP tensor has a hidden index, which legs with identity vectors share. (For cores "factors" and
// identity maps index i is variable i.) Symmetric tensors have counters. The remaining legs are indices, too. The numbering does not depend
// on weights or entries. The dimensions do: they do not count values that zeros exclude, above all those of evidence. An index with only
// one remaining value has dimension 1 and is in no edge. If the network is known to be 0, all dimensions are 1 and there are no edges.
//
// Errors: that of Network.Validate; ErrOverBudget for symmetric tensors with too many counters; that of the context.
// Cost: one pass over the tensors, more passes over tables that have zeros.
func Shape(ctx context.Context, net *btn.Network) (contractionorder.Hypergraph, error) {
	l, err := newLayout(ctx, net, form{})
	if err != nil {
		return contractionorder.Hypergraph{}, err
	}

	h := contractionorder.Hypergraph{Dims: l.indexDims(), Edges: [][]int{}}
	if l.isZero {
		return h, nil
	}

	for _, t := range l.tables {
		if l.pace.Over(tableWork) {
			return contractionorder.Hypergraph{}, l.pace.Err()
		}
		if t.isAbsorbed { // applied to another table
			continue
		}
		if scope := l.scope(t, h.Dims); len(scope) > 0 {
			h.Edges = append(h.Edges, scope)
		}
	}

	return h, nil
}

// Build returns net as an expression, whose value is Z(net).
//
//   - A dense tensor is a table. Matrices of CP tensors that meet it are applied to it (mode
//     products), as long as that does not make it larger.
//   - A CP tensor of rank r is a star: a hidden index of dimension r, a table of its weights, and a
//     matrix per leg.
//   - A symmetric tensor is a chain of counters. The state after leg ℓ is the number that the legs
//     so far have counted. States from which S goes on in the same way are merged (for parity two
//     states remain). A symmetry-CP tensor has one more index, over its terms, that all its legs and
//     the last counter share.
//
// Each table's largest entry is in [1, 2), and the powers of two are in Scale.
// Errors and cost are those of Shape.
//
// If the entries of one tensor are further apart than float64 holds, Unfit of the expression states
// it: then the zeros of the tables are right and the value is not.
func Build(ctx context.Context, net *btn.Network) (*sumproduct.Expression, error) {
	return build(ctx, net, form{})
}

// BuildWide returns net as an expression as Build does, but with every entry exactly as in the network, for package wide. Tables have
// exponents if float64 does not hold their entries. Symmetric tensors are chains of plain counters, whose states are not merged, and maps
// are tables. The numbering of the indices differs from Shape's.
func BuildWide(ctx context.Context, net *btn.Network) (*sumproduct.Expression, error) {
	return build(ctx, net, form{isWide: true})
}

// build returns net as an expression. It lays net out as raw tables in form f, and copies the entries of every raw table over values that
// are not excluded, in the sequence of the tensors. It divides a table by a power of two, so that its largest entry is in [1, 2), and
// multiplies the scale by that power. It does not do so in three cases: if the entries have exponents of their own (exp), if the layout is
// wide (it keeps every entry exactly), or if small entries would lose digits. Tables without an index become factors of the scale.
func build(ctx context.Context, net *btn.Network, f form) (*sumproduct.Expression, error) {
	l, err := newLayout(ctx, net, f)
	if err != nil {
		return nil, err
	}

	e := l.emptyExpression(net)
	if l.isZero {
		return e, nil
	}

	e.Counters = l.counterIndices()
	e.Unfit = l.unfit
	e.Tables = make([]sumproduct.Table, 0, len(l.tables))
	var slab arena.Slab[float64]
	for k, t := range l.tables {
		l.tables[k] = nil // lets the collector free one table of a large network while the next is made
		if t.isAbsorbed { // it was multiplied into another table
			continue
		}
		if l.pace.Over(tableWork + int64(len(t.data))) {
			return nil, l.pace.Err()
		}

		l.addTableTo(e, t, slab.Make)
	}
	return e, nil
}

// addTableTo adds table t over the values that are not excluded to e, divided by a power of two, as build describes. makeData makes the
// memory of its entries.
func (l *layout) addTableTo(e *sumproduct.Expression, t *rawTable, makeData func(int) []float64) {
	data := copyLiving(l, t, t.data, makeData)
	exp := livingExponents(l, t)
	mayBeScaled := exp == nil && !l.isWide && !wouldLoseDigits(data) // a wide layout keeps every entry as it is
	if mayBeScaled {
		e.Scale = e.Scale.Mul(floats.Normalise(data)) // it divides data and returns the power of two
	}

	scope := l.scope(t, e.Dims)
	if len(scope) == 0 { // a number
		e.Scale = e.Scale.Mul(firstEntry(data, exp))
		return
	}
	e.Tables = append(e.Tables, sumproduct.Table{
		Scope:   scope,
		Data:    data,
		Exp:     exp,
		Rounded: t.rounded,
	})
}

// emptyExpression returns the expression of the layout without its tables: the dimensions, the scale, the index of every variable, and
// Support. Support lists the values that are left of an index with excluded values; nil means all. The scale is 0 if the network is known
// to be 0; then Support is left empty.
func (l *layout) emptyExpression(net *btn.Network) *sumproduct.Expression {
	e := &sumproduct.Expression{
		Dims:      l.indexDims(),
		Scale:     l.scale,
		Support:   make([][]int, l.indexCount),
		Variables: make([]int, len(net.Variables)),
	}
	for i, v := range net.Variables {
		e.Variables[i] = l.indexOf[l.root(l.hiddenNode[v.Link])] // the root stands for all nodes of an index
	}
	if l.isZero {
		e.Scale = scaled.Number{}
		return e
	}
	for r, i := range l.indexOf { // r is a node; i is −1 if r is no root or if no table has its index
		if i >= 0 && !l.isComplete(r) {
			e.Support[i] = l.livingValues(r)
		}
	}
	return e
}

// counterIndices returns for every index whether it is a counter. A symmetric tensor is written as a chain of tables, leg after leg. An
// index that joins two of them is a counter if its value, what the legs so far have counted, follows from the values of the variables. The
// result is nil if no index is a counter.
func (l *layout) counterIndices() []bool {
	var isCounter []bool
	for _, node := range l.counterNodes {
		// Nodes may be merged into one index: the root of a node stands for all of them. The index is −1 if no table has it.
		if i := l.indexOf[l.root(node)]; i >= 0 {
			if isCounter == nil {
				isCounter = make([]bool, l.indexCount)
			}
			isCounter[i] = true
		}
	}
	return isCounter
}

// livingExponents returns the exponents of those entries of t whose values are not excluded, or nil if t has no exponents.
func livingExponents(l *layout, t *rawTable) []int64 {
	if t.exp == nil {
		return nil
	}
	return copyLiving(l, t, t.exp, func(n int) []int64 { return make([]int64, n) })
}

// firstEntry returns data[0]·2^exp[0], or data[0] if exp is nil.
func firstEntry(data []float64, exp []int64) scaled.Number {
	if exp == nil {
		return scaled.FromFloat(data[0])
	}
	return scaled.Make(data[0], exp[0])
}

// indexDims returns the dimension of every index: the number of its values that are not excluded, or 1 if the network is known to be 0.
// indexOf[r] is the number of the index whose nodes the root r stands for, or −1.
func (l *layout) indexDims() []int {
	dims := make([]int, l.indexCount)
	for r, i := range l.indexOf {
		switch {
		case i < 0:
		case l.isZero:
			dims[i] = 1
		case l.isComplete(r):
			dims[i] = l.dims[r]
		default:
			dims[i] = len(l.livingValues(r))
		}
	}
	return dims
}

// scope returns the indices of t with a dimension above 1, each once, in the sequence of its modes. dims has the dimensions of all
// indices. A mode of t is a node; the root of the node stands for its index. The result is memory of l.scopes.
func (l *layout) scope(t *rawTable, dims []int) []int {
	var buffer [8]int // enough for most tables, without an allocation
	scope := buffer[:0]
	for _, v := range t.nodes {
		i := l.indexOf[l.root(v)]
		if dims[i] > 1 && !slices.Contains(scope, i) {
			scope = append(scope, i)
		}
	}
	return l.scopes.Copy(scope)
}

// copyLiving returns a part of list, which has one element per entry of t: those whose entries are over living values, the values that are
// not excluded. The copy has one axis per index, in the sequence of scope; the last is the fastest. (An index with one living value is in
// no scope; its axis of length 1 does not change the sequence.) allocate makes the memory of the copy.
func copyLiving[T float64 | int64 | int](l *layout, t *rawTable, list []T, allocate func(int) []T) []T {
	if l.isPlain(t) {
		whole := allocate(len(list))
		copy(whole, list)
		return whole
	}
	grid := l.livingGrid(t) // an axis per index, with the offsets in list of its living values
	size := 1
	for _, a := range grid.axes {
		size *= len(a.offset)
	}

	living := allocate(size)
	position := make([]int, len(grid.axes))
	for k := range living {
		living[k] = list[grid.offset(position)]
		grid.advance(position)
	}
	return living
}

// isPlain reports whether the entries of t can be copied as they are: no value of its nodes is excluded, and no two of its modes are the
// same index. A root stands for all nodes of its index.
func (l *layout) isPlain(t *rawTable) bool {
	for k, node := range t.nodes {
		root := l.root(node)
		if !l.isComplete(root) {
			return false
		}
		for _, earlier := range t.nodes[:k] {
			if l.root(earlier) == root {
				return false
			}
		}
	}
	return true
}

// wouldLoseDigits reports whether small entries of data would lose digits, or become 0, if the largest were scaled into [1, 2). Such a
// table is left as it is, so that its zeros are those of the network.
func wouldLoseDigits(data []float64) bool {
	maxExponent, minExponent, _ := floats.Extent(data)
	return maxExponent > 0 && minExponent-maxExponent < floats.Lowest
}
