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

// buffer is a live table, an adjoint, or a sum of adjoints. All entries are at most 2^log2Bound in size.
type buffer struct {
	data             []float64
	owned            bool // data is from the arena, and goes back to it
	log2Bound        int
	sumproduct.Depth               // the smallest entries, and what may be missing from entries
	scale            scaled.Number // only of adjoints: the adjoint is scale · data
}

// run is a contraction under way. Tables are kept near 1 in size: powers of two and scalars that are taken out of them, called factors, are
// multiplied into a scale.
type run struct {
	ctx           context.Context
	shape         *shape
	threads       int
	from, to      int64    // slices
	inputs        []buffer // by leaf: the table of the expression, or a copy in range
	copiedEntries float64  // entries of those copies
	entryLimit    float64  // the number of entries that may be live
	spareEntries  float64  // entries of the budget beyond entryLimit, for slices at the same time

	start  scaled.Number // factors of all slices, known before any operation
	common scaled.Number // start times the factors of the operations before the slices
	scale  scaled.Number // common times the factors of the operations done in the slice

	valueScale scaled.Number // scale when the slice's value was known
	value      scaled.Number // the value of the slice is valueScale · value

	slicedValues    []int    // by index: the value of a sliced index in this slice
	buffers         []buffer // by number, see opcode
	arena           arena.Arena
	parallelEntries int // entries in addition to the arena's peak, of slices computed at the same time
	merger          merger
	stats           Stats

	mergeFactor scaled.Number   // the factor taken out of the result of the last merge
	mergeLoses  bool            // terms may be missing from the result of the last merge that its two tables have
	factors     []scaled.Number // for marginals, by table: the factor taken out of it; 0 for a table of the expression as it is
	bounds      []int           // for marginals, by table: its log2Bound

	marginals    marginals
	reads        [][]int       // by table: indices whose marginals are read there
	isUsed       []bool        // by index: a table has it
	signed       bool          // an entry is below 0
	missingBound scaled.Number // bounds the missing part of the slices' values
}

const (
	margin   = 64  // a table whose largest entry is within 2^±margin is left as it is
	maxBound = 256 // from this log2Bound on, the largest entry of a table is looked up
	samples  = 64  // entries looked at to see that a table is not tiny
)

// measureTables fills in inputs, the tables of the expression with the range of their entries, and multiplies into start the factors that
// are known before any operation: powers of two taken out of tables, and the dimensions of indices that no table has. Errors:
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
		if !r.isUsed[v] && d > 1 { // the sum over the index has d equal terms
			r.start = r.start.Mul(scaled.FromFloat(float64(d)))
		}
	}
	return nil
}

// measureTable sets inputs[t] to a table of the expression, which has the entries data, with bounds of their sizes. If the largest entry is
// beyond 2^±margin, inputs[t] is a copy divided by a power of two, and r.start is multiplied by the power. If all entries are 0, r.start
// becomes 0. largest and smallest below are the exponents of 2 of the largest entry and of the smallest one other than 0.
func (r *run) measureTable(t int, data []float64) error {
	largest, smallest, signed := floats.Extent(data)
	if isInfinite := largest >= 1024; isInfinite { // or NaN: the largest finite float64 is below 2^1024
		return fmt.Errorf("%w: table %d", sumproduct.ErrNotFinite, t)
	}
	r.signed = r.signed || signed

	bound := largest + 1 // all entries are below 2^bound in size
	if isZero := floats.LargestBits(data) == 0; isZero {
		r.start = scaled.Number{}
		bound = 0
	} else if bound < -margin || bound > margin {
		data = append([]float64(nil), data...)
		r.copiedEntries += float64(len(data))
		r.start = r.start.Mul(floats.Normalise(data)) // divides data by 2^largest, and returns that
		smallest -= largest
		bound = 1
	}

	r.inputs[t] = buffer{
		data:      data,
		log2Bound: bound,
		Depth:     sumproduct.Depth{Low: min(smallest, 0), Measured: true},
	}
	wasReduced := bound == 1 && largest > 0     // divided by a power of two above 1
	if wasReduced && smallest < floats.Lowest { // entries have lost digits, or all of them
		r.inputs[t].AddLoss(sumproduct.Floor)
	}
	return nil
}

// sumSlices runs a program: the operations before the slices, all slices, and those after them. It returns the sum of the values of the
// slices. If onSlice is not nil, it is called after every slice with its value. If the sum is 0, the operations after the slices are left
// out.
func (r *run) sumSlices(p *program, onSlice func(value scaled.Number)) (scaled.Number, error) {
	s := r.shape
	r.buffers = make([]buffer, 3*len(s.scopes)) // for each table, its adjoint, and the sum of its adjoint
	r.slicedValues = make([]int, len(s.dims))

	// The tables of the expression count as live from the beginning.
	r.arena.Limit = int(r.entryLimit)
	r.arena.Live = int(s.rawEntries + r.copiedEntries)
	r.arena.Peak = r.arena.Live // the most of Live so far
	r.arena.Held = r.arena.Live // those in use, and those of free buffers that are kept for the next table

	r.common = r.start // the scale of all slices; operations before the slices multiply it by the scalars that they take out
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
		scale := scaled.One  // not used: adjoints have scales of their own
		r.valueScale = total // Z = valueScale · value, for the adjoints that are computed after the slices
		r.value = scaled.One
		if err := r.executeAll(p.afterOps, &scale); err != nil {
			return scaled.Number{}, err
		}
	}

	r.stats.PeakBytes = 8 * int64(r.arena.Peak+r.parallelEntries) // 8 bytes an entry
	return total, nil
}

// runSlice executes the operations of a program for slice n, and returns the value of the slice. The operations set valueScale and value,
// whose product it is; they keep their first values if there is no table. If the value is 0, executeAll may leave out operations, and then
// runSlice frees the tables of the slice.
func (r *run) runSlice(p *program, n int64) (scaled.Number, error) {
	r.setSlicedValues(n)
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

// setSlicedValues sets the values of the sliced indices in slice n: the digits of n in the mixed radix of their dimensions, the last
// index the fastest.
func (r *run) setSlicedValues(n int64) {
	for i := len(r.shape.sliced) - 1; i >= 0; i-- {
		v := r.shape.sliced[i]
		d := int64(r.shape.graph.Dims[v])
		r.slicedValues[v] = int(n % d)
		n /= d
	}
}

// freeSlice frees the tables of a slice that turned out to be 0, and all adjoints. Static tables, which further slices need, and the sums
// of their adjoints stay.
func (r *run) freeSlice() {
	tables := len(r.shape.scopes)
	for i := range r.buffers {
		table := i % tables
		isAdjoint := i >= tables && i < 2*tables
		if !r.shape.isStatic[table] || isAdjoint {
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

// executeAll executes operations, and multiplies the factors that they take out of tables into scale. It stops when scale is 0, since all
// further tables would be 0.
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

// execute executes one operation of the forward pass, and multiplies the factor that it takes out of a table into scale. o.a and o.b are
// the numbers of the buffers with the operands, and o.out is that of the result. Operations on adjoints are those of executeBackward.
func (r *run) execute(o *op, scale *scaled.Number) error {
	b := r.buffers
	switch o.code {
	case opLoad:
		if o.spec == nil { // the leaf shares the entries of the expression
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
		if b[o.out].data == nil { // otherwise o.out shares the entries already
			b[o.out] = b[o.a]
		}
		b[o.out].owned = b[o.a].owned
		b[o.a] = buffer{}
	case opFree:
		r.free(o.a)
	case opValue:
		r.value = scaled.FromFloat(b[o.a].data[0])
		r.valueScale = *scale // the value of the slice is value · scale
		if b[o.a].Lost {      // at most 2^Off is missing from it
			r.missingBound = r.missingBound.Add(scale.Abs().Mul(scaled.Make(1, int64(b[o.a].Off))))
		}
	default:
		return r.executeBackward(o)
	}
	return nil
}

// multiplyByScalar merges a table with a scalar: scale is multiplied by the scalar s, and the result shares the entries of the table. It
// also has the table's own Depth, with what may be missing from its entries (Lost, at most 2^Off). If the scalar is Lost, too, an amount δ
// may be missing from s, and δ·t from the product with an entry t. Since scale has s, this is δ/s · t in units of the result.
func (r *run) multiplyByScalar(o *op, scale *scaled.Number) {
	b := r.buffers
	table, scalar := &b[o.a], &b[o.b]
	*scale = scale.Mul(scaled.FromFloat(scalar.data[0]))
	b[o.out] = buffer{data: table.data, log2Bound: table.log2Bound, Depth: table.Depth}
	switch {
	case scalar.Lost && scalar.data[0] == 0: // s may be 0 only because of what is missing
		r.stats.Lost = true
	case scalar.Lost: // |δ| ≤ 2^Off, |s| ≥ 2^(upperExponent − 1), and t is below 2^upperExponent of the table
		b[o.out].AddLoss(scalar.Off - scalar.upperExponent() + 1 + table.upperExponent())
	}
	r.recordBound(o.out)
	r.stats.Flops++
	r.stats.Merges++
}

// loadLeaf makes the table of leaf o.out, which has entries of its own: it restricts the table of the expression to the slice, and sums out
// the indices that no other leaf has. If the table is not in range, it is divided by a factor, and scale is multiplied by the factor. An
// entry is a sum of at most 2^log2Terms entries of the input. So its bound log2Bound, and the bound Off of what is missing from it, are
// those of the input plus log2Terms.
func (r *run) loadLeaf(o *op, scale *scaled.Number) error {
	result := buffer{data: r.arena.Get(o.spec.resultEntries), owned: true}
	input := r.inputs[o.out]
	slice := input.data[r.sliceOffset(o.out):]
	// A merge with the scalar 1 sums the indices out.
	if err := r.merger.run(r.ctx, r.threads, o.spec, slice, scalarOne, result.data); err != nil {
		return err
	}

	log2Terms := ceilLog2(r.shape.leafAdditions(o.out)/float64(o.spec.resultEntries) + 1) // the additions of an entry, and 1
	r.stats.Flops += r.shape.leafAdditions(o.out)
	result.log2Bound = input.log2Bound + log2Terms
	result.Low = r.sumDepth(input.Low)
	if input.Lost {
		result.AddLoss(input.Off + log2Terms)
	}

	factor := r.bringIntoRange(&result)
	r.stats.Lost = r.stats.Lost || result.Lost && factor.IsZero()
	*scale = scale.Mul(factor)

	r.recordFactor(o.out, factor)
	r.buffers[o.out] = result
	r.recordBound(o.out)
	return nil
}

// sliceOffset returns the offset of the current slice in the table of a leaf in the expression, which is row-major over all its indices.
func (r *run) sliceOffset(leaf int) int {
	scope := r.shape.graph.Edges[leaf]
	offset, stride := 0, 1
	for i := len(scope) - 1; i >= 0; i-- {
		v := scope[i]
		if isSliced := r.shape.dims[v] == 0; isSliced {
			offset += r.slicedValues[v] * stride
		}
		stride *= r.shape.graph.Dims[v]
	}
	return offset
}

// merge computes a table, or an adjoint, from two others: a · b, summed. To keep the result in range, it divides it by a factor, a power of
// two, and multiplies the factor into scale. The factor is 1 if the result is in range, and 0 if all entries of the result are 0. It is
// left in r.mergeFactor. r.mergeLoses states afterwards whether products of entries of a and b were too small for a float64, so that terms
// are missing from the result. r.stats.Lost becomes true if the value of the slice may be 0 only because of missing terms.
func (r *run) merge(o *op, scale *scaled.Number) error {
	a, b := &r.buffers[o.a], &r.buffers[o.b]
	low, loses := r.productDepth(a, b) // entries of the result other than 0 are at least 2^low
	result := buffer{data: r.arena.Get(o.spec.resultEntries), owned: true}
	if err := r.merger.run(r.ctx, r.threads, o.spec, a.data, b.data, result.data); err != nil {
		return err
	}

	entries := float64(o.spec.resultEntries)
	r.stats.Flops += o.spec.work + (o.spec.work - entries) // multiplications and additions
	r.stats.Merges++

	// Bounds of the entries of the result, and of what is missing from them.
	log2Terms := ceilLog2(o.spec.work / entries) // of an entry of the result
	result.log2Bound = a.log2Bound + b.log2Bound + log2Terms
	result.Low = low
	r.mergeLoses = loses
	result.addLosses(a, b, log2Terms, loses)

	// The factor. bringIntoRange may set r.mergeLoses, too.
	r.mergeFactor = r.bringIntoRange(&result)
	isTable := o.out < len(r.shape.scopes) // buffers of adjoints follow those of tables
	isLastTable := o.out == len(r.shape.scopes)-1
	r.stats.Lost = r.stats.Lost || result.Lost && r.mergeFactor.IsZero() && isTable
	if r.mergeFactor.IsZero() && isLastTable { // a scale of 0 would end the slice (executeAll), but adjoints may be wanted even if Z is 0
		r.mergeFactor = scaled.One
	}

	r.recordFactor(o.out, r.mergeFactor)
	*scale = scale.Mul(r.mergeFactor)
	r.buffers[o.out] = result
	r.recordBound(o.out)
	return nil
}

// recordFactor records the factor that was taken out of a table, for the backward pass. It does nothing for adjoints, or without marginals.
func (r *run) recordFactor(buffer int, factor scaled.Number) {
	if buffer < len(r.factors) {
		r.factors[buffer] = factor
	}
}

// recordBound records the log2Bound of a table, for the backward pass. It does nothing for adjoints, or without marginals.
func (r *run) recordBound(buffer int) {
	if buffer < len(r.bounds) {
		r.bounds[buffer] = r.buffers[buffer].log2Bound
	}
}

// bringIntoRange divides a table by a power of two if its entries are very large or very small, and returns that factor. The factor of a
// table of zeros is 0. The factor is 1 if the largest entry is within 2^±margin. To save the search for the largest entry, it is also 1 if
// no entry can be above 2^maxBound (log2Bound) and one of a few entries is not tiny. 2^Low bounds the entries of a table other than 0 from
// below, and if the table is Lost, 2^Off bounds what is missing from an entry. If the division loses entries, r.mergeLoses becomes true.
func (r *run) bringIntoRange(t *buffer) scaled.Number {
	if t.log2Bound < maxBound && t.hasSampleAbove(0x1p-64) { // 2^−margin
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

	// The table is divided by 2^exp. Small entries may get too small for a float64.
	if t.Lost {
		t.Off -= exp
	}
	if exp > 0 && t.Low-exp < floats.Lowest {
		t.measureDepth() // Low was a bound; it is exact from here on
		if t.Low-exp < floats.Lowest {
			t.AddLoss(sumproduct.Floor)
			r.mergeLoses = true
		}
	}
	t.log2Bound = 1
	t.Low = max(min(t.Low-exp, 0), sumproduct.Smallest)
	return floats.Rescale(t.data, largest)
}

// hasSampleAbove reports whether one of about 64 (samples) evenly spaced entries of the table is larger than limit in size.
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
	fraction, exponent := math.Frexp(x) // x = fraction · 2^exponent, 1/2 ≤ fraction < 1
	if isPowerOfTwo := fraction == 0.5; isPowerOfTwo {
		return exponent - 1
	}
	return exponent
}
