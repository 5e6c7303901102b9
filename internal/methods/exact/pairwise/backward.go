package pairwise

// The operations of the backward pass.

import (
	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/base/kernel"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// executeBackward executes one operation of the backward pass, on adjoints. The adjoint of table T is ∂Z/∂T = scale · data of its buffer.
// o.a and o.b are the numbers of the buffers with the operands, and o.out is that of the result. The value Z is valueScale · value.
func (r *run) executeBackward(o *op) error {
	b := r.buffers
	switch o.code {
	case opRootAdjoint, opScalarAdjoint:
		adjoint := buffer{data: r.arena.Get(1), owned: true, log2Bound: 1, scale: r.valueScale} // of the value itself: ∂Z/∂value
		adjoint.data[0] = 1
		if o.code == opScalarAdjoint { // Z / scalar
			adjoint.scale = r.valueScale.Mul(r.value).Div(scaled.FromFloat(b[o.a].data[0]))
		}
		b[o.out] = adjoint
	case opPassAdjoint:
		b[o.out] = b[o.a]
		b[o.a].owned = false // the entries belong to o.out now
	case opClearSum:
		table := o.out % len(r.shape.scopes) // of n tables, buffer 2n+table has the sum of its adjoint
		b[o.out] = buffer{data: r.arena.Get(int(r.shape.sizes[table])), owned: true}
		clear(b[o.out].data)
	case opSumAdjoint:
		r.stats.Flops += float64(len(b[o.a].data))
		r.addScaled(&b[o.out], &b[o.a])
	case opAdjoint:
		if err := r.mergeAdjoint(o); err != nil {
			return err
		}
	case opReadMarginals:
		r.readMarginals(o)
	}
	return r.ctx.Err()
}

// mergeAdjoint computes the adjoint ∂Z/∂A of a table A (buffer o.out). Table C is the merge of A and B, so ∂Z/∂A is the adjoint of C
// (buffer o.a) times B (buffer o.b), summed. An adjoint is scale · data of its buffer. If terms are lost that may count, r.stats.Lost
// becomes true. r.merge leaves the factor that it has divided data by in r.mergeFactor, and whether it has lost terms in r.mergeLoses.
func (r *run) mergeAdjoint(o *op) error {
	adjointC := r.buffers[o.a]
	var unused scaled.Number // in place of the scale of the slice, which adjoints do not change
	if err := r.merge(o, &unused); err != nil {
		return err
	}

	// C = A · B / factor of C, so ∂Z/∂A is divided by that factor, too. An entry of 1 in the sum of products stands for unit in ∂Z/∂A.
	tableC := o.a - len(r.shape.scopes) // buffers of adjoints follow those of tables
	unit := adjointC.scale.Div(r.factors[tableC])
	adjointA := &r.buffers[o.out]
	adjointA.scale = unit.Mul(r.mergeFactor)

	// What B and the adjoint of C have lost is missing from the value as well, and noted there. What this merge loses is noted here.
	adjointA.Lost = false
	if r.mergeLoses {
		tableA := o.out - len(r.shape.scopes)
		// Lost as a product, in units of unit, or when data was divided by the factor, in units of the scale.
		isNegligible := r.areNegligible(tableA, o.spec.work, unit) && r.areNegligible(tableA, o.spec.work, adjointA.scale)
		r.stats.Lost = r.stats.Lost || !isNegligible
	}
	return nil
}

// addScaled adds the adjoint x of a slice to the sum over slices. Each is scale · data. The sum gets the larger of the two scales. So
// nothing overflows: data are multiplied only by ratios of a scale to a scale of at least the same exponent, which are below 2.
func (r *run) addScaled(sum, x *buffer) {
	if x.scale.IsZero() {
		return
	}
	if sum.scale.IsZero() { // x is the first
		copy(sum.data, x.data)
		sum.scale = x.scale
		sum.log2Bound = x.log2Bound
		sum.Depth = x.Depth
		return
	}

	r.lowerDepth(sum, x)
	if x.scale.Exp > sum.scale.Exp {
		factor := sum.scale.Div(x.scale).Float64()
		for i := range sum.data {
			sum.data[i] *= factor
		}
		sum.scale = x.scale
	}
	kernel.Add(sum.data, x.scale.Div(sum.scale).Float64(), x.data)
	sum.log2Bound = max(sum.log2Bound, x.log2Bound) + 2 // 1 for a factor below 2, and 1 for a sum of two
	sum.Low = r.sumDepth(min(sum.Low, x.Low))
	sum.Measured = false
	sum.scale = sum.scale.Mul(r.bringIntoRange(sum)) // the factor that data was divided by
}

// lowerDepth prepares the sum of two adjoints, each scale · data. The sum will have the larger scale, so the entries of the adjoint with
// the smaller scale will be divided by the ratio of the scales. lowerDepth lowers the bound 2^Low of these entries by the ratio, and notes
// a loss if they may then be too small for a float64.
func (r *run) lowerDepth(a, b *buffer) {
	smaller, shift := a, int(min(b.scale.Exp-a.scale.Exp, 4000)) // more makes no difference
	if shift < 0 {
		smaller, shift = b, int(min(a.scale.Exp-b.scale.Exp, 4000))
	}

	shift++ // mantissas are in [1, 2)
	if smaller.Low-shift < floats.Lowest {
		smaller.measureDepth()
		r.stats.Lost = r.stats.Lost || smaller.Low-shift < floats.Lowest
	}
	smaller.Low -= shift
}
