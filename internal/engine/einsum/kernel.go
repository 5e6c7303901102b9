package einsum

// The kernel: one step of an elimination, out[o] = Σ_s Π_k in_k[o, s].

import (
	"context"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

const (
	minBlock       = 64      // fewest entries of a block, so that the loops over them dominate
	preferredBlock = 512     // preferred entries of a block, so that all operands stay in the first cache
	maxBlock       = 4096    // most entries of a block, unless one axis is longer
	chunkWork      = 1 << 17 // multiplications of a chunk, which is what threads share, and after which the context is looked at
)

// kernel holds a prepared step. The output is cut into blocks of its fastest axes, which are independent of each other. Within a block
// every operand is one number, a contiguous run or, if it lacks some of the axes, a run through an index list.
type kernel struct {
	out       []float64
	blockSize int   // number of entries of a block
	blocks    int   // number of blocks
	terms     int   // number of terms of an entry of the output: Π of the dimensions summed out
	outer     []int // dimensions of the axes outside the block
	operands  []operand
	scalars   []*operand // those that are one number in a block
	vectors   []*operand // the others
	stride    []int      // scratch: stride by index of one operand
	workers   []worker
}

// operand is an input of the step, with the positions of its entries.
type operand struct {
	data  []float64
	outer []int   // by outer axis: its stride
	sum   []int   // by term: its offset
	index []int32 // by entry of a block: its offset; empty if the operand is contiguous, or one number
}

// prepare sets k to step s of a tape, with the table out as output: it chooses the blocks, and computes the strides and offsets of all
// operands. Tables of the expression may have their axes in any sequence. Those of outputs of earlier steps are in the sequence of s,
// so that their runs are contiguous.
func (k *kernel) prepare(t *tape, s *contractionorder.Step, tables [][]float64, out []float64) {
	dims := t.h.Dims
	if k.stride == nil {
		k.stride = make([]int, len(dims))
	}
	k.out = out
	k.terms = 1
	for _, i := range s.Sum {
		k.terms *= dims[i]
	}
	k.operands = grow(k.operands, len(s.In))
	for n, in := range s.In {
		k.operands[n].prepare(dims, s, tables[in], t.scope(in), k.stride)
	}

	// The axes of the output from split on are in blocks, those before in k.outer.
	axes := k.outer[:0] // in the memory of the step before
	for _, i := range s.Out {
		axes = append(axes, dims[i])
	}
	split := k.chooseSplit(axes)
	k.blockSize = 1
	for _, d := range axes[split:] {
		k.blockSize *= d
	}
	k.blocks = len(out) / k.blockSize

	k.scalars, k.vectors = k.scalars[:0], k.vectors[:0]
	for n := range k.operands {
		o := &k.operands[n]
		if o.splitAxes(axes, split) == scalar {
			k.scalars = append(k.scalars, o)
		} else {
			k.vectors = append(k.vectors, o)
		}
	}
	k.outer = axes[:split]
}

// chooseSplit returns the first axis within a block. It takes the block with the fewest operands that need an index list among those of
// minBlock to maxBlock entries; of several, the largest of at most preferredBlock entries. A smaller output is one block. dims has the
// dimensions of the output's axes.
func (k *kernel) chooseSplit(dims []int) int {
	best, size := 0, 1            // size: entries of the block that begins at axis a
	fewest := len(k.operands) + 1 // operands of the best block that need an index list; at first more than any block has
	for a := len(dims) - 1; a >= 0; a-- {
		size *= dims[a]
		hasBlock := fewest <= len(k.operands)
		if size > maxBlock && hasBlock {
			break
		}
		if size < minBlock && a > 0 {
			continue
		}
		indexed := 0 // operands that need an index list
		for n := range k.operands {
			if k.operands[n].accessOf(dims, a) == indirect {
				indexed++
			}
		}
		if indexed < fewest || indexed == fewest && size <= preferredBlock {
			best, fewest = a, indexed
		}
		if size >= preferredBlock && fewest == 0 { // larger blocks are no better
			break
		}
	}
	return best
}

// grow returns list with n elements. Elements beyond its length keep what they were, with their memory.
func grow(list []operand, n int) []operand {
	for cap(list) < n {
		list = append(list[:cap(list)], operand{})
	}
	return list[:n]
}

// prepare sets o to a table over scope: to its stride on every axis of the step's output, and its offset for every term. stride is scratch
// space by index, all 0 before and after.
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

// accessOf returns how the operand varies over the output's axes from split on. It is scalar if the operand's stride is 0 on each of them,
// direct if the operand has the output's strides there, and indirect otherwise: by an index list. dims has the dimensions of all axes.
func (o *operand) accessOf(dims []int, split int) access {
	isScalar, isDirect, outputStride := true, true, 1
	for a := len(dims) - 1; a >= split; a-- {
		isScalar = isScalar && o.outer[a] == 0
		isDirect = isDirect && o.outer[a] == outputStride
		outputStride *= dims[a]
	}
	switch {
	case isScalar:
		return scalar
	case isDirect:
		return direct
	}
	return indirect
}

// splitAxes cuts the operand's axes at split: those before it stay in o.outer, and the rest become the index list if one is needed. It
// returns how the operand varies within a block.
func (o *operand) splitAxes(dims []int, split int) access {
	kind := o.accessOf(dims, split)
	o.index = o.index[:0]
	if kind == indirect {
		o.index = append(o.index, 0)
		for a := split; a < len(dims); a++ {
			o.index = sumproduct.ExpandOffsets(o.index, dims[a], o.outer[a])
		}
	}
	o.outer = o.outer[:split]
	return kind
}

// run computes the output of the step and returns the bits of its largest entry by size. Goroutines share chunks of blocks.
func (k *kernel) run(ctx context.Context, threads int) (top uint64, err error) {
	blockWork := k.blockSize * k.terms * (len(k.vectors) + 1) // multiplications
	chunk := max(1, chunkWork/blockWork)                      // blocks of a chunk
	chunks := (k.blocks + chunk - 1) / chunk
	threads = min(threads, chunks)
	for len(k.workers) < threads {
		k.workers = append(k.workers, worker{})
	}
	for i := range threads {
		k.workers[i].reset(k)
	}
	err = sumproduct.RunChunks(ctx, threads, chunks, func(w, c int) error {
		k.workers[w].computeBlocks(k, c*chunk, min((c+1)*chunk, k.blocks))
		return nil
	})
	for i := range threads {
		top = max(top, k.workers[i].top)
	}
	return top, err
}
