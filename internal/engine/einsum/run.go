package einsum

// Runs: tables along the steps of a tape, derivatives along the steps in reverse, all of them in the range of float64.

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
	program *compiled.Program // the steps of the tape, for the backward pass; nil if there is none
	ctx     context.Context
	threads int
	extra   []compiled.Memory // memory of goroutines beyond the first
	// keepsTables is set if there is a backward pass. Then a factor of 0 does not end the run: derivatives may still differ from 0.
	keepsTables bool

	depth       []sumproduct.Depth // by table: how far its entries are below 1
	shift       []int64            // by table: exponent of the power of two it was divided by; nil without a backward pass
	derivatives []derivative       // by table; nil without a backward pass

	// Z is base · 2^exp · Π factors.
	base         scaled.Number
	exp          int64
	factors      []scaled.Number // the entries of tables of one entry, and dimensions of indices without tables
	factorTables []int           // by factor: its table, or noTable
	factorMemory []scaled.Number // memory of factorDerivatives
	z            scaled.Number

	isZero      bool // Z is 0, and nothing else matters
	isLossy     bool // a product of entries may have been too small for float64
	hasNegative bool // an entry is below 0
}

// derivative is ∂Z/∂table = Back[table]·2^exp.
type derivative struct {
	isSet bool // it is computed and not 0
	exp   int64
	sumproduct.Depth
}

// newRun returns a run without tables. program has the steps for the backward pass; it is nil if there is none.
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
		r.shift, r.derivatives, r.Derivatives = make([]int64, tables), make([]derivative, tables), make([][]float64, tables)
		r.Memory = r.WithOwnScratch(program) // the same tables and derivatives, with scratch for the backward pass
	}
	return r
}

// reset begins the run with Z = base, which addFactor and addPower multiply further.
func (r *run) reset(base scaled.Number) {
	r.base, r.exp, r.factors, r.factorTables = base, 0, r.factors[:0], r.factorTables[:0]
	r.isZero, r.isLossy, r.hasNegative = base.IsZero() && !r.keepsTables, false, false
	clear(r.shift)
}

// addFactor multiplies Z by x, the only entry of a table or, if table is noTable, the dimension of an index.
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

// setZero ends the run with Z = 0, unless there is a backward pass. Then the run goes on, and Z comes out as 0.
func (r *run) setZero() { r.isZero = !r.keepsTables }

// computeZ returns Z, once all tables are computed.
func (r *run) computeZ() scaled.Number {
	r.z = scaled.Number{}
	if !r.isZero {
		r.z = r.base.Mul(scaled.Make(1, r.exp))
		for _, x := range r.factors {
			r.z = r.z.Mul(x)
		}
	}
	return r.z
}

// factorDerivatives returns ∂Z/∂x for every factor x of Z: the product of all other factors, from the products of those before it and of
// those behind it, without division.
func (r *run) factorDerivatives() []scaled.Number {
	derivatives := r.factorMemory[:0]
	prefix := r.base.Mul(scaled.Make(1, r.exp))
	for _, x := range r.factors {
		derivatives = append(derivatives, prefix)
		prefix = prefix.Mul(x)
	}
	suffix := scaled.One
	for i := len(derivatives) - 1; i >= 0; i-- {
		derivatives[i] = derivatives[i].Mul(suffix)
		suffix = suffix.Mul(r.factors[i])
	}
	r.factorMemory = derivatives
	return derivatives
}

// keepInRange rescales the output of step n if its largest entry, whose bits are top, is too far from 1. It sets the output's depth, a
// lower bound of its entries but 0, and r.isLossy if digits may have been lost. An output of one entry becomes a factor of Z. The error is
// ErrNotFinite.
func (r *run) keepInRange(n int, top uint64) error {
	s, out := r.steps[n], len(r.h.Edges)+n
	d := &r.depth[out]
	low, loses := r.productDepth(s.In, noTable, noTable) // of the output: no table is replaced by a derivative
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
	r.isLossy = r.isLossy || loses
	d.Low = min(d.Low, 0)
	return nil
}

// addDerivatives adds to the needed derivatives by the inputs of step n, from that by its output. Goroutines share the blocks of a large
// step, in chunks of whole units (compiled.Step.Unit): different units add to different entries.
func (r *run) addDerivatives(n int) error {
	s := &r.program.Steps[n]
	blockWork := s.Size / s.Blocks * s.Sums * len(s.In) // a multiplication for each input of each term of a block
	chunk := max(1, chunkWork/blockWork)                // blocks of a chunk
	chunk = (chunk + s.Unit - 1) / s.Unit * s.Unit      // whole units
	if chunk >= s.Blocks {
		r.program.BackwardBlocks(&r.Memory, n, 0, s.Blocks)
		return nil
	}
	chunks := (s.Blocks + chunk - 1) / chunk
	for len(r.extra) < min(r.threads, chunks)-1 {
		r.extra = append(r.extra, r.WithOwnScratch(r.program))
	}
	return sumproduct.RunChunks(r.ctx, r.threads, chunks, func(worker, c int) error {
		m := &r.Memory
		if worker > 0 {
			m = &r.extra[worker-1]
		}
		r.program.BackwardBlocks(m, n, c*chunk, min((c+1)*chunk, s.Blocks))
		return nil
	})
}

// setScalarDerivative sets the derivative by a table of one entry, from which the backward pass begins.
func (r *run) setScalarDerivative(table int, d scaled.Number) {
	r.Derivatives[table][0] = d.Mant
	r.derivatives[table] = derivative{isSet: true, exp: d.Exp}
}

// differentiateStep computes the needed derivatives by the inputs of step n from the derivative by its output, which is set. It rescales
// those that are too far from 1, and sets r.isLossy if digits may have been lost. The error is the context's, or ErrNotFinite.
func (r *run) differentiateStep(n int) error {
	s := r.steps[n]
	for i, t := range s.In {
		if r.isNeeded[t] {
			r.beginDerivative(n, i)
		}
	}
	if err := r.addDerivatives(n); err != nil {
		return err
	}
	for _, t := range s.In {
		if r.isNeeded[t] {
			if err := r.endDerivative(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// beginDerivative sets the derivative by the i-th input of step n to 0, with its exponent and a lower bound of the terms that it will have.
// It sets r.isLossy if terms may be too small for float64 and are not negligible.
func (r *run) beginDerivative(n, i int) {
	s, out := r.steps[n], len(r.h.Edges)+n
	t := s.In[i]
	exp := r.derivatives[out].exp - r.shift[out] // that of ∂Z/∂output before the output was divided by 2^shift
	clear(r.Derivatives[t])
	low, loses := r.productDepth(s.In, i, out)
	r.derivatives[t] = derivative{exp: exp, Depth: sumproduct.Depth{Low: max(low, sumproduct.Smallest)}}
	if loses && !r.isLossy {
		above := exponentAbove(r.Derivatives[out])
		for _, u := range s.In {
			above += exponentAbove(r.Tables[u])
		}
		r.isLossy = !r.isNegligible(t, s.FullSize, above, exp)
	}
}

// endDerivative brings the derivative by a table, which is computed, into range, and marks it as set unless it is 0.
func (r *run) endDerivative(t int) error {
	d := &r.derivatives[t]
	top := floats.LargestBits(r.Derivatives[t])
	switch {
	case top >= floats.Infinity:
		return fmt.Errorf("%w: in the derivative by table %d", sumproduct.ErrNotFinite, t)
	case top == 0:
		return nil
	case needsRescaling(top):
		shift, loses := rescale(r.Derivatives[t], top, &d.Depth)
		d.exp += shift
		// 0: what a rescaled entry loses is below 2^Floor in units of 2^d.exp.
		r.isLossy = r.isLossy || loses && !r.isNegligible(t, float64(len(r.Derivatives[t])), 0, d.exp)
	}
	d.isSet, d.Low = true, min(max(d.Low, sumproduct.Smallest), 0) // no entry but 0 is below 2^Smallest; a depth is at most 0
	return nil
}

// checkMarginalLoss sets r.isLossy if products of an entry of a table and the derivative by it may be too small for float64. Marginals are
// sums of these products. The entries of a table but 0 are 2^Low or more (Depth), where Low is a bound until the table is measured.
func (r *run) checkMarginalLoss(table int) {
	depth, derivative := &r.depth[table], &r.derivatives[table]
	if depth.Low+derivative.Low >= floats.Lowest {
		return
	}
	depth.Measure(r.Tables[table])
	derivative.Measure(r.Derivatives[table])
	loses := depth.Low+derivative.Low < floats.Lowest
	// 0: what a product of the two loses is below 2^Floor in units of 2^exp.
	r.isLossy = r.isLossy || loses && !r.isNegligible(table, float64(len(r.Tables[table])), 0, derivative.exp)
}

// marginal returns Σ t[y]·∂Z/∂t[y] over the entries y of table t that have value x of an index. The index has dim values, whose entries are
// stride apart.
func (r *run) marginal(table, x, dim, stride int) scaled.Number {
	t, derivative := r.Tables[table], r.Derivatives[table]
	sum := 0.0
	for begin := x * stride; begin < len(t); begin += stride * dim {
		for y := begin; y < begin+stride; y++ {
			sum += float64(t[y] * derivative[y])
		}
	}
	return scaled.Make(sum, r.derivatives[table].exp)
}

// productDepth returns an exponent low such that all products of entries of the tables in, but 0, and their sums are 2^low or more. If
// skipped is not noTable, the products are those of the derivative by in[skipped]: the derivative by the table output takes the place of
// that table.
//
// low is the sum of the tables' depths. If that is below what float64 holds, the tables are measured. If it still is, loses is true:
// products may be lost.
func (r *run) productDepth(in []int, skipped, output int) (low int, loses bool) {
	if low = r.sumDepths(in, skipped, output); low < floats.Lowest {
		if skipped != noTable {
			r.derivatives[output].Measure(r.Derivatives[output])
		}
		for i, t := range in {
			if i != skipped {
				r.depth[t].Measure(r.Tables[t])
			}
		}
		low = r.sumDepths(in, skipped, output)
		loses = low < floats.Lowest
	}
	if r.hasNegative { // sums may be smaller than their terms
		low -= sumproduct.Cancelled
	}
	return low, loses
}

// sumDepths returns the sum of the depths (lower bounds of the exponents of entries) of some tables. If skipped is noTable, they are the
// tables in. Otherwise the derivative by the table output takes the place of in[skipped].
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

// needsRescaling reports whether the largest entry of a table, whose bits are top, is not within 2^±margin.
func needsRescaling(top uint64) bool {
	exp := int(top>>52) - 1023 // of a float64: its upper bits, less their bias
	return exp < -margin || exp >= margin
}

// rescale divides data by the power of two of its largest entry, whose bits are top, and returns the exponent of that power. loses is true
// if small entries may lose digits. d is the depth of data, and is updated: all entries but 0 are 2^d.Low or more, and Measure makes that
// bound exact.
func rescale(data []float64, top uint64, d *sumproduct.Depth) (exp int64, loses bool) {
	if exp := floats.Exponent(top); d.Low-exp < floats.Lowest {
		d.Measure(data)
		loses = d.Low-exp < floats.Lowest
	}
	exp = floats.Rescale(data, top).Exp
	d.Low -= int(exp)
	return exp, loses
}

// isNegligible reports whether a derivative by table k may lack the given number of terms without a change of Z by more than 2^−BesideZ of
// it. Each lost term is below 2^(above+Floor) in units of 2^exp. It changes Z by that, times an entry of the table. No loss is negligible
// if derivatives themselves are wanted, or if entries are below 0.
func (r *run) isNegligible(k int, terms float64, above int, exp int64) bool {
	if r.wanted != nil || r.hasNegative {
		return false
	}
	if r.z.IsZero() {
		return true // no term that is not 0 has been lost on the way to a Z of 0
	}
	log2Loss := float64(above+sumproduct.Floor+exponentAbove(r.Tables[k])) + math.Log2(terms)
	return log2Loss+sumproduct.BesideZ <= float64(r.z.Exp-exp)
}

// exponentAbove returns an exponent e ≥ 0 such that all entries are below 2^e in size.
func exponentAbove(data []float64) int {
	top, _, _ := floats.Extent(data) // the exponent of the largest entry
	return max(0, top+1)
}
