package pairwise

// The operations of the backward pass.

import (
	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/base/kernel"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// executeBackward does one operation on adjoints. The adjoint of table T is ∂Z/∂T = scale · data.
func (r *run) executeBackward(o *op) error {
	b := r.buffers
	switch o.code {
	case opRootAdjoint, opScalarAdjoint:
		out := buffer{data: r.arena.Get(1), owned: true, log2Bound: 1, scale: r.valueScale}
		out.data[0] = 1
		if o.code == opScalarAdjoint {
			out.scale = r.valueScale.Mul(r.value).Div(scaled.FromFloat(b[o.a].data[0]))
		}
		b[o.out] = out
	case opPassAdjoint:
		b[o.out] = b[o.a]
		b[o.a].owned = false
	case opClearSum:
		size := int(r.shape.sizes[o.out%len(r.shape.scopes)])
		b[o.out] = buffer{data: r.arena.Get(size), owned: true}
		clear(b[o.out].data)
	case opSumAdjoint:
		r.stats.Flops += float64(len(b[o.a].data))
		r.addScaled(&b[o.out], &b[o.a])
	case opAdjoint:
		a := b[o.a]
		var unused scaled.Number // an adjoint of 0 ends nothing
		if err := r.merge(o, &unused); err != nil {
			return err
		}
		// a is the adjoint of a table C, which is the product of its two tables divided by C's factor.
		unit := a.scale.Div(r.factors[o.a-len(r.shape.scopes)])
		out := &b[o.out]
		out.scale = unit.Mul(r.mergeFactor)
		out.Lost = false // losses of its tables are missing from the value as well

		if r.mergeLoses {
			table := o.out - len(r.shape.scopes)
			r.stats.Lost = r.stats.Lost || !r.areNegligible(table, o.spec.work, unit) ||
				!r.areNegligible(table, o.spec.work, out.scale)
		}
	case opReadMarginals:
		r.readMarginals(o)
	}
	return r.ctx.Err()
}

// addScaled adds scale · data of x to sum. It keeps the larger of both scales, so that nothing overflows.
func (r *run) addScaled(sum, x *buffer) {
	if x.scale.IsZero() {
		return
	}
	if sum.scale.IsZero() {
		copy(sum.data, x.data)
		sum.scale = x.scale
		sum.log2Bound = x.log2Bound
		sum.Depth = x.Depth
		return
	}

	r.lowerDepth(sum, x)

	if x.scale.Exp > sum.scale.Exp {
		f := sum.scale.Div(x.scale).Float64()
		for i := range sum.data {
			sum.data[i] *= f
		}
		sum.scale = x.scale
	}

	kernel.Add(sum.data, x.scale.Div(sum.scale).Float64(), x.data)
	sum.log2Bound = max(sum.log2Bound, x.log2Bound) + 2
	sum.Low = r.sumDepth(min(sum.Low, x.Low))
	sum.Measured = false
	sum.scale = sum.scale.Mul(r.bringIntoRange(sum))
}

// lowerDepth takes in that the table with the smaller scale is to be brought to the larger scale: its entries get smaller. It notes a
// loss if they then are too small for a float64.
func (r *run) lowerDepth(a, b *buffer) {
	smaller, shift := a, int(min(b.scale.Exp-a.scale.Exp, 4000))
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
