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
	Offsets int     // in all lists
	Entries int     // of all outputs together
	sizes   []int   // by table: its entries
	needed  []bool  // by table: its derivative is needed
	back    int     // entries of all derivatives
	scratch int     // entries of Memory.scratch for Forward and Backward

	products int // entries of Memory.scratch for Backward
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

	block      int     // entries of a block
	isInRows   bool    // the output is one block, and the innermost loops go over the terms of an entry
	split      int     // the first axis within a block
	blockStart []int32 // where blocks begin in the output; nil: one after the other
}

// Operand is a table in a step.
type Operand struct {
	Table      int
	Needed     bool    // its derivative is wanted, or leads to a wanted one
	isConstant bool    // it has the same entry throughout a run (runLength)
	outer      []int32 // by block: where it begins in the table
	inner      []int32 // by position in the block and term: the offset from there
}

// New compiles the steps of h. needed has, by leaf, whether the derivative by it is wanted.
// Tables must have fewer than 2^31 entries. Time and memory: at most an offset for every operand and term.
func New(h contractionorder.Hypergraph, steps []*contractionorder.Step, needed []bool) *Program {
	p := &Program{Leaves: len(h.Edges), Steps: make([]Step, len(steps))}
	scopes := append(make([][]int, 0, len(h.Edges)+len(steps)), h.Edges...)
	operands := 0
	for n, s := range steps {
		scopes = append(scopes, s.Out)
		p.Steps[n] = newStep(h.Dims, s)
		p.Flops += float64(len(s.In)) * s.Full
		p.Offsets += len(s.In) * p.Steps[n].offsets()
		p.products = max(p.products, p.Steps[n].products(len(s.In)))
		p.scratch = max(p.scratch, p.products, p.Steps[n].block*p.Steps[n].Sums)
		operands += len(s.In)
	}
	p.layOut(h.Dims, scopes, contractionorder.Reach(needed, steps))

	l := lister{p, h.Dims, make([]int, len(h.Dims)), make([]int32, p.Offsets), make([]Operand, operands)}
	for n, s := range steps {
		l.list(&p.Steps[n], s, scopes)
	}
	return p
}

// layOut sets the sizes of all tables, given by their scopes, and of the memory of a run. needed is by table.
func (p *Program) layOut(dims []int, scopes [][]int, needed []bool) {
	p.needed, p.sizes = needed, make([]int, len(scopes))
	for t, scope := range scopes {
		size := sumproduct.Size(dims, scope)
		p.sizes[t] = size
		if t >= p.Leaves {
			p.Entries += size
		}
		if needed[t] {
			p.back += size
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
// in rows. So is one for which several indices are summed, unless the step is large.
func newStep(dims []int, s *contractionorder.Step) Step {
	c := Step{Size: int(s.Size), Sums: int(s.Full / s.Size), block: 1, split: len(s.Out)}
	if c.Size <= maxRowsSize || len(s.Sum) > 1 && s.Full < sharedWork {
		c.block, c.split, c.isInRows = c.Size, 0, true
	}
	for c.split > 0 && (c.block == 1 || c.block*dims[s.Out[c.split-1]]*c.Sums <= maxInner) {
		c.split--
		c.block *= dims[s.Out[c.split]]
	}
	c.Blocks = c.Size / c.block
	c.Unit = c.Blocks
	return c
}

// runLength returns the number of inner offsets that the way back takes at a time: those along the fastest axis, or all if the output is
// small.
func (s *Step) runLength() int {
	switch {
	case s.Size <= maxRowsSize:
		return s.Size * s.Sums
	case s.isInRows:
		return s.Sums
	}
	return s.block
}

// products returns the entries of scratch space that the way back takes: products over a run for every operand, and one more.
func (s *Step) products(operands int) int { return s.runLength() * (operands + 1) }

// offsets returns the number of offsets of an operand, outer and inner.
func (s *Step) offsets() int { return s.Size/s.block + s.block*s.Sums }

// Bytes returns the memory that a run back along steps takes in addition to tables and derivatives: the lists of offsets of large steps,
// and the products of their longest run. The lists of other steps are small compared with their tables. Those beyond int32 are never
// made.
func Bytes(dims []int, steps []*contractionorder.Step) float64 {
	offsets, products := 0.0, 0
	for _, s := range steps {
		if s.Full < sharedWork || s.Full >= 1<<53 || s.Size >= 1<<31 {
			continue
		}
		c := newStep(dims, s)
		offsets += float64(c.offsets())*float64(len(s.In)) + float64(c.Blocks)
		products = max(products, c.products(len(s.In)))
	}
	return 4*offsets + 8*float64(products)
}

// lister makes the lists of offsets of one step after the other.
type lister struct {
	p        *Program
	dims     []int
	stride   []int     // by index: its stride in the current operand; all 0 between two operands
	offsets  []int32   // memory for the remaining lists
	operands []Operand // memory for the operands of the remaining steps
}

// list sets the operands of step c, with their offsets. scopes are the scopes of all tables.
func (l *lister) list(c *Step, s *contractionorder.Step, scopes [][]int) {
	c.In, l.operands = l.operands[:len(s.In):len(s.In)], l.operands[len(s.In):]
	outer, slow, fast := s.Out[:c.split], s.Sum, s.Out[c.split:]
	if s.Full >= sharedWork {
		outer = l.divide(c, s, scopes)
	}
	if c.isInRows {
		slow, fast = fast, slow
	}
	for k, t := range s.In {
		sumproduct.Strides(l.stride, l.dims, scopes[t])
		in := &c.In[k]
		in.Table, in.Needed = t, l.p.needed[t]
		in.outer = sumproduct.Offsets(l.offsets[:0], l.dims, outer, l.stride)
		l.offsets = l.offsets[len(in.outer):]
		in.inner = sumproduct.Offsets(l.offsets[:0], l.dims, slow, l.stride)
		for _, i := range fast {
			in.inner = sumproduct.Spread(in.inner, l.dims[i], l.stride[i])
		}
		in.isConstant = !slices.ContainsFunc(in.inner[:c.runLength()], func(at int32) bool { return at != in.inner[0] })
		l.offsets = l.offsets[len(in.inner):]
		for _, i := range scopes[t] {
			l.stride[i] = 0
		}
	}
}

// divide returns the axes outside a block, first those that all needed operands have. Along these, different values are different entries
// of every needed operand, so they divide the blocks into units. It sets c.Unit, and where the blocks begin in the output.
func (l *lister) divide(c *Step, s *contractionorder.Step, scopes [][]int) []int {
	var common, others []int
	for _, i := range s.Out[:c.split] {
		if slices.ContainsFunc(s.In, func(t int) bool { return l.p.needed[t] && !slices.Contains(scopes[t], i) }) {
			others = append(others, i)
		} else {
			common = append(common, i)
			c.Unit /= l.dims[i]
		}
	}
	outer := append(common, others...)
	sumproduct.Strides(l.stride, l.dims, s.Out)
	c.blockStart = sumproduct.Offsets[int32](nil, l.dims, outer, l.stride)
	for _, i := range s.Out {
		l.stride[i] = 0
	}
	return outer
}
