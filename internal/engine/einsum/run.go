package einsum

// Runs: tables forth along the steps of a tape, derivatives back, every one of them in the range of float64.

import (
	"context"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/engine/compiled"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// margin bounds the exponents of largest entries: products of contractionorder.MaxOperands of them are harmless.
const margin = 16

// run is an elimination under way. The caller makes room for tables and derivatives.
type run struct {
	compiled.Memory
	*tape
	of      *compiled.Program // of the tape, for the way back
	ctx     context.Context
	threads int
	more    []compiled.Memory // of goroutines beyond the first
	keep    bool              // there is a way back: a zero ends nothing, its cofactors may still be asked for

	depth   []sumproduct.Depth // by table
	shift   []int64            // by table: exponent of the power of two it was divided by; nil without a way back
	by      []derivative       // by table; nil without a way back
	base    scaled.Number      // a factor of Z
	exp     int64              // of another one, a power of two
	factors []scaled.Number    // the others, which are tables of one entry, in sequence
	places  []int              // and their tables
	seeds   []scaled.Number
	z       scaled.Number

	zero   bool // Z is 0, and nothing else matters
	lost   bool // a product of entries may have been too small
	signed bool // an entry is below 0
}

// derivative is ∂Z/∂table = Back[table]·2^exp.
type derivative struct {
	there bool // it is computed and not 0
	exp   int64
	sumproduct.Depth
}

// newRun returns a run without tables; of is nil where there is no way back.
func newRun(t *tape, of *compiled.Program) run {
	tables := len(t.need)
	r := run{
		tape:  t,
		of:    of,
		keep:  of != nil,
		depth: make([]sumproduct.Depth, tables),
	}
	r.Tables = make([][]float64, tables)
	if of != nil {
		r.shift, r.by, r.Back = make([]int64, tables), make([]derivative, tables), make([][]float64, tables)
		r.Memory = r.Beside(of)
	}
	return r
}

// begin starts again from a factor of Z.
func (r *run) begin(base scaled.Number) {
	r.base, r.exp, r.factors, r.places = base, 0, r.factors[:0], r.places[:0]
	r.zero, r.lost, r.signed = base.IsZero() && !r.keep, false, false
	clear(r.shift)
}

// number multiplies Z by the only entry of a table.
func (r *run) number(table int, x float64) {
	r.factors, r.places = append(r.factors, scaled.FromFloat(x)), append(r.places, table)
	if x == 0 {
		r.vanish()
	}
}

// power multiplies Z by the power of two that a table was divided by.
func (r *run) power(table int, exp int64) {
	r.exp += exp
	if r.keep {
		r.shift[table] = exp
	}
}

// vanish makes Z 0. Where there is a way back it becomes so by itself.
func (r *run) vanish() { r.zero = !r.keep }

// total is Z, once all tables are computed.
func (r *run) total() scaled.Number {
	r.z = scaled.Number{}
	if !r.zero {
		r.z = r.base.Mul(scaled.Make(1, r.exp))
		for _, x := range r.factors {
			r.z = r.z.Mul(x)
		}
	}
	return r.z
}

// others returns ∂Z/∂x for every factor x: the product of all others, without division.
func (r *run) others() []scaled.Number {
	r.seeds = r.seeds[:0]
	p := r.base.Mul(scaled.Make(1, r.exp))
	for _, x := range r.factors {
		r.seeds = append(r.seeds, p)
		p = p.Mul(x)
	}
	p = scaled.One
	for i := len(r.seeds) - 1; i >= 0; i-- {
		r.seeds[i] = r.seeds[i].Mul(p)
		p = p.Mul(r.factors[i])
	}
	return r.seeds
}

// settle keeps the table of a step in range, the bits of whose largest entry are top.
func (r *run) settle(n int, top uint64) error {
	s, out := r.steps[n], len(r.h.Edges)+n
	d := &r.depth[out]
	low, loses := r.descend(s.In, noTable, 0)
	*d = sumproduct.Depth{Low: low}
	switch {
	case top >= floats.Infinity:
		return fmt.Errorf("%w: in the elimination of index %v", sumproduct.ErrNotFinite, s.Sum)
	case len(s.Out) == 0:
		r.number(out, r.Tables[out][0])
	case top == 0:
		r.vanish()
	case outside(top):
		exp, more := rescale(r.Tables[out], top, d)
		r.power(out, exp)
		loses = loses || more
	}
	r.lost = r.lost || loses
	d.Low = min(d.Low, 0)
	return nil
}

// differentiate adds to the derivatives by the inputs of a step; goroutines share the units of a large one.
func (r *run) differentiate(n int) error {
	s := &r.of.Steps[n]
	chunk := max(1, chunkWork/(s.Size/s.Blocks*s.Sums*len(s.In)))
	if chunk = (chunk + s.Unit - 1) / s.Unit * s.Unit; chunk >= s.Blocks {
		r.of.BackwardIn(&r.Memory, n, 0, s.Blocks)
		return nil
	}
	chunks := (s.Blocks + chunk - 1) / chunk
	for len(r.more) < min(r.threads, chunks)-1 {
		r.more = append(r.more, r.Beside(r.of))
	}
	return sumproduct.Share(r.ctx, r.threads, chunks, func(worker, c int) error {
		m := &r.Memory
		if worker > 0 {
			m = &r.more[worker-1]
		}
		r.of.BackwardIn(m, n, c*chunk, min((c+1)*chunk, s.Blocks))
		return nil
	})
}

// seed sets the derivative by a table of one entry.
func (r *run) seed(table int, by scaled.Number) {
	r.Back[table][0] = by.Mant
	r.by[table] = derivative{there: true, exp: by.Exp}
}

// stepBack computes the derivatives by the inputs of a step that are needed from the one by its output, which is there.
func (r *run) stepBack(n int) error {
	s, out := r.steps[n], len(r.h.Edges)+n
	exp := r.by[out].exp - r.shift[out]
	for i, k := range s.In {
		if !r.need[k] {
			continue
		}
		clear(r.Back[k])
		low, loses := r.descend(s.In, i, out)
		r.by[k] = derivative{exp: exp, Depth: sumproduct.Depth{Low: max(low, sumproduct.Smallest)}}
		if loses && !r.lost {
			up := upper(r.Back[out])
			for _, t := range s.In {
				up += upper(r.Tables[t])
			}
			r.lost = !r.spares(k, s.Full, up, exp)
		}
	}
	if err := r.differentiate(n); err != nil {
		return err
	}
	for _, k := range s.In {
		if !r.need[k] {
			continue
		}
		d := &r.by[k]
		top := floats.LargestBits(r.Back[k])
		switch {
		case top >= floats.Infinity:
			return fmt.Errorf("%w: in the derivative by table %d", sumproduct.ErrNotFinite, k)
		case top == 0:
			continue
		case outside(top):
			by, loses := rescale(r.Back[k], top, &d.Depth)
			d.exp += by
			r.lost = r.lost || loses && !r.spares(k, float64(len(r.Back[k])), 0, d.exp)
		}
		d.there, d.Low = true, min(max(d.Low, sumproduct.Smallest), 0)
	}
	return nil
}

// check notes whether products of a table and the derivative by it may be lost.
func (r *run) check(table int) {
	t, by := &r.depth[table], &r.by[table]
	if t.Low+by.Low < floats.Lowest {
		t.Measure(r.Tables[table])
		by.Measure(r.Back[table])
		r.lost = r.lost || t.Low+by.Low < floats.Lowest && !r.spares(table, float64(len(r.Tables[table])), 0, by.exp)
	}
}

// read adds t[y]·∂Z/∂t[y] of a table up over the entries with value x of an index that has dim values, inner entries apart.
func (r *run) read(table, x, dim, inner int) scaled.Number {
	t, by := r.Tables[table], r.Back[table]
	sum := 0.0
	for at := x * inner; at < len(t); at += inner * dim {
		for j := at; j < at+inner; j++ {
			sum += float64(t[j] * by[j])
		}
	}
	return scaled.Make(sum, r.by[table].exp)
}

// descend bounds the output of a step with these inputs, and its products, by their depths; of a derivative by the input at place but,
// by those of the others and of the derivative by the output. Bounds are added up; only where that leads too deep are the tables looked
// at. Where it still does, products may be lost.
func (r *run) descend(in []int, but, output int) (low int, loses bool) {
	if low = r.sumDepths(in, but, output); low < floats.Lowest {
		if but != noTable {
			r.by[output].Measure(r.Back[output])
		}
		for i, t := range in {
			if i != but {
				r.depth[t].Measure(r.Tables[t])
			}
		}
		low = r.sumDepths(in, but, output)
		loses = low < floats.Lowest
	}
	if r.signed {
		low -= sumproduct.Cancelled
	}
	return low, loses
}

func (r *run) sumDepths(in []int, but, output int) (low int) {
	if but != noTable {
		low = r.by[output].Low
	}
	for i, t := range in {
		if i != but {
			low += r.depth[t].Low
		}
	}
	return low
}

// outside says whether a largest entry, given as bits, needs rescaling.
func outside(top uint64) bool {
	exp := int(top>>52) - 1023
	return exp < -margin || exp >= margin
}

// rescale divides data by the power of two of its largest entry, given as bits, and returns its exponent, and whether entries may
// be lost.
func rescale(data []float64, top uint64, d *sumproduct.Depth) (exp int64, loses bool) {
	if exp := floats.Exponent(top); d.Low-exp < floats.Lowest {
		d.Measure(data)
		loses = d.Low-exp < floats.Lowest
	}
	exp = floats.Rescale(data, top).Exp
	d.Low -= int(exp)
	return exp, loses
}

// spares says whether so many terms of a derivative by table k, lost or rounded where a float64 has no more digits, are nothing
// beside Z. Each is 2^(up−1022) at most in units of 2^exp, and has a share of Z of that times an entry of the table.
// Where derivatives themselves are wanted, every entry counts, however small it is beside Z.
func (r *run) spares(k int, terms float64, up int, exp int64) bool {
	if r.wanted != nil {
		return false
	}
	if r.signed || r.z.IsZero() {
		return !r.signed // no term that is not 0 has been lost on the way to a Z of 0
	}
	most := float64(up+sumproduct.Floor+upper(r.Tables[k])) + math.Log2(terms)
	return most+sumproduct.BesideZ <= float64(r.z.Exp-exp)
}

// upper is an exponent of 2 that all entries are below, at least 0.
func upper(data []float64) int {
	top, _, _ := floats.Extent(data)
	return max(0, top+1)
}
