package contractionorder

// The objective of a search.

// objective prices a merge of inputs with union U and result S:
//
//	2 |U| + (write − 1) |S|,   times 2^(steep · (log2 |S| − limit)) where |S| exceeds the limit
//
// the flops, 2 |U| − |S|, and, in the same unit, the cost to write the result and read it back.
// The penalty stands for the slices a table over the limit would need: steep = 1 says that they
// multiply all the work of this merge.
type objective struct {
	write logs // log2 (write − 1)
	limit logs // log2 of the entries a table may have
	steep logs // in units of 2^−16
}

// noLimit is above the size of every table.
const noLimit = logs(1) << 60

// log returns log2 of the price.
func (o *objective) log(full, size logs) logs {
	p := logAdd(full+oneBit, size+o.write)
	if size > o.limit {
		p += (size - o.limit) * o.steep >> fraction
	}
	return p
}

// float returns the price relative to 2^base.
func (o *objective) float(full, size, base logs) float64 {
	return (2*pow2(full-base) + pow2(size+o.write-base)) * o.penalty(size)
}

// penalty is the factor for a result over the limit.
func (o *objective) penalty(size logs) float64 {
	if size <= o.limit {
		return 1
	}
	return pow2((size - o.limit) * o.steep >> fraction)
}

// total prices a tree, relative to 2^base.
func (w *working) total(o *objective, base logs) float64 {
	sum := 0.0
	for v := w.leaves(); v < len(w.left); v++ {
		sum += float64(o.float(w.full[v], w.size[v], base))
	}
	w.moves += int64(4 * len(w.left))
	return sum
}

// logTotal is log2 of total, for trees of any size.
func (w *working) logTotal(o *objective) logs {
	base := logs(0)
	for v := w.leaves(); v < len(w.left); v++ {
		base = max(base, o.log(w.full[v], w.size[v]))
	}

	base = max(base-900*oneBit, 0)
	return base + log2Float(max(w.total(o, base), 1))
}

// largest returns log2 of the largest result.
func (w *working) largest() logs {
	top := logs(0)
	for v := w.leaves(); v < len(w.left); v++ {
		top = max(top, w.size[v])
	}
	return top
}
