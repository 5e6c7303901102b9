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
	program *compiled.Program // of the tape, for the way back; nil: there is none
	ctx     context.Context
	threads int
	extra   []compiled.Memory // of goroutines beyond the first
	// keepsTables is set if there is a way back. Then a factor of 0 does not end the run: derivatives may still differ from 0.
	keepsTables bool

	depth       []sumproduct.Depth // by table
	shift       []int64            // by table: exponent of the power of two it was divided by; nil without a way back
	derivatives []derivative       // by table; nil without a way back

	// Z is base · 2^exp · Π factors.
	base         scaled.Number
	exp          int64
	factors      []scaled.Number // the entries of tables of one entry, and dimensions of indices without tables
	factorTables []int           // by factor: its table, or noTable
	seeds        []scaled.Number // by factor: ∂Z by it
	z            scaled.Number

	zero   bool // Z is 0, and nothing else matters
	lost   bool // a product of entries may have been too small
	signed bool // an entry is below 0
}

// derivative is ∂Z/∂table = Back[table]·2^exp.
type derivative struct {
	isSet bool // it is computed and not 0
	exp   int64
	sumproduct.Depth
}

// newRun returns a run without tables. program is for the way back; nil: there is none.
func newRun(t *tape, program *compiled.Program) run {
	tables := len(t.isNeeded)
	r := run{
		tape:        t,
		program:     program,
		keepsTables: program != nil,
		depth:       make([]sumproduct.Depth, tables),
	}
	r.Tables = make([][]float64, tables)
	if program != nil {
		r.shift, r.derivatives, r.Back = make([]int64, tables), make([]derivative, tables), make([][]float64, tables)
		r.Memory = r.Beside(program)
	}
	return r
}

// begin resets the run. Z begins as base, and is multiplied by further factors (addFactor, addPower).
func (r *run) begin(base scaled.Number) {
	r.base, r.exp, r.factors, r.factorTables = base, 0, r.factors[:0], r.factorTables[:0]
	r.zero, r.lost, r.signed = base.IsZero() && !r.keepsTables, false, false
	clear(r.shift)
}

// addFactor multiplies Z by x, the only entry of a table.
func (r *run) addFactor(table int, x float64) {
	r.factors, r.factorTables = append(r.factors, scaled.FromFloat(x)), append(r.factorTables, table)
	if x == 0 {
		r.setZero()
	}
}

// addPower multiplies Z by 2^exp, by which a table was divided.
func (r *run) addPower(table int, exp int64) {
	r.exp += exp
	if r.keepsTables {
		r.shift[table] = exp
	}
}

// setZero ends the run with Z = 0, unless there is a way back. Then the run goes on, and Z comes out as 0.
func (r *run) setZero() { r.zero = !r.keepsTables }

// total returns Z, once all tables are computed.
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

// cofactors returns ∂Z/∂x for every factor x: the product of all other factors, without division.
func (r *run) cofactors() []scaled.Number {
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

// keepInRange rescales the table of step n if necessary, and notes whether digits may have been lost. top has the bits of its largest
// entry.
func (r *run) keepInRange(n int, top uint64) error {
	s, out := r.steps[n], len(r.h.Edges)+n
	d := &r.depth[out]
	low, loses := r.productDepth(s.In, noTable, 0)
	*d = sumproduct.Depth{Low: low}
	switch {
	case top >= floats.Infinity:
		return fmt.Errorf("%w: in the elimination of index %v", sumproduct.ErrNotFinite, s.Sum)
	case len(s.Out) == 0:
		r.addFactor(out, r.Tables[out][0])
	case top == 0:
		r.setZero()
	case needsRescaling(top):
		exp, rescalingLoses := rescale(r.Tables[out], top, d)
		r.addPower(out, exp)
		loses = loses || rescalingLoses
	}
	r.lost = r.lost || loses
	d.Low = min(d.Low, 0)
	return nil
}

// differentiate computes the derivatives by the inputs of step n from that by its output. Goroutines share the units of a large step.
func (r *run) differentiate(n int) error {
	s := &r.program.Steps[n]
	chunk := max(1, chunkWork/(s.Size/s.Blocks*s.Sums*len(s.In)))
	if chunk = (chunk + s.Unit - 1) / s.Unit * s.Unit; chunk >= s.Blocks {
		r.program.BackwardIn(&r.Memory, n, 0, s.Blocks)
		return nil
	}
	chunks := (s.Blocks + chunk - 1) / chunk
	for len(r.extra) < min(r.threads, chunks)-1 {
		r.extra = append(r.extra, r.Beside(r.program))
	}
	return sumproduct.Share(r.ctx, r.threads, chunks, func(worker, c int) error {
		m := &r.Memory
		if worker > 0 {
			m = &r.extra[worker-1]
		}
		r.program.BackwardIn(m, n, c*chunk, min((c+1)*chunk, s.Blocks))
		return nil
	})
}

// seed sets the derivative by a table of one entry, with which the way back begins.
func (r *run) seed(table int, by scaled.Number) {
	r.Back[table][0] = by.Mant
	r.derivatives[table] = derivative{isSet: true, exp: by.Exp}
}

// stepBack computes the needed derivatives by the inputs of step n from the derivative by its output, which is set. It keeps them in range,
// and notes whether digits may have been lost.
func (r *run) stepBack(n int) error {
	s, out := r.steps[n], len(r.h.Edges)+n
	exp := r.derivatives[out].exp - r.shift[out]
	for i, k := range s.In {
		if !r.isNeeded[k] {
			continue
		}
		clear(r.Back[k])
		low, loses := r.productDepth(s.In, i, out)
		r.derivatives[k] = derivative{exp: exp, Depth: sumproduct.Depth{Low: max(low, sumproduct.Smallest)}}
		if loses && !r.lost {
			above := exponentAbove(r.Back[out])
			for _, t := range s.In {
				above += exponentAbove(r.Tables[t])
			}
			r.lost = !r.isNegligible(k, s.Full, above, exp)
		}
	}
	if err := r.differentiate(n); err != nil {
		return err
	}
	for _, k := range s.In {
		if !r.isNeeded[k] {
			continue
		}
		d := &r.derivatives[k]
		top := floats.LargestBits(r.Back[k])
		switch {
		case top >= floats.Infinity:
			return fmt.Errorf("%w: in the derivative by table %d", sumproduct.ErrNotFinite, k)
		case top == 0:
			continue
		case needsRescaling(top):
			shift, loses := rescale(r.Back[k], top, &d.Depth)
			d.exp += shift
			r.lost = r.lost || loses && !r.isNegligible(k, float64(len(r.Back[k])), 0, d.exp)
		}
		d.isSet, d.Low = true, min(max(d.Low, sumproduct.Smallest), 0)
	}
	return nil
}

// checkProducts notes whether products of an entry of a table and the derivative by it may be lost.
func (r *run) checkProducts(table int) {
	t, by := &r.depth[table], &r.derivatives[table]
	if t.Low+by.Low < floats.Lowest {
		t.Measure(r.Tables[table])
		by.Measure(r.Back[table])
		r.lost = r.lost || t.Low+by.Low < floats.Lowest && !r.isNegligible(table, float64(len(r.Tables[table])), 0, by.exp)
	}
}

// sumOver returns Σ t[y]·∂Z/∂t[y] over the entries y of table t that have value x of an index. The index has dim values, whose entries are
// inner apart.
func (r *run) sumOver(table, x, dim, inner int) scaled.Number {
	t, derivative := r.Tables[table], r.Back[table]
	sum := 0.0
	for at := x * inner; at < len(t); at += inner * dim {
		for j := at; j < at+inner; j++ {
			sum += float64(t[j] * derivative[j])
		}
	}
	return scaled.Make(sum, r.derivatives[table].exp)
}

// productDepth returns a lower bound 2^low of the products of entries of the tables in, and of their sums. If skipped is not noTable, the
// product is that of the derivative by in[skipped]: it has the derivative by the table output in place of that table. low is the sum
// of the tables' depths. If that is too deep, the tables are measured. If it still is, loses is true: products may be lost.
func (r *run) productDepth(in []int, skipped, output int) (low int, loses bool) {
	if low = r.sumDepths(in, skipped, output); low < floats.Lowest {
		if skipped != noTable {
			r.derivatives[output].Measure(r.Back[output])
		}
		for i, t := range in {
			if i != skipped {
				r.depth[t].Measure(r.Tables[t])
			}
		}
		low = r.sumDepths(in, skipped, output)
		loses = low < floats.Lowest
	}
	if r.signed {
		low -= sumproduct.Cancelled
	}
	return low, loses
}

// sumDepths returns the sum of the depths of the tables that productDepth multiplies.
func (r *run) sumDepths(in []int, skipped, output int) (low int) {
	if skipped != noTable {
		low = r.derivatives[output].Low
	}
	for i, t := range in {
		if i != skipped {
			low += r.depth[t].Low
		}
	}
	return low
}

// needsRescaling reports whether a table is outside the margin. top has the bits of its largest entry.
func needsRescaling(top uint64) bool {
	exp := int(top>>52) - 1023
	return exp < -margin || exp >= margin
}

// rescale divides data by the power of two of its largest entry, and returns the exponent of that power. top has the bits of the largest
// entry. loses is true if small entries may lose digits. d is the depth of data, and is updated.
func rescale(data []float64, top uint64, d *sumproduct.Depth) (exp int64, loses bool) {
	if exp := floats.Exponent(top); d.Low-exp < floats.Lowest {
		d.Measure(data)
		loses = d.Low-exp < floats.Lowest
	}
	exp = floats.Rescale(data, top).Exp
	d.Low -= int(exp)
	return exp, loses
}

// isNegligible reports whether the loss of some terms of a derivative by table k, where a float64 has no more digits, changes Z by less
// than 2^−BesideZ of it. Each lost term is below 2^(above−1022), in units of 2^exp. Its share of Z is that times an entry of the table.
// If derivatives themselves are wanted, no loss is negligible.
func (r *run) isNegligible(k int, terms float64, above int, exp int64) bool {
	if r.wanted != nil {
		return false
	}
	if r.signed || r.z.IsZero() {
		return !r.signed // no term that is not 0 has been lost on the way to a Z of 0
	}
	loss := float64(above+sumproduct.Floor+exponentAbove(r.Tables[k])) + math.Log2(terms) // log2 of a bound
	return loss+sumproduct.BesideZ <= float64(r.z.Exp-exp)
}

// exponentAbove returns an exponent e ≥ 0 such that all entries are below 2^e in size.
func exponentAbove(data []float64) int {
	top, _, _ := floats.Extent(data)
	return max(0, top+1)
}
