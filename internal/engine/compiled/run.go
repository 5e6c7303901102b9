package compiled

// Runs: forwards for the value, backwards for derivatives.

import "slices"

// Memory holds the tables that a run of a program reads and writes, for one goroutine.
type Memory struct {
	Tables  [][]float64 // by number; the leaves are the caller's to set
	Back    [][]float64 // by number: derivatives; nil for leaves that nobody needs
	out     []float64
	back    []float64
	scratch []float64
}

// Prepare lays the memory out for runs of p, with room for derivatives where back; the leaves are to be
// set then. Capacity grown for other programs is reused.
func (m *Memory) Prepare(p *Program, back bool) {
	m.out = fit(m.out, p.Entries)
	m.scratch = fit(m.scratch, p.scratch)
	m.Tables = fit(m.Tables, len(p.sizes))
	at := 0
	for t := p.Leaves; t < len(p.sizes); t++ {
		m.Tables[t] = m.out[at : at+p.sizes[t] : at+p.sizes[t]]
		at += p.sizes[t]
	}
	if !back {
		return
	}
	m.back = fit(m.back, p.back)
	m.Back = fit(m.Back, len(p.sizes))
	at = 0
	for t, size := range p.sizes {
		m.Back[t] = nil
		if p.needed[t] {
			m.Back[t] = m.back[at : at+size : at+size]
			at += size
		}
	}
}

// Beside returns memory with the same tables for another goroutine, or for a run without Prepare, back alone: the caller then sets the
// tables and derivatives that a step has.
func (m *Memory) Beside(p *Program) Memory {
	return Memory{Tables: m.Tables, Back: m.Back, scratch: make([]float64, p.products)}
}

// fit returns s with n elements, in the same memory where there is room.
func fit[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// Forward computes the output of step n.
func (p *Program) Forward(m *Memory, n int) {
	s, out := &p.Steps[n], m.Tables[p.Leaves+n]
	if s.rows {
		s.forwardRows(m, out)
		return
	}
	clear(out)
	switch in := s.In; len(in) {
	case 1:
		s.one(m.Tables[in[0].Table], out)
	case 2:
		s.two(m, out)
	case 3:
		s.three(m.Tables[in[0].Table], m.Tables[in[1].Table], m.Tables[in[2].Table], out)
	default:
		s.many(m, out)
	}
}

// Backward computes, from the derivative by the output of step n, those by its operands that are needed,
// after Forward of all steps:
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

// BackwardIn adds the part of the blocks from ≤ b < to, whole units, to the derivatives by the operands of step n.
func (p *Program) BackwardIn(m *Memory, n, from, to int) {
	s, d := &p.Steps[n], m.Back[p.Leaves+n]
	switch in := s.In; {
	case len(in) == 1 && s.rows:
		s.backOneRows(m.Back[in[0].Table], d)
	case len(in) == 1:
		s.backOne(m.Back[in[0].Table], d, from, to)
	case len(in) == 2 && in[0].Needed && in[1].Needed && s.rows:
		s.backTwoRows(m, d)
	case len(in) == 2 && in[0].Needed && in[1].Needed:
		s.backTwo(m, d, from, to)
	default:
		s.backMany(m, d, from, to)
	}
}

// backMany multiplies from the back first, and then, from the front, operand by operand. It goes through
// a block in runs: over the entries of the output for one term of the sums, or the other way round.
func (s *Step) backMany(m *Memory, d []float64, from, to int) {
	first, last := 0, len(s.In)-1
	for !s.In[first].Needed {
		first++
	}
	for !s.In[last].Needed {
		last--
	}
	n := s.run()
	room, after := m.scratch[:n], m.scratch[n:]
	for o := from; o < to; o++ {
		for at := 0; at < len(s.In[0].inner); at += n {
			m.suffixes(s.In, o, at, first, after, n)
			front := room
			if s.rows {
				for j := range front {
					front[j] = d[(at+j)/s.Sums]
				}
			} else {
				front = s.in(d, o)
			}
			for k := range s.In[:last+1] {
				in := &s.In[k]
				list := in.inner[at:][:n]
				if in.Needed {
					rest := []float64(nil)
					if k+1 < len(s.In) {
						rest = after[k*n:][:n]
					}
					in.add(m.Back[in.Table][in.outer[o]:], list, front, rest)
				}
				if k < last {
					in.multiply(room, front, m.Tables[in.Table][in.outer[o]:], list)
					front = room
				}
			}
		}
	}
}

// add adds front·rest, nil for ones, to the entries of a derivative that a list names.
func (in *Operand) add(into []float64, list []int32, front, rest []float64) {
	list = list[:len(front)]
	switch {
	case in.fixed && rest == nil:
		sum := into[list[0]]
		for _, f := range front {
			sum += f
		}
		into[list[0]] = sum
	case in.fixed:
		rest = rest[:len(front)]
		sum := into[list[0]]
		for j, f := range front {
			sum += float64(f * rest[j])
		}
		into[list[0]] = sum
	case rest == nil:
		for j, f := range front {
			into[list[j]] += f
		}
	default:
		rest = rest[:len(front)]
		for j, f := range front {
			into[list[j]] += float64(f * rest[j])
		}
	}
}

// multiply is out = x·a, x nil for ones, over the entries of a that a list names.
func (in *Operand) multiply(out, x, a []float64, list []int32) {
	out = out[:len(list)]
	switch {
	case x == nil:
		for j, i := range list {
			out[j] = a[i]
		}
	case in.fixed:
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

// suffixes computes, for every operand from first on but the last, the products of those after it.
func (m *Memory) suffixes(in []Operand, o, at, first int, after []float64, n int) {
	rest := []float64(nil)
	for k := len(in) - 1; k > first; k-- {
		next := after[(k-1)*n:][:n]
		in[k].multiply(next, rest, m.Tables[in[k].Table][in[k].outer[o]:], in[k].inner[at:][:n])
		rest = next
	}
}

// in is block o of the output, or of a table like it.
func (s *Step) in(out []float64, o int) []float64 {
	if s.at != nil {
		return out[s.at[o]:][:s.block]
	}
	return out[o*s.block:][:s.block]
}
