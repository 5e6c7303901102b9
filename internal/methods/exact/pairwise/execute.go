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

// buffer is a live table: its entries are at most 2^bound in size.
type buffer struct {
	data  []float64
	owned bool // from the arena
	bound int
	sumproduct.Depth
	scale scaled.Number // of adjoints: multiplier of the entries
}

// run is a contraction under way.
type run struct {
	ctx      context.Context
	shape    *shape
	threads  int
	from, to int64         // slices
	raw      []buffer      // by leaf: the table of the expression, or a copy in range
	copied   float64       // entries of those copies
	limit    float64       // entries that may be live
	spare    float64       // entries of the budget beyond limit, for slices at the same time
	start    scaled.Number // factors of all slices, known before
	common   scaled.Number // the same after the static part
	scale    scaled.Number // and after the steps done in the slice
	done     scaled.Number // scale when the slice's value was known
	value    scaled.Number
	digits   []int    // by index: value of a sliced one
	buffers  []buffer // by number, see opcode
	arena    arena.Arena
	beside   int // most entries that slices computed at the same time had in addition
	merger   merger
	stats    Stats
	settled  scaled.Number // the factor taken out of the last result
	// factors: by table, the factor that settle took out of it, 0 for a table of the expression as it is
	factors  []scaled.Number
	bounds   []int // by table: its entries are at most 2^bound in size
	marginal marginals
	reads    [][]int       // by table: indices whose marginals are read there
	used     []bool        // by index: a table has it
	signed   bool          // an entry is below 0
	missing  scaled.Number // bounds the missing part of the slices' values
	loses    bool          // the last result may lack more than its two tables
}

const (
	margin  = 64  // largest entries within 2^±margin are left as they are
	highest = 256 // bounds above this are measured
	sampled = 64  // entries looked at to see that a table is not tiny
)

// measure finds the range of every table, copies tables that leave it, and
// multiplies known factors into the scale.
func (r *run) measure(e *sumproduct.Expression) error {
	r.raw = make([]buffer, len(e.Tables))
	r.used = make([]bool, len(e.Dims))
	for t := range e.Tables {
		for _, v := range e.Tables[t].Scope {
			r.used[v] = true
		}

		data := e.Tables[t].Data
		top, low, signed := floats.Extent(data)
		if top >= 1024 {
			return fmt.Errorf("%w: table %d", sumproduct.ErrNotFinite, t)
		}

		r.signed = r.signed || signed

		bound := top + 1
		if floats.LargestBits(data) == 0 {
			r.start = scaled.Number{}
			bound = 0
		} else if bound < -margin || bound > margin {
			data = append([]float64(nil), data...)
			r.copied += float64(len(data))
			r.start = r.start.Mul(floats.Normalise(data))
			low -= top
			bound = 1
		}

		r.raw[t] = buffer{
			data:  data,
			bound: bound,
			Depth: sumproduct.Depth{Low: min(low, 0), Measured: true},
		}
		if bound == 1 && top > 0 && low < floats.Lowest { // divided by its largest entry
			r.raw[t].Lose(sumproduct.Floor)
		}
	}

	for v, d := range r.shape.dims {
		if !r.used[v] && d > 1 {
			r.start = r.start.Mul(scaled.FromFloat(float64(d)))
		}
	}
	return nil
}

// sumSlices runs a program and returns the sum over its slices.
// each, when given, is called after every slice with its value.
func (r *run) sumSlices(p *program, each func(value scaled.Number)) (scaled.Number, error) {
	s := r.shape
	r.buffers = make([]buffer, 3*len(s.scope))
	r.digits = make([]int, len(s.dims))
	r.arena.Limit = int(r.limit)
	r.arena.Live = int(s.raw + r.copied)
	r.arena.Peak = r.arena.Live
	r.arena.Held = r.arena.Live

	r.common = r.start
	if err := r.do(p.before, &r.common); err != nil {
		return scaled.Number{}, err
	}

	r.scale = r.common
	sum, err := r.eachSlice(p, each)
	if err != nil {
		return scaled.Number{}, err
	}

	total := sum.total()
	r.stats.Lost = r.stats.Lost || r.lossCounts(total.Abs())

	if !total.IsZero() {
		rest := scaled.One
		r.done = total
		r.value = scaled.One
		if err := r.do(p.after, &rest); err != nil {
			return scaled.Number{}, err
		}
	}

	r.stats.PeakBytes = 8 * int64(r.arena.Peak+r.beside)
	return total, nil
}

// slice runs the part of a program that slices differ in, and returns the value of slice n.
func (r *run) slice(p *program, n int64) (scaled.Number, error) {
	r.place(n)
	r.scale = r.common
	r.done = r.common
	r.value = scaled.One
	if err := r.do(p.each, &r.scale); err != nil {
		return scaled.Number{}, err
	}

	r.stats.Slices++
	if r.scale.IsZero() {
		r.abandon()
		return scaled.Number{}, nil
	}
	return r.done.Mul(r.value), nil
}

// place sets the digits of slice n.
func (r *run) place(n int64) {
	for i := len(r.shape.sliced) - 1; i >= 0; i-- {
		v := r.shape.sliced[i]
		d := int64(r.shape.h.Dims[v])
		r.digits[v] = int(n % d)
		n /= d
	}
}

// abandon frees the tables of a slice that turned out to be 0.
func (r *run) abandon() {
	tables := len(r.shape.scope)
	for i := range r.buffers {
		if !r.shape.static[i%tables] || i >= tables && i < 2*tables {
			r.free(i)
		}
	}
}

// free gives up a buffer, and its entries where they are its own.
func (r *run) free(i int) {
	if r.buffers[i].owned {
		r.arena.Put(r.buffers[i].data)
	}
	r.buffers[i] = buffer{}
}

// do executes operations and multiplies the powers of two that it takes out of tables into scale.
// It stops when that is 0.
func (r *run) do(ops []op, scale *scaled.Number) error {
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

// execute does one operation.
func (r *run) execute(o *op, scale *scaled.Number) error {
	b := r.buffers
	switch o.code {
	case opLoad:
		if o.spec == nil {
			b[o.out] = r.raw[o.out]
			r.bound(o.out)
			return nil
		}
		return r.load(o, scale)
	case opMerge:
		return r.merge(o, scale)
	case opTake:
		*scale = scale.Mul(scaled.FromFloat(b[o.b].data[0]))
		b[o.out] = buffer{data: b[o.a].data, bound: b[o.a].bound, Depth: b[o.a].Depth}
		switch by := &b[o.b]; {
		case by.Lost && by.data[0] == 0:
			r.stats.Lost = true
		case by.Lost:
			b[o.out].Lose(by.Off - by.upper() + 1 + b[o.a].upper())
		}
		r.bound(o.out)
		r.stats.Flops++
		r.stats.Merges++
	case opMove:
		if b[o.out].data == nil {
			b[o.out] = b[o.a]
		}
		b[o.out].owned = b[o.a].owned
		b[o.a] = buffer{}
	case opFree:
		r.free(o.a)
	case opDone:
		r.value = scaled.FromFloat(b[o.a].data[0])
		r.done = *scale
		if b[o.a].Lost {
			r.missing = r.missing.Add(scale.Abs().Mul(scaled.Make(1, int64(b[o.a].Off))))
		}
	default:
		return r.backward(o)
	}
	return nil
}

// load restricts a leaf to the slice and sums the indices that only it has.
func (r *run) load(o *op, scale *scaled.Number) error {
	out := buffer{data: r.arena.Get(o.spec.size), owned: true}
	raw := r.raw[o.out]
	from := raw.data[r.base(o.out):]
	if err := r.merger.run(r.ctx, r.threads, o.spec, from, one, out.data); err != nil {
		return err
	}

	alone := r.shape.presum(o.out)/float64(o.spec.size) + 1
	r.stats.Flops += r.shape.presum(o.out)
	out.bound = raw.bound + ceilLog2(alone)
	out.Low = r.cancelled(raw.Low)
	if raw.Lost {
		out.Lose(raw.Off + ceilLog2(alone))
	}

	f := r.settle(&out)
	r.stats.Lost = r.stats.Lost || out.Lost && f.IsZero()
	*scale = scale.Mul(f)

	r.keep(o.out, f)
	r.buffers[o.out] = out
	r.bound(o.out)
	return nil
}

// base is where the slice begins in a leaf.
func (r *run) base(leaf int) int {
	scope := r.shape.h.Edges[leaf]
	at, step := 0, 1
	for i := len(scope) - 1; i >= 0; i-- {
		if r.shape.dims[scope[i]] == 0 {
			at += r.digits[scope[i]] * step
		}
		step *= r.shape.h.Dims[scope[i]]
	}
	return at
}

// merge computes a table from two, out = settled · a · b summed, and says how deep its entries are.
func (r *run) merge(o *op, scale *scaled.Number) error {
	a, b := &r.buffers[o.a], &r.buffers[o.b]
	low, loses := r.descend(a, b)
	out := buffer{data: r.arena.Get(o.spec.size), owned: true}
	if err := r.merger.run(r.ctx, r.threads, o.spec, a.data, b.data, out.data); err != nil {
		return err
	}

	size := float64(o.spec.size)
	r.stats.Flops += o.spec.work + (o.spec.work - size)
	r.stats.Merges++

	terms := ceilLog2(o.spec.work / size)
	out.bound = a.bound + b.bound + terms
	out.Low = low
	r.loses = loses
	out.inherit(a, b, terms, loses)

	r.settled = r.settle(&out)
	r.stats.Lost = r.stats.Lost || out.Lost && r.settled.IsZero() && o.out < len(r.shape.scope)

	// a last table of 0 ends nothing: its adjoint may be wanted
	if r.settled.IsZero() && o.out == len(r.shape.scope)-1 {
		r.settled = scaled.One
	}

	r.keep(o.out, r.settled)
	*scale = scale.Mul(r.settled)
	r.buffers[o.out] = out
	r.bound(o.out)
	return nil
}

// keep remembers the factor of a table for the way back.
func (r *run) keep(table int, factor scaled.Number) {
	if table < len(r.factors) {
		r.factors[table] = factor
	}
}

// bound remembers the bound of a table for the way back.
func (r *run) bound(table int) {
	if table < len(r.bounds) {
		r.bounds[table] = r.buffers[table].bound
	}
}

// settle keeps a table in range: bound limits it from above, a few entries show that it is not
// tiny. When they do not, or the bound has grown, the largest entry is looked up and divided out.
// It returns the factor; 0 for a table of zeros.
func (r *run) settle(t *buffer) scaled.Number {
	if t.bound < highest {
		step := max(1, len(t.data)/sampled)
		for i := 0; i < len(t.data); i += step {
			if x := t.data[i]; x > 0x1p-64 || x < -0x1p-64 {
				return scaled.One
			}
		}
	}

	top := floats.LargestBits(t.data)
	if top == 0 {
		return scaled.Number{}
	}

	exp := floats.Exponent(top)
	t.bound = exp + 1
	if t.bound >= -margin && t.bound <= margin {
		return scaled.One
	}

	if t.Lost {
		t.Off -= exp
	}
	if exp > 0 && t.Low-exp < floats.Lowest {
		if t.measure(); t.Low-exp < floats.Lowest {
			t.Lose(sumproduct.Floor)
			r.loses = true
		}
	}

	t.bound = 1
	t.Low = max(min(t.Low-exp, 0), sumproduct.Smallest)
	return floats.Rescale(t.data, top)
}

// ceilLog2 returns ⌈log2 x⌉ for x > 0.
func ceilLog2(x float64) int {
	f, e := math.Frexp(x)
	if f == 0.5 {
		return e - 1
	}
	return e
}
