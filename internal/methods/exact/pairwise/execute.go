package pairwise

// Execution of programs.

import (
	"context"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/base/arena"
	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// buffer is a live table, an adjoint or a sum of adjoints. In size its entries are at most 2^bound.
type buffer struct {
	data      []float64
	owned     bool // data is from the arena, and goes back to it
	log2Bound int
	sumproduct.Depth
	scale scaled.Number // only of adjoints: multiplier of the entries
}

// run is a contraction under way.
type run struct {
	ctx           context.Context
	shape         *shape
	threads       int
	from, to      int64    // slices
	inputs        []buffer // by leaf: the table of the expression, or a copy in range
	copiedEntries float64  // entries of those copies
	entryLimit    float64  // entries that may be live
	spareEntries  float64  // entries of the budget beyond limit, for slices at the same time

	// powers of two and scalars that have been taken out of tables
	start  scaled.Number // factors of all slices, known before any operation
	common scaled.Number // start and the factors of the operations before the slices
	scale  scaled.Number // common and the factors of the operations done in the slice

	valueScale scaled.Number // scale when the slice's value was known
	value      scaled.Number // the value of the slice is done · value

	slicedValues    []int    // by index: the value of a sliced index in this slice
	buffers         []buffer // by number, see opcode
	arena           arena.Arena
	parallelEntries int // most entries in addition, of slices computed at the same time
	merger          merger
	stats           Stats

	mergeFactor scaled.Number   // the factor taken out of the result of the last merge
	mergeLoses  bool            // the result of the last merge may lack more than its two tables
	factors     []scaled.Number // for marginals, by table: the factor taken out of it; 0 for a table of the expression as it is
	bounds      []int           // for marginals, by table: its bound

	marginals    marginals
	reads        [][]int       // by table: indices whose marginals are read there
	isUsed       []bool        // by index: a table has it
	signed       bool          // an entry is below 0
	missingBound scaled.Number // bounds the missing part of the slices' values
}

const (
	margin   = 64  // largest entries within 2^±margin are left as they are
	maxBound = 256 // from this bound on, the largest entry is looked up
	samples  = 64  // entries looked at to see that a table is not tiny
)

// measureTables finds the range of every table, and sets start to the factors that are known before any operation. Errors:
// sumproduct.ErrNotFinite.
func (r *run) measureTables(e *sumproduct.Expression) error {
	r.inputs = make([]buffer, len(e.Tables))
	r.isUsed = make([]bool, len(e.Dims))
	for t := range e.Tables {
		for _, v := range e.Tables[t].Scope {
			r.isUsed[v] = true
		}
		if err := r.measureTable(t, e.Tables[t].Data); err != nil {
			return err
		}
	}

	for v, d := range r.shape.dims {
		if !r.isUsed[v] && d > 1 {
			r.start = r.start.Mul(scaled.FromFloat(float64(d)))
		}
	}
	return nil
}

// measureTable sets raw[t] to a table. If its largest entry is beyond 2^±margin, that is a copy divided by a power of two, which goes into
// start. If all entries are 0, start becomes 0.
func (r *run) measureTable(t int, data []float64) error {
	largest, low, signed := floats.Extent(data)
	if largest >= 1024 {
		return fmt.Errorf("%w: table %d", sumproduct.ErrNotFinite, t)
	}

	r.signed = r.signed || signed

	bound := largest + 1
	if floats.LargestBits(data) == 0 {
		r.start = scaled.Number{}
		bound = 0
	} else if bound < -margin || bound > margin {
		data = append([]float64(nil), data...)
		r.copiedEntries += float64(len(data))
		r.start = r.start.Mul(floats.Normalise(data))
		low -= largest
		bound = 1
	}

	r.inputs[t] = buffer{
		data:      data,
		log2Bound: bound,
		Depth:     sumproduct.Depth{Low: min(low, 0), Measured: true},
	}
	if bound == 1 && largest > 0 && low < floats.Lowest { // divided by its largest entry
		r.inputs[t].Lose(sumproduct.Floor)
	}
	return nil
}

// sumSlices runs a program and returns the sum over its slices. It calls onSlice, unless that is nil, after every slice with its value.
func (r *run) sumSlices(p *program, onSlice func(value scaled.Number)) (scaled.Number, error) {
	s := r.shape
	r.buffers = make([]buffer, 3*len(s.scopes))
	r.slicedValues = make([]int, len(s.dims))
	r.arena.Limit = int(r.entryLimit)
	r.arena.Live = int(s.rawEntries + r.copiedEntries)
	r.arena.Peak = r.arena.Live
	r.arena.Held = r.arena.Live

	r.common = r.start
	if err := r.executeAll(p.beforeOps, &r.common); err != nil {
		return scaled.Number{}, err
	}

	r.scale = r.common
	sum, err := r.runSlices(p, onSlice)
	if err != nil {
		return scaled.Number{}, err
	}

	total := sum.total()
	r.stats.Lost = r.stats.Lost || r.isLossSignificant(total.Abs())

	if !total.IsZero() {
		scale := scaled.One
		r.valueScale = total
		r.value = scaled.One
		if err := r.executeAll(p.afterOps, &scale); err != nil {
			return scaled.Number{}, err
		}
	}

	r.stats.PeakBytes = 8 * int64(r.arena.Peak+r.parallelEntries)
	return total, nil
}

// runSlice runs the part of a program that slices differ in, and returns the value of slice n.
func (r *run) runSlice(p *program, n int64) (scaled.Number, error) {
	r.setDigits(n)
	r.scale = r.common
	r.valueScale = r.common
	r.value = scaled.One
	if err := r.executeAll(p.sliceOps, &r.scale); err != nil {
		return scaled.Number{}, err
	}

	r.stats.Slices++
	if r.scale.IsZero() {
		r.freeSlice()
		return scaled.Number{}, nil
	}
	return r.valueScale.Mul(r.value), nil
}

// setDigits sets the values of the sliced indices in slice n, the last index the fastest.
func (r *run) setDigits(n int64) {
	for i := len(r.shape.sliced) - 1; i >= 0; i-- {
		v := r.shape.sliced[i]
		d := int64(r.shape.graph.Dims[v])
		r.slicedValues[v] = int(n % d)
		n /= d
	}
}

// freeSlice frees the tables of a slice that turned out to be 0, and their adjoints. Static tables and the sums of adjoints stay.
func (r *run) freeSlice() {
	tables := len(r.shape.scopes)
	for i := range r.buffers {
		isAdjoint := i >= tables && i < 2*tables
		if !r.shape.isStatic[i%tables] || isAdjoint {
			r.free(i)
		}
	}
}

// free gives up a buffer. If it owns its entries, they go back to the arena.
func (r *run) free(i int) {
	if r.buffers[i].owned {
		r.arena.Put(r.buffers[i].data)
	}
	r.buffers[i] = buffer{}
}

// executeAll executes operations and multiplies the factors that they take out of tables into scale. It stops when scale is 0.
func (r *run) executeAll(ops []op, scale *scaled.Number) error {
	for i := range ops {
		if scale.IsZero() {
			return nil
		}
		if err := r.execute(&ops[i], scale); err != nil {
			return err
		}
	}
	return nil
}

// execute does one operation, and multiplies the factor that it takes out into scale.
func (r *run) execute(o *op, scale *scaled.Number) error {
	b := r.buffers
	switch o.code {
	case opLoad:
		if o.spec == nil {
			b[o.out] = r.inputs[o.out]
			r.recordBound(o.out)
			return nil
		}
		return r.loadLeaf(o, scale)
	case opMerge:
		return r.merge(o, scale)
	case opScale:
		r.multiplyByScalar(o, scale)
	case opMove:
		if b[o.out].data == nil {
			b[o.out] = b[o.a]
		}
		b[o.out].owned = b[o.a].owned
		b[o.a] = buffer{}
	case opFree:
		r.free(o.a)
	case opValue:
		r.value = scaled.FromFloat(b[o.a].data[0])
		r.valueScale = *scale
		if b[o.a].Lost {
			r.missingBound = r.missingBound.Add(scale.Abs().Mul(scaled.Make(1, int64(b[o.a].Off))))
		}
	default:
		return r.executeBackward(o)
	}
	return nil
}

// multiplyByScalar merges a table with a scalar: the scalar goes into scale, and the entries of the table are shared by the result.
func (r *run) multiplyByScalar(o *op, scale *scaled.Number) {
	b := r.buffers
	table, scalar := &b[o.a], &b[o.b]
	*scale = scale.Mul(scaled.FromFloat(scalar.data[0]))
	b[o.out] = buffer{data: table.data, log2Bound: table.log2Bound, Depth: table.Depth}
	switch {
	case scalar.Lost && scalar.data[0] == 0:
		r.stats.Lost = true
	case scalar.Lost:
		b[o.out].Lose(scalar.Off - scalar.upperExponent() + 1 + table.upperExponent())
	}
	r.recordBound(o.out)
	r.stats.Flops++
	r.stats.Merges++
}

// loadLeaf makes a leaf: it restricts the table to the slice and sums its lone indices.
func (r *run) loadLeaf(o *op, scale *scaled.Number) error {
	out := buffer{data: r.arena.Get(o.spec.resultEntries), owned: true}
	raw := r.inputs[o.out]
	from := raw.data[r.sliceOffset(o.out):]
	if err := r.merger.run(r.ctx, r.threads, o.spec, from, scalarOne, out.data); err != nil {
		return err
	}

	terms := ceilLog2(r.shape.presumFlops(o.out)/float64(o.spec.resultEntries) + 1) // log2 of the terms of an entry
	r.stats.Flops += r.shape.presumFlops(o.out)
	out.log2Bound = raw.log2Bound + terms
	out.Low = r.sumDepth(raw.Low)
	if raw.Lost {
		out.Lose(raw.Off + terms)
	}

	factor := r.bringIntoRange(&out)
	r.stats.Lost = r.stats.Lost || out.Lost && factor.IsZero()
	*scale = scale.Mul(factor)

	r.recordFactor(o.out, factor)
	r.buffers[o.out] = out
	r.recordBound(o.out)
	return nil
}

// sliceOffset returns the offset of the current slice in the table of a leaf.
func (r *run) sliceOffset(leaf int) int {
	scope := r.shape.graph.Edges[leaf]
	offset, stride := 0, 1
	for i := len(scope) - 1; i >= 0; i-- {
		if r.shape.dims[scope[i]] == 0 {
			offset += r.slicedValues[scope[i]] * stride
		}
		stride *= r.shape.graph.Dims[scope[i]]
	}
	return offset
}

// merge computes a table from two, a · b summed, and takes a factor out of it, which goes into scale. It sets mergeFactor to this factor,
// and mergeLoses.
func (r *run) merge(o *op, scale *scaled.Number) error {
	a, b := &r.buffers[o.a], &r.buffers[o.b]
	low, loses := r.productDepth(a, b)
	out := buffer{data: r.arena.Get(o.spec.resultEntries), owned: true}
	if err := r.merger.run(r.ctx, r.threads, o.spec, a.data, b.data, out.data); err != nil {
		return err
	}

	size := float64(o.spec.resultEntries)
	r.stats.Flops += o.spec.work + (o.spec.work - size)
	r.stats.Merges++

	log2Terms := ceilLog2(o.spec.work / size)
	out.log2Bound = a.log2Bound + b.log2Bound + log2Terms
	out.Low = low
	r.mergeLoses = loses
	out.addLosses(a, b, log2Terms, loses)

	r.mergeFactor = r.bringIntoRange(&out)
	r.stats.Lost = r.stats.Lost || out.Lost && r.mergeFactor.IsZero() && o.out < len(r.shape.scopes)

	// a last table of 0 ends nothing: its adjoint may be wanted
	if r.mergeFactor.IsZero() && o.out == len(r.shape.scopes)-1 {
		r.mergeFactor = scaled.One
	}

	r.recordFactor(o.out, r.mergeFactor)
	*scale = scale.Mul(r.mergeFactor)
	r.buffers[o.out] = out
	r.recordBound(o.out)
	return nil
}

// recordFactor records the factor of a table for the way back. It does nothing for adjoints, or without marginals.
func (r *run) recordFactor(buffer int, factor scaled.Number) {
	if buffer < len(r.factors) {
		r.factors[buffer] = factor
	}
}

// recordBound records the bound of a table for the way back. It does nothing for adjoints, or without marginals.
func (r *run) recordBound(buffer int) {
	if buffer < len(r.bounds) {
		r.bounds[buffer] = r.buffers[buffer].log2Bound
	}
}

// bringIntoRange divides a table by a power of two if its entries are very large or small, and returns the factor. The factor is 1 if the
// bound is not large and one of a few entries is not tiny. Otherwise the largest entry decides. The factor of a table of zeros is 0.
func (r *run) bringIntoRange(t *buffer) scaled.Number {
	if t.log2Bound < maxBound && t.hasSampleAbove(0x1p-64) {
		return scaled.One
	}

	largest := floats.LargestBits(t.data)
	if largest == 0 {
		return scaled.Number{}
	}

	exp := floats.Exponent(largest)
	t.log2Bound = exp + 1
	if t.log2Bound >= -margin && t.log2Bound <= margin {
		return scaled.One
	}

	if t.Lost {
		t.Off -= exp
	}
	if exp > 0 && t.Low-exp < floats.Lowest { // small entries may get too small for a float64
		if t.measureDepth(); t.Low-exp < floats.Lowest {
			t.Lose(sumproduct.Floor)
			r.mergeLoses = true
		}
	}

	t.log2Bound = 1
	t.Low = max(min(t.Low-exp, 0), sumproduct.Smallest)
	return floats.Rescale(t.data, largest)
}

// hasSampleAbove reports whether one of some evenly spaced entries is larger than limit in size.
func (t *buffer) hasSampleAbove(limit float64) bool {
	step := max(1, len(t.data)/samples)
	for i := 0; i < len(t.data); i += step {
		if x := t.data[i]; x > limit || x < -limit {
			return true
		}
	}
	return false
}

// ceilLog2 returns ⌈log2 x⌉ for x > 0.
func ceilLog2(x float64) int {
	f, e := math.Frexp(x)
	if f == 0.5 {
		return e - 1
	}
	return e
}
