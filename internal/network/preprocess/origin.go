package preprocess

// Origins: what became of every index, from which its marginal is restored.

import "slices"

// Origin is the source of an index of the expression given.
type Origin struct {
	// Index is the index of the simplified expression that decides it; −1 when no index does,
	// either because it is independent of all that are left (Given has one row) or because nothing
	// was kept (Given and From are nil).
	Index int
	// From[v] is its value when Index has value v; nil when only probabilities are known.
	From []int
	// Given has the row P(its values | Index has value v)
	// for every v, of an index that was summed out; nil with From.
	Given []float64
}

// then returns the origin of an index with d values whose origin in another index is next. o is the
// origin of that other index, which has dNext values.
func (o Origin) then(next Origin, dNext, d int) Origin {
	if o.From != nil && next.From != nil {
		from := make([]int, len(o.From))
		for v, x := range o.From {
			from[v] = next.From[x]
		}
		return Origin{Index: o.Index, From: from}
	}

	if o.From == nil && o.Given == nil {
		return Origin{Index: -1}
	}

	rows := len(o.From)
	if o.From == nil {
		rows = len(o.Given) / dNext
	}

	// P(y | v) = Σ_x P(x | v) P(y | x), of which either may be a function.
	conditional := make([]float64, rows*d)
	for v := range rows {
		for x := range dNext {
			p := 1.0
			if o.From == nil {
				p = o.Given[v*dNext+x]
			} else if o.From[v] != x {
				continue
			}
			if p == 0 {
				continue
			}
			if next.From != nil {
				conditional[v*d+next.From[x]] += p
				continue
			}
			for y := range d {
				conditional[v*d+y] += float64(p * next.Given[x*d+y])
			}
		}
	}
	return Origin{Index: o.Index, Given: conditional}
}

// origins records what became of the indices. An index has positions, the values of it that are left;
// its values are numbered as at first.
type origins struct {
	dims   []int    // number of values at first
	values [][]int  // the value of every position
	needed []bool   // the marginal has to be found
	gone   []int    // indices that are gone, in the order in which they went
	steps  []Origin // of an index that is gone: its origin in an index that was there then, by value
}

// add records new indices.
func (r *origins) add(dims []int, needed bool) {
	first := len(r.dims)
	r.dims = append(r.dims, dims...)
	r.needed = append(r.needed, slices.Repeat([]bool{needed}, len(dims))...)
	r.values = slices.Grow(r.values, len(dims))
	r.steps = slices.Grow(r.steps, len(dims))
	for k, d := range dims {
		r.values = append(r.values, sequence(d))
		r.steps = append(r.steps, Origin{Index: first + k})
	}
}

// isGone reports whether index i is gone.
func (r *origins) isGone(i int) bool { return r.steps[i].Index != i }

// restrict records that index i keeps the positions that are alive.
func (r *origins) restrict(i int, alive []bool) {
	var values []int
	for x, v := range r.values[i] {
		if alive[x] {
			values = append(values, v)
		}
	}
	r.values[i] = values
}

// follow records that index y is gone: it has position f[x] when index x has position x.
func (r *origins) follow(y, x int, f []int) {
	from := slices.Repeat([]int{-1}, r.dims[x]) // −1 for values that are gone
	for p, v := range r.values[x] {
		from[v] = r.values[y][f[p]]
	}
	r.remove(y, Origin{Index: x, From: from})
}

// sumOut records that index i is gone: it was summed out. conditional has the row P(i | parent) over the
// positions of i for every position of the parent; one row, of P(i), if the parent is −1. It is nil if
// nothing is known.
func (r *origins) sumOut(i, parent int, conditional []float64) {
	o := Origin{Index: parent}
	rows, size := []int{0}, 1
	if parent >= 0 {
		rows, size = r.values[parent], r.dims[parent]
	}
	if conditional != nil {
		o.Given = make([]float64, size*r.dims[i])
		for p, row := range rows {
			for x, v := range r.values[i] {
				o.Given[row*r.dims[i]+v] = conditional[p*len(r.values[i])+x]
			}
		}
	}
	r.remove(i, o)
}

// remove records that index i is gone. If its marginal is needed, so is that of the index it comes from.
func (r *origins) remove(i int, o Origin) {
	if o.Index >= 0 {
		r.needed[o.Index] = r.needed[o.Index] || r.needed[i]
	}
	r.steps[i] = o
	r.gone = append(r.gone, i)
}

// resolve returns the origin of every index in those that are left: the last removed first, since an
// index goes before the one that it comes from.
func (r *origins) resolve() []Origin {
	all := make([]Origin, len(r.dims))
	for i := range all {
		all[i] = Origin{Index: i, From: slices.Clone(r.values[i])}
	}
	for _, i := range slices.Backward(r.gone) {
		all[i] = r.steps[i]
		if j := r.steps[i].Index; j >= 0 {
			all[i] = all[j].then(r.steps[i], r.dims[j], r.dims[i])
		}
	}
	return all
}

// clone copies the record.
func (r *origins) clone() origins {
	return origins{
		dims:   slices.Clone(r.dims),
		values: slices.Clone(r.values),
		needed: slices.Clone(r.needed),
		gone:   slices.Clone(r.gone),
		steps:  slices.Clone(r.steps),
	}
}
