// Package compiled contracts small networks by lists of offsets made beforehand: for every step of an
// elimination order, where each entry of each operand is. Running a program looks at no index any more.
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
	sizes   []int   // by table
	needed  []bool  // by table
	back    int     // entries of all derivatives
	scratch int     // entries

	products int // of them those of runs back
}

// Step is one table made of others:
//
//	out[o] = Σ_s Π_k in_k[outer_k[o / block] + inner_k[o % block, s]]
//
// The usually longer axis of inner, the block's, is its fastest. In rows it is the sums' axis.
type Step struct {
	In         []Operand
	Size, Sums int // entries of the output, terms of each
	// Blocks is the number of blocks of the output. A unit of so many of them has entries of the needed operands that no other has:
	// goroutines may share the units of the way back.
	Blocks, Unit int

	block int
	rows  bool
	split int     // the first axis within a block
	at    []int32 // where blocks begin in the output; nil: one after the other
}

// Operand is a table in a step.
type Operand struct {
	Table        int
	Needed       bool // its derivative is wanted, or leads to one that is
	fixed        bool // one entry throughout a run
	outer, inner []int32
}

// New lists the offsets of the steps of h. needed says, by leaf, whether the derivative by it is wanted.
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

// layOut computes the layout of a run.
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

// maxList bounds the offsets of an operand within a block, unless one axis is longer: they and their
// entries stay in the first-level cache.
const maxList = 1024

// few is the entries of an output up to which steps are in rows.
const few = 4

// large is the entries touched from which a step is for several goroutines. Programs of small networks have none as large.
const large = 1 << 18

// newStep cuts the output of a step into blocks of its fastest axes. Small outputs, and outputs of
// several sums, are one block in rows.
func newStep(dims []int, s *contractionorder.Step) Step {
	c := Step{Size: int(s.Size), Sums: int(s.Full / s.Size), block: 1, split: len(s.Out)}
	if c.Size <= few || len(s.Sum) > 1 && s.Full < large {
		c.block, c.split, c.rows = c.Size, 0, true
	}
	for c.split > 0 && (c.block == 1 || c.block*dims[s.Out[c.split-1]]*c.Sums <= maxList) {
		c.split--
		c.block *= dims[s.Out[c.split]]
	}
	c.Blocks = c.Size / c.block
	c.Unit = c.Blocks
	return c
}

// run is the number of inner offsets that derivatives take at a time: the fastest axis, all where few.
func (s *Step) run() int {
	switch {
	case s.Size <= few:
		return s.Size * s.Sums
	case s.rows:
		return s.Sums
	}
	return s.block
}

// products is the entries that derivatives take beside: the products of a run by operand. The output takes those of a block.
func (s *Step) products(operands int) int { return s.run() * (operands + 1) }

// offsets is the number of offsets of an operand.
func (s *Step) offsets() int { return s.Size/s.block + s.block*s.Sums }

// Bytes is the memory that a run back along steps takes beside tables and derivatives: the lists of offsets of large steps, and the
// products of their longest run. Those of other steps are few beside tables; those beyond int32 are not made.
func Bytes(dims []int, steps []*contractionorder.Step) float64 {
	offsets, products := 0.0, 0
	for _, s := range steps {
		if s.Full < large || s.Full >= 1<<53 || s.Size >= 1<<31 {
			continue
		}
		c := newStep(dims, s)
		offsets += float64(c.offsets())*float64(len(s.In)) + float64(c.Blocks)
		products = max(products, c.products(len(s.In)))
	}
	return 4*offsets + 8*float64(products)
}

// lister lists the offsets of one step after the other.
type lister struct {
	p        *Program
	dims     []int
	stride   []int // by index, of one operand; all 0 between two
	offsets  []int32
	operands []Operand
}

func (l *lister) list(c *Step, s *contractionorder.Step, scopes [][]int) {
	c.In, l.operands = l.operands[:len(s.In):len(s.In)], l.operands[len(s.In):]
	outer, slow, fast := s.Out[:c.split], s.Sum, s.Out[c.split:]
	if s.Full >= large {
		outer = l.divide(c, s, scopes)
	}
	if c.rows {
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
		in.fixed = !slices.ContainsFunc(in.inner[:c.run()], func(at int32) bool { return at != in.inner[0] })
		l.offsets = l.offsets[len(in.inner):]
		for _, i := range scopes[t] {
			l.stride[i] = 0
		}
	}
}

// divide returns the axes outside a block, those that all needed operands have first.
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
	c.at = sumproduct.Offsets[int32](nil, l.dims, outer, l.stride)
	for _, i := range s.Out {
		l.stride[i] = 0
	}
	return outer
}
