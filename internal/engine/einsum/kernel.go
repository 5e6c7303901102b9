package einsum

// The kernel: one step of an elimination, out[o] = Σ_s Π_k in_k[o, s].

import (
	"context"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

const (
	minBlock  = 64      // fewest entries of a block, so that the loops over them dominate
	blockSize = 512     // preferred entries of a block, so that all operands stay in the first cache
	maxBlock  = 4096    // most entries of a block, unless one axis is longer
	chunkWork = 1 << 17 // multiplications of a chunk, which is what threads share, and after which the context is looked at
)

// kernel holds a prepared step. The output is cut into blocks of its fastest axes; within a block every operand is
// one number, a contiguous run or, where it lacks some of the axes, a run through an index list; blocks are independent.
type kernel struct {
	out      []float64
	block    int   // entries of a block
	blocks   int   // number of blocks
	sums     int   // Π of the dimensions summed out
	outer    []int // dimensions of the axes outside the block
	operands []operand
	scalars  []*operand // those that are one number in a block
	vectors  []*operand // the others
	stride   []int      // scratch: stride by index of one operand
	workers  []worker
}

// operand is an input of the step, with the positions of its entries.
type operand struct {
	data  []float64
	outer []int   // stride on every outer axis
	sum   []int   // offset of every value summed over
	index []int32 // offsets within a block; empty when contiguous or one number
}

// prepare computes strides and offsets of a step. Tables may have their axes in any sequence; outputs of earlier steps
// have theirs in this one, so that their runs are contiguous.
func (k *kernel) prepare(t *tape, s *contractionorder.Step, tables [][]float64, out []float64) {
	dims := t.h.Dims
	if k.stride == nil {
		k.stride = make([]int, len(dims))
	}
	k.out = out
	k.sums = 1
	for _, i := range s.Sum {
		k.sums *= dims[i]
	}
	k.operands = grow(k.operands, len(s.In))
	for n, in := range s.In {
		k.operands[n].prepare(dims, s, tables[in], t.scope(in), k.stride)
	}
	k.outer = k.outer[:0]
	for _, i := range s.Out {
		k.outer = append(k.outer, dims[i])
	}
	split := k.split(k.outer)
	k.block = 1
	for _, d := range k.outer[split:] {
		k.block *= d
	}
	k.blocks = len(out) / k.block
	k.scalars, k.vectors = k.scalars[:0], k.vectors[:0]
	for n := range k.operands {
		o := &k.operands[n]
		if o.layOut(k.outer, split) == scalar {
			k.scalars = append(k.scalars, o)
		} else {
			k.vectors = append(k.vectors, o)
		}
	}
	k.outer = k.outer[:split]
}

// split chooses the first axis within a block: among blocks of minBlock to maxBlock entries the one with the fewest
// operands that need an index list, the one next to blockSize among those. A smaller output is one block.
func (k *kernel) split(dims []int) int {
	best, bestIndexed, size := 0, len(k.operands)+1, 1
	for a := len(dims) - 1; a >= 0; a-- {
		size *= dims[a]
		if size > maxBlock && bestIndexed <= len(k.operands) {
			break
		}
		if size < minBlock && a > 0 {
			continue
		}
		indexed := 0
		for n := range k.operands {
			if k.operands[n].accessOf(dims, a) == indirect {
				indexed++
			}
		}
		if indexed < bestIndexed || indexed == bestIndexed && size <= blockSize {
			best, bestIndexed = a, indexed
		}
		if size >= blockSize && bestIndexed == 0 {
			break
		}
	}
	return best
}

// grow returns list with n elements, keeping those beyond its length that its memory still holds.
func grow(list []operand, n int) []operand {
	for cap(list) < n {
		list = append(list[:cap(list)], operand{})
	}
	return list[:n]
}

// prepare computes the strides of a table on every axis of the output and its offset for every value summed over.
// stride is scratch by index, all 0 before and after.
func (o *operand) prepare(dims []int, s *contractionorder.Step, data []float64, scope, stride []int) {
	o.data = data
	sumproduct.Strides(stride, dims, scope)
	o.outer = o.outer[:0]
	for _, i := range s.Out {
		o.outer = append(o.outer, stride[i])
	}
	o.sum = sumproduct.Offsets(o.sum[:0], dims, s.Sum, stride)
	for _, i := range scope {
		stride[i] = 0
	}
}

// access is how an operand varies within a block.
type access int

const (
	scalar   access = iota // not at all
	direct                 // as the output does
	indirect               // otherwise: by an index list
)

// accessOf returns how the operand varies over the output's axes from split on. dims has the dimensions of all its axes.
func (o *operand) accessOf(dims []int, split int) access {
	isScalar, isDirect, run := true, true, 1
	for a := len(dims) - 1; a >= split; a-- {
		isScalar = isScalar && o.outer[a] == 0
		isDirect = isDirect && o.outer[a] == run
		run *= dims[a]
	}
	switch {
	case isScalar:
		return scalar
	case isDirect:
		return direct
	}
	return indirect
}

// layOut makes the operand's index list, if it needs one, for blocks of the axes from split on. outer keeps the strides of the axes before
// split.
func (o *operand) layOut(dims []int, split int) access {
	kind := o.accessOf(dims, split)
	o.index = o.index[:0]
	if kind == indirect {
		o.index = append(o.index, 0)
		for a := split; a < len(dims); a++ {
			o.index = sumproduct.Spread(o.index, dims[a], o.outer[a])
		}
	}
	o.outer = o.outer[:split]
	return kind
}

// run executes the step and returns the bits of the largest absolute value of the output.
func (k *kernel) run(ctx context.Context, threads int) (uint64, error) {
	perBlock := k.block * k.sums * (len(k.vectors) + 1)
	chunk := max(1, chunkWork/perBlock)
	chunks := (k.blocks + chunk - 1) / chunk
	threads = min(threads, chunks)
	for len(k.workers) < threads {
		k.workers = append(k.workers, worker{})
	}
	for i := range threads {
		k.workers[i].reset(k)
	}
	err := sumproduct.Share(ctx, threads, chunks, func(w, c int) error {
		k.workers[w].computeBlocks(k, c*chunk, min((c+1)*chunk, k.blocks))
		return nil
	})
	var top uint64
	for i := range threads {
		top = max(top, k.workers[i].top)
	}
	return top, err
}
