package compiled

// Runs: forwards for the value, backwards for derivatives.

import "slices"

// Memory holds the tables that a run of a program reads and writes, for one goroutine.
type Memory struct {
	Tables  [][]float64 // by number; the caller sets the leaves
	Back    [][]float64 // by number: the derivative of Z by the table; nil if it is not needed
	out     []float64   // memory of Tables, without leaves
	back    []float64   // memory of Back
	scratch []float64
}

// Prepare divides the memory among the tables of p, and among their derivatives if back is set. After it the caller has to set the leaves.
// Capacity grown for other programs is reused.
func (m *Memory) Prepare(p *Program, back bool) {
	m.out = resize(m.out, p.Entries)
	m.scratch = resize(m.scratch, p.scratch)
	m.Tables = resize(m.Tables, len(p.sizes))
	at := 0
	for t := p.Leaves; t < len(p.sizes); t++ {
		m.Tables[t] = m.out[at : at+p.sizes[t] : at+p.sizes[t]]
		at += p.sizes[t]
	}
	if !back {
		return
	}
	m.back = resize(m.back, p.back)
	m.Back = resize(m.Back, len(p.sizes))
	at = 0
	for t, size := range p.sizes {
		m.Back[t] = nil
		if p.needed[t] {
			m.Back[t] = m.back[at : at+size : at+size]
			at += size
		}
	}
}

// Beside returns memory with the same tables and derivatives, and scratch space of its own for Backward and BackwardIn. It is for a
// further goroutine, or for a caller that sets the tables and derivatives of each step himself, without Prepare.
func (m *Memory) Beside(p *Program) Memory {
	return Memory{Tables: m.Tables, Back: m.Back, scratch: make([]float64, p.products)}
}

// resize returns a list of n elements of any value, in the memory of s if its capacity is enough.
func resize[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// Forward computes the output of step n.
func (p *Program) Forward(m *Memory, n int) {
	s, out := &p.Steps[n], m.Tables[p.Leaves+n]
	if s.isInRows {
		s.forwardRows(m, out)
		return
	}
	clear(out)
	switch in := s.In; len(in) {
	case 1:
		s.forwardOne(m.Tables[in[0].Table], out)
	case 2:
		s.forwardTwo(m, out)
	case 3:
		s.forwardThree(m.Tables[in[0].Table], m.Tables[in[1].Table], m.Tables[in[2].Table], out)
	default:
		s.forwardMany(m, out)
	}
}

// Backward computes the needed derivatives by the operands of step n from the derivative by its output. Forward of all steps comes
// before it.
//
//	∂Z/∂in_k[i] = Σ over o and s with at_k(o, s) = i of ∂Z/∂out[o] Π_{l≠k} in_l
func (p *Program) Backward(m *Memory, n int) {
	s := &p.Steps[n]
	for k := range s.In {
		if s.In[k].Needed {
			clear(m.Back[s.In[k].Table])
		}
	}
	p.BackwardIn(m, n, 0, s.Blocks)
}

// BackwardIn adds the shares of the output's blocks from ≤ b < to to the derivatives by the operands of step n. The range consists of whole
// units (Step.Unit).
func (p *Program) BackwardIn(m *Memory, n, from, to int) {
	s, d := &p.Steps[n], m.Back[p.Leaves+n]
	switch in := s.In; {
	case len(in) == 1 && s.isInRows:
		s.backwardOneInRows(m.Back[in[0].Table], d)
	case len(in) == 1:
		s.backwardOne(m.Back[in[0].Table], d, from, to)
	case len(in) == 2 && in[0].Needed && in[1].Needed && s.isInRows:
		s.backwardTwoInRows(m, d)
	case len(in) == 2 && in[0].Needed && in[1].Needed:
		s.backwardTwo(m, d, from, to)
	default:
		s.backwardMany(m, d, from, to)
	}
}

// backwardMany is BackwardIn for any number of operands; d is the derivative by the output. The derivative by operand k gets the product
// of d, of the operands before k (front), and of those after k (suffixes). It goes through a block in runs of entries of the output for
// one term of the sums or, in rows, in runs of terms for one entry.
func (s *Step) backwardMany(m *Memory, d []float64, from, to int) {
	first, last := 0, len(s.In)-1
	for !s.In[first].Needed {
		first++
	}
	for !s.In[last].Needed {
		last--
	}
	n := s.runLength()
	room, after := m.scratch[:n], m.scratch[n:]
	for o := from; o < to; o++ {
		for at := 0; at < len(s.In[0].inner); at += n {
			m.suffixes(s.In, o, at, first, after, n)
			front := room
			if s.isInRows {
				for j := range front {
					front[j] = d[(at+j)/s.Sums]
				}
			} else {
				front = s.blockOf(d, o)
			}
			for k := range s.In[:last+1] {
				in := &s.In[k]
				list := in.inner[at:][:n]
				if in.Needed {
					suffix := []float64(nil)
					if k+1 < len(s.In) {
						suffix = after[k*n:][:n]
					}
					in.add(m.Back[in.Table][in.outer[o]:], list, front, suffix)
				}
				if k < last {
					in.multiply(room, front, m.Tables[in.Table][in.outer[o]:], list)
					front = room
				}
			}
		}
	}
}

// add adds front[j]·suffix[j] to entry list[j] of a derivative, for every j. A nil suffix stands for ones.
func (in *Operand) add(into []float64, list []int32, front, suffix []float64) {
	list = list[:len(front)]
	switch {
	case in.isConstant && suffix == nil:
		sum := into[list[0]]
		for _, f := range front {
			sum += f
		}
		into[list[0]] = sum
	case in.isConstant:
		suffix = suffix[:len(front)]
		sum := into[list[0]]
		for j, f := range front {
			sum += float64(f * suffix[j])
		}
		into[list[0]] = sum
	case suffix == nil:
		for j, f := range front {
			into[list[j]] += f
		}
	default:
		suffix = suffix[:len(front)]
		for j, f := range front {
			into[list[j]] += float64(f * suffix[j])
		}
	}
}

// multiply sets out[j] = x[j]·a[list[j]] for every j. A nil x stands for ones.
func (in *Operand) multiply(out, x, a []float64, list []int32) {
	out = out[:len(list)]
	switch {
	case x == nil:
		for j, i := range list {
			out[j] = a[i]
		}
	case in.isConstant:
		f := a[list[0]]
		for j, y := range x[:len(list)] {
			out[j] = y * f
		}
	default:
		x = x[:len(list)]
		for j, i := range list {
			out[j] = x[j] * a[i]
		}
	}
}

// suffixes sets after[k·n:(k+1)·n], for every operand k ≥ first but the last, to the products of the operands after k. They are for the
// run of n entries that begins at position at of block o.
func (m *Memory) suffixes(in []Operand, o, at, first int, after []float64, n int) {
	suffix := []float64(nil)
	for k := len(in) - 1; k > first; k-- {
		next := after[(k-1)*n:][:n]
		in[k].multiply(next, suffix, m.Tables[in[k].Table][in[k].outer[o]:], in[k].inner[at:][:n])
		suffix = next
	}
}

// blockOf returns block o of the output, or of a table of the same shape.
func (s *Step) blockOf(out []float64, o int) []float64 {
	if s.blockStart != nil {
		return out[s.blockStart[o]:][:s.block]
	}
	return out[o*s.block:][:s.block]
}
