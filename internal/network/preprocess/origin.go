package preprocess

// Origins: what became of every index, from which its marginal is restored.

import "slices"

// Origin tells from which index of the simplified expression the value or the distribution of an index of the given expression follows.
type Origin struct {
	// Index is the index of the simplified expression that decides it; −1 when no index does,
	// either because it is independent of all that are left (Conditional has one row) or because nothing
	// was kept (Conditional and ValueOf are nil).
	Index int
	// ValueOf[v] is its value when Index has value v; nil when only probabilities are known.
	ValueOf []int
	// Conditional has the row P(its values | Index has value v)
	// for every v, of an index that was summed out; nil with ValueOf.
	Conditional []float64
}

// compose returns the origin of an index Y in an index V, given o, the origin of an index X in V, and next, the origin of Y in X:
//
//	P(y | v) = Σ_x P(x | v) P(y | x)
//
// X has dimX values and Y has dimY. An origin is a function, x = ValueOf[v], or a matrix of probabilities, P(x | v) = Conditional[v*dimX +
// x], or unknown, with neither list. The result is a function if o and next are functions, and otherwise a matrix. It is unknown, without
// an index (−1), if o is unknown; next is known.
func (o Origin) compose(next Origin, dimX, dimY int) Origin {
	if o.ValueOf != nil && next.ValueOf != nil {
		valueOf := make([]int, len(o.ValueOf))
		for v, x := range o.ValueOf {
			valueOf[v] = next.ValueOf[x]
		}
		return Origin{Index: o.Index, ValueOf: valueOf}
	}

	isUnknown := o.ValueOf == nil && o.Conditional == nil
	if isUnknown {
		return Origin{Index: -1}
	}

	dimV := len(o.ValueOf)
	if o.ValueOf == nil {
		dimV = len(o.Conditional) / dimX
	}
	conditional := make([]float64, dimV*dimY)
	for v := range dimV {
		row := conditional[v*dimY : (v+1)*dimY] // P(y | v)
		if o.ValueOf != nil {
			next.addRow(row, o.ValueOf[v], 1)
			continue
		}
		for x := range dimX {
			next.addRow(row, x, o.Conditional[v*dimX+x])
		}
	}
	return Origin{Index: o.Index, Conditional: conditional}
}

// addRow adds p · P(y | x) to row[y] for every value y, where o is the origin of Y in X.
func (o Origin) addRow(row []float64, x int, p float64) {
	switch {
	case p == 0: // nothing to add
	case o.ValueOf != nil: // P(y | x) is 1 for one value y
		row[o.ValueOf[x]] += p
	default:
		for y := range row {
			row[y] += float64(p * o.Conditional[x*len(row)+y])
		}
	}
}

// origins records what became of the indices, for restoring their marginals. All lists are by index. The values of an index are numbered as
// in the given expression. A position is the number of a value among those that are left: values[i][position] is the value.
type origins struct {
	dims        []int    // number of values in the given expression
	values      [][]int  // the values that are left, ascending
	isNeeded    []bool   // the marginal has to be found
	goneIndices []int    // the indices that were removed, in sequence
	origin      []Origin // of a removed index: its origin in an index that existed then, by values; of another: itself
}

// addIndices records new indices of the given dimensions. Each comes from nothing else: it has itself as its origin and all of its values.
// isNeeded is true if the marginals of the new indices have to be found.
func (r *origins) addIndices(dims []int, isNeeded bool) {
	first := len(r.dims)
	r.dims = append(r.dims, dims...)
	r.isNeeded = append(r.isNeeded, slices.Repeat([]bool{isNeeded}, len(dims))...)
	r.values = slices.Grow(r.values, len(dims))
	r.origin = slices.Grow(r.origin, len(dims))
	for k, d := range dims {
		r.values = append(r.values, sequence(d))
		r.origin = append(r.origin, Origin{Index: first + k})
	}
}

// isGone reports whether index i was removed. The origin of an index that was not is the index itself.
func (r *origins) isGone(i int) bool { return r.origin[i].Index != i }

// recordValues records that some values of index i were removed. isAlive has, for every value that i had left before, whether it stays.
func (r *origins) recordValues(i int, isAlive []bool) {
	var values []int
	for position, value := range r.values[i] {
		if isAlive[position] {
			values = append(values, value)
		}
	}
	r.values[i] = values
}

// recordAlias records that index y was removed because index x determines it: if x has its p-th remaining value, y has its f[p]-th. The
// origin is by values of the given expression, which values lists for every index.
func (r *origins) recordAlias(y, x int, f []int) {
	valueOf := slices.Repeat([]int{-1}, r.dims[x]) // −1 for values of x that were removed
	for position, value := range r.values[x] {
		valueOf[value] = r.values[y][f[position]]
	}
	r.recordRemoval(y, Origin{Index: x, ValueOf: valueOf})
}

// recordSum records that index i was summed out. conditional has a row P(i | parent), over the remaining values of i, for every remaining
// value of the index parent. If parent is −1, it has one row, P(i). It is nil if it is not known. The record, Origin.Conditional, is over
// all values that i and parent have in the given expression; removed values have probability 0.
func (r *origins) recordSum(i, parent int, conditional []float64) {
	o := Origin{Index: parent}
	parentValues, parentDim := []int{0}, 1
	if parent >= 0 {
		parentValues, parentDim = r.values[parent], r.dims[parent]
	}
	if conditional != nil {
		o.Conditional = make([]float64, parentDim*r.dims[i])
		for p, parentValue := range parentValues {
			for x, value := range r.values[i] {
				o.Conditional[parentValue*r.dims[i]+value] = conditional[p*len(r.values[i])+x]
			}
		}
	}
	r.recordRemoval(i, o)
}

// recordRemoval records that index i was removed, with its origin in another index. If its marginal is needed, so is that of the other
// index.
func (r *origins) recordRemoval(i int, o Origin) {
	if o.Index >= 0 {
		r.isNeeded[o.Index] = r.isNeeded[o.Index] || r.isNeeded[i]
	}
	r.origin[i] = o
	r.goneIndices = append(r.goneIndices, i)
}

// resolveAll returns, for every index of the given expression, how it follows from an index that is left (or from none, −1). The recorded
// origin of a removed index may name an index that was removed later. So it goes from the index removed last to the one removed first, and
// composes each origin with that of the index that it names.
func (r *origins) resolveAll() []Origin {
	resolved := make([]Origin, len(r.dims))
	for i := range resolved {
		resolved[i] = Origin{Index: i, ValueOf: slices.Clone(r.values[i])}
	}
	for _, i := range slices.Backward(r.goneIndices) {
		resolved[i] = r.origin[i]
		if j := r.origin[i].Index; j >= 0 {
			resolved[i] = resolved[j].compose(r.origin[i], r.dims[j], r.dims[i])
		}
	}
	return resolved
}

// clone returns a copy of the record, which shares no memory with it.
func (r *origins) clone() origins {
	return origins{
		dims:        slices.Clone(r.dims),
		values:      slices.Clone(r.values),
		isNeeded:    slices.Clone(r.isNeeded),
		goneIndices: slices.Clone(r.goneIndices),
		origin:      slices.Clone(r.origin),
	}
}
