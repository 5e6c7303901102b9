package einsum

// The kernel of the way back: one step's derivatives by its inputs, all in one pass over the full table.

import (
	"context"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// backKernel is a prepared step. Blocks are the forward kernel's; the loops around them are ordered so that the first
// of them, the common ones, are over indices shared by all inputs whose derivatives are needed. Different positions of
// these touch different entries of every derivative: they are the units that threads share out, and the sums within a
// unit have one order.
type backKernel struct {
	*kernel
	g       []float64 // ∂Z/∂out, contiguous over a block
	scalars []target
	vectors []target
	loops   []loop
	common  int // loops that are common
	units   int // Π of their dimensions
	rest    int // Π of the dimensions of the others: blocks per unit
	sums    int // values of the sum per unit
	parts   int // 1, or the dimension of the first index summed, when it is common
	workers []backWorker
}

// target is an input and its derivative.
type target struct {
	*operand
	into []float64 // nil where it is not needed
}

// loop is one axis of the output outside the block.
type loop struct {
	axis, dim, step int // number, dimension, stride of g
}

// prepare follows kernel.prepare of the same step.
func (b *backKernel) prepare(k *kernel, dims []int, s *contractionorder.Step, into [][]float64) {
	b.kernel, b.g = k, k.out
	b.scalars, b.vectors = b.scalars[:0], b.vectors[:0]
	for n := range k.operands {
		t := target{&k.operands[n], into[n]}
		if t.isScalar(k) {
			b.scalars = append(b.scalars, t)
		} else {
			b.vectors = append(b.vectors, t)
		}
	}
	b.parts = 1
	if len(s.Sum) > 0 {
		d := dims[s.Sum[0]]
		if b.everybody(into, func(o *operand) int { return o.sum[k.sums/d] }) { // the offset of its second value
			b.parts = d
		}
	}
	b.sums = k.sums / b.parts
	b.loops, b.units, b.rest = b.loops[:0], b.parts, 1
	for _, common := range []bool{true, false} {
		step := k.block
		for a := len(k.outer) - 1; a >= 0; a-- {
			if b.everybody(into, func(o *operand) int { return o.outer[a] }) == common {
				b.loops = append(b.loops, loop{a, k.outer[a], step})
				if common {
					b.units *= k.outer[a]
				} else {
					b.rest *= k.outer[a]
				}
			}
			step *= k.outer[a]
		}
		if common {
			b.common = len(b.loops)
		}
	}
}

func (t target) isScalar(k *kernel) bool {
	for _, o := range k.scalars {
		if o == t.operand {
			return true
		}
	}
	return false
}

// everybody says whether all operands whose derivative is needed vary along an axis, on which step is their stride.
func (b *backKernel) everybody(into [][]float64, step func(*operand) int) bool {
	for n := range b.operands {
		if into[n] != nil && step(&b.operands[n]) == 0 {
			return false
		}
	}
	return true
}

// run adds every derivative up.
func (b *backKernel) run(ctx context.Context, threads int) error {
	perUnit := b.block * b.sums * b.rest * 3 * (len(b.vectors) + 1)
	chunk := max(1, chunkWork/perUnit)
	chunks := (b.units + chunk - 1) / chunk
	threads = min(threads, chunks)
	for len(b.workers) < threads {
		b.workers = append(b.workers, backWorker{})
	}
	for i := range threads {
		b.workers[i].start(b)
	}
	return sumproduct.Share(ctx, threads, chunks, func(w, c int) error {
		for u := c * chunk; u < min((c+1)*chunk, b.units); u++ {
			b.workers[w].unit(ctx, b, u)
		}
		return nil
	})
}
