// Package compiled contracts small networks by lists of offsets made beforehand: for every step of an
// elimination order, where each entry of each operand is. A run of such a program computes no positions.
//
// The programs know numbers only. The caller keeps entries in the range of float64.
package compiled

import (
	"slices"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// Program is a network along an elimination order. Tables are numbered as in contractionorder.Step: the
// leaves, which are the network's tensors, then the outputs of the steps. A program does not change.
type Program struct {
	Leaves  int
	Steps   []Step
	Flops   float64 // multiplications and additions of all outputs
	Offsets int     // number of offsets in all lists
	Entries int     // number of entries of all outputs together

	sizes             []int  // by table: the number of its entries
	isNeeded          []bool // by table: its derivative is needed
	derivativeEntries int    // number of entries of all needed derivatives together
	scratchSize       int    // entries of Memory.scratch that Forward and Backward use
	backScratchSize   int    // entries of Memory.scratch that Backward uses
}

// Step is one table made of others:
//
//	out[o] = Σ_s Π_k in_k[outer_k[o / block] + inner_k[o % block, s]]
//
// The list inner has the position in the block as its fastest axis, and the term s as its slow one. In rows it is the other way round.
type Step struct {
	In         []Operand
	Size, Sums int // entries of the output, terms of each
	// Blocks is the number of blocks of the output. Unit is a number of consecutive blocks. Different units have no entry of a needed
	// operand in common, so that goroutines may share the units of the way back.
	Blocks, Unit int

	blockSize  int     // number of entries of a block
	isInRows   bool    // the output is one block, and the innermost loops go over the terms of an entry
	split      int     // the first axis of the output that is within a block
	blockStart []int32 // by block: its first entry in the output; nil if the blocks follow one another
}

// Operand is a table that a step multiplies. Its entry for block b and element p of the list inner is at outer[b] + inner[p].
type Operand struct {
	Table      int
	Needed     bool    // its derivative is wanted, or leads to a wanted one
	isConstant bool    // it has the same entry throughout a run (runLength)
	outer      []int32 // by block: where it begins in the table
	inner      []int32 // by position in the block and term: the offset from there
}

// New compiles the steps of h. isWanted has, by leaf, whether the derivative by it is wanted.
// Tables must have fewer than 2^31 entries. Time and memory: at most an offset for every operand and term.
func New(h contractionorder.Hypergraph, steps []*contractionorder.Step, isWanted []bool) *Program {
	// The shape of the steps, and how much memory the lists and a run take.
	p := &Program{Leaves: len(h.Edges), Steps: make([]Step, len(steps))}
	scopes := append(make([][]int, 0, len(h.Edges)+len(steps)), h.Edges...)
	operands := 0
	for n, s := range steps {
		scopes = append(scopes, s.Out)
		step := newStep(h.Dims, s)
		p.Steps[n] = step
		p.Flops += float64(len(s.In)) * s.FullSize
		p.Offsets += len(s.In) * step.offsets()
		p.backScratchSize = max(p.backScratchSize, step.backScratchSize(len(s.In)))
		p.scratchSize = max(p.scratchSize, p.backScratchSize, step.blockSize*step.Sums)
		operands += len(s.In)
	}
	p.setSizes(h.Dims, scopes, contractionorder.MarkOutputs(isWanted, steps))

	// The lists of offsets.
	l := lister{
		program: p, dims: h.Dims, stride: make([]int, len(h.Dims)), offsets: make([]int32, p.Offsets), operands: make([]Operand, operands),
	}
	for n, s := range steps {
		l.setOperands(&p.Steps[n], s, scopes)
	}
	return p
}

// setSizes sets the number of entries of each table, of all outputs together and of all needed derivatives together. scopes and isNeeded
// are by table.
func (p *Program) setSizes(dims []int, scopes [][]int, isNeeded []bool) {
	p.isNeeded, p.sizes = isNeeded, make([]int, len(scopes))
	for t, scope := range scopes {
		size := sumproduct.Size(dims, scope)
		p.sizes[t] = size
		if t >= p.Leaves {
			p.Entries += size
		}
		if isNeeded[t] {
			p.derivativeEntries += size
		}
	}
}

// maxInner bounds the number of inner offsets of an operand, unless a single axis has more: they and their
// entries stay in the first-level cache.
const maxInner = 1024

// maxRowsSize is the number of entries of an output up to which a step is in rows.
const maxRowsSize = 4

// sharedWork is the number of terms (entries of the output times sums) from which several goroutines share a step. Programs of small
// networks have no such steps.
const sharedWork = 1 << 18

// newStep returns a step, without offsets, whose output is cut into blocks of its fastest axes. An output of few entries is a single block
// in rows. So is one for which several indices are summed, unless the step is large. In rows, the innermost loop goes over the terms of one
// entry of the output.
func newStep(dims []int, s *contractionorder.Step) Step {
	c := Step{Size: int(s.Size), Sums: int(s.FullSize / s.Size), blockSize: 1, split: len(s.Out)}
	isShort := c.Size <= maxRowsSize
	isSmallWithSums := len(s.Sum) > 1 && s.FullSize < sharedWork
	if isShort || isSmallWithSums {
		c.blockSize, c.split, c.isInRows = c.Size, 0, true
	}
	// Blocks take in axes as long as they have at most maxInner terms, or one axis.
	for c.split > 0 && (c.blockSize == 1 || c.blockSize*dims[s.Out[c.split-1]]*c.Sums <= maxInner) {
		c.split--
		c.blockSize *= dims[s.Out[c.split]]
	}
	c.Blocks = c.Size / c.blockSize
	c.Unit = c.Blocks // until divideIntoUnits finds smaller ones
	return c
}

// runLength returns the number of inner offsets that Backward takes at a time: all if the output is small. Else it takes, in rows, the
// terms of an entry; in blocks, the entries of a block for one term. In rows, the innermost loop goes over the terms of one entry of the
// output.
func (s *Step) runLength() int {
	switch {
	case s.Size <= maxRowsSize:
		return s.Size * s.Sums
	case s.isInRows:
		return s.Sums
	}
	return s.blockSize
}

// backScratchSize returns the entries of scratch space that Backward takes for a step with so many operands: a run of products for every
// operand, and one more.
func (s *Step) backScratchSize(operands int) int { return s.runLength() * (operands + 1) }

// offsets returns the number of offsets of one operand: an outer one for each block, and an inner one for each term of a block.
func (s *Step) offsets() int { return s.Size/s.blockSize + s.blockSize*s.Sums }

// Bytes returns the memory that Backward of all steps takes in addition to tables and derivatives: the lists of offsets of large steps, and
// the largest scratch space. The lists of other steps are small compared with their tables, and steps beyond int32 are never compiled.
func Bytes(dims []int, steps []*contractionorder.Step) float64 {
	offsets, scratch := 0.0, 0
	for _, s := range steps {
		isSmall, isTooLarge := s.FullSize < sharedWork, s.FullSize >= 1<<53 || s.Size >= 1<<31
		if isSmall || isTooLarge {
			continue
		}
		c := newStep(dims, s)
		offsets += float64(c.offsets())*float64(len(s.In)) + float64(c.Blocks)
		scratch = max(scratch, c.backScratchSize(len(s.In)))
	}
	return 4*offsets + 8*float64(scratch) // int32, float64
}

// lister makes the lists of offsets of one step after the other.
type lister struct {
	program  *Program
	dims     []int
	stride   []int     // by index: its stride in the current operand; all 0 between two operands
	offsets  []int32   // memory for the remaining lists
	operands []Operand // memory for the operands of the remaining steps
}

// setOperands sets the operands of step c, compiled from s, with their offsets. The output of a step is divided into blocks, one for each
// combination of values of its outer indices. The operand's entry for block b and element p of a block is at outer[b] + inner[p]. scopes
// has the indices of all tables.
func (l *lister) setOperands(c *Step, s *contractionorder.Step, scopes [][]int) {
	c.In, l.operands = l.operands[:len(s.In):len(s.In)], l.operands[len(s.In):]

	// The indices of the list outer, and those of the list inner: there the term is the slow axis and the entry of a block the fast one. A
	// step in rows has it the other way round.
	outer, slow, fast := s.Out[:c.split], s.Sum, s.Out[c.split:]
	if s.FullSize >= sharedWork {
		outer = l.divideIntoUnits(c, s, scopes)
	}
	if c.isInRows {
		slow, fast = fast, slow
	}

	for k, t := range s.In {
		sumproduct.Strides(l.stride, l.dims, scopes[t])
		in := &c.In[k]
		in.Table, in.Needed = t, l.program.isNeeded[t]
		in.outer = sumproduct.Offsets(l.offsets[:0], l.dims, outer, l.stride) // in the memory of l.offsets, whose beginning it takes
		l.offsets = l.offsets[len(in.outer):]
		in.inner = sumproduct.Offsets(l.offsets[:0], l.dims, slow, l.stride)
		for _, i := range fast {
			in.inner = sumproduct.ExpandOffsets(in.inner, l.dims[i], l.stride[i])
		}
		// isConstant: the operand has one entry throughout each run of runLength offsets. If that holds in the first run, it holds in all.
		differs := func(offset int32) bool { return offset != in.inner[0] }
		in.isConstant = !slices.ContainsFunc(in.inner[:c.runLength()], differs)
		l.offsets = l.offsets[len(in.inner):]
		for _, i := range scopes[t] {
			l.stride[i] = 0
		}
	}
}

// divideIntoUnits returns the indices outside a block, first those that all needed operands have, and sets c.Unit and c.blockStart. Blocks
// that differ in one of these first indices have no entry of a needed operand in common, so they are in different units.
func (l *lister) divideIntoUnits(c *Step, s *contractionorder.Step, scopes [][]int) (outer []int) {
	var common, otherIndices []int
	for _, i := range s.Out[:c.split] {
		isNeededWithout := func(t int) bool { return l.program.isNeeded[t] && !slices.Contains(scopes[t], i) }
		if slices.ContainsFunc(s.In, isNeededWithout) {
			otherIndices = append(otherIndices, i)
		} else {
			common = append(common, i)
			c.Unit /= l.dims[i] // each value of the index has units of its own
		}
	}
	outer = append(common, otherIndices...)
	sumproduct.Strides(l.stride, l.dims, s.Out)
	c.blockStart = sumproduct.Offsets[int32](nil, l.dims, outer, l.stride)
	for _, i := range s.Out {
		l.stride[i] = 0
	}
	return outer
}
