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
	s, d := &p.Steps[n], m.Back[p.Leaves+n]
	for k := range s.In {
		if s.In[k].Needed {
			clear(m.Back[s.In[k].Table])
		}
	}
	switch in := s.In; {
	case len(in) == 1 && s.rows:
		s.backOneRows(m.Back[in[0].Table], d)
	case len(in) == 1:
		s.backOne(m.Back[in[0].Table], d)
	case len(in) == 2 && in[0].Needed && in[1].Needed && s.rows:
		s.backTwoRows(m, d)
	case len(in) == 2 && in[0].Needed && in[1].Needed:
		s.backTwo(m, d)
	default:
		s.backMany(m, d)
	}
}

// backMany multiplies from the back first, and then, from the front, operand by operand. It goes through
// a block in runs: over the entries of the output for one term of the sums, or the other way round.
func (s *Step) backMany(m *Memory, d []float64) {
	first, last := 0, len(s.In)-1
	for !s.In[first].Needed {
		first++
	}
	for !s.In[last].Needed {
		last--
	}
	n := s.run()
	front, after := m.scratch[:n], m.scratch[n:]
	for o := range s.In[0].outer {
		for at := 0; at < len(s.In[0].inner); at += n {
			m.suffixes(s.In, o, at, first, after, n)
			if s.rows {
				for j := range front {
					front[j] = d[(at+j)/s.Sums]
				}
			} else {
				copy(front, d[o*s.block:])
			}
			for k := range s.In[:last+1] {
				in := &s.In[k]
				list := in.inner[at:][:n]
				if in.Needed {
					in.add(m.Back[in.Table][in.outer[o]:], list, front, after[k*n:])
				}
				if k < last {
					a := m.Tables[in.Table][in.outer[o]:]
					for j, i := range list {
						front[j] *= a[i]
					}
				}
			}
		}
	}
}

// add adds front·rest to the entries of a derivative that a list names.
func (in *Operand) add(into []float64, list []int32, front, rest []float64) {
	rest = rest[:len(front)]
	if in.fixed {
		sum := into[list[0]]
		for j, f := range front {
			sum += float64(f * rest[j])
		}
		into[list[0]] = sum
		return
	}
	list = list[:len(front)]
	for j, f := range front {
		into[list[j]] += float64(f * rest[j])
	}
}

// suffixes computes, for every operand from first on, the products of those after it.
func (m *Memory) suffixes(in []Operand, o, at, first int, after []float64, n int) {
	k := len(in) - 1
	rest := after[k*n:][:n]
	for j := range rest {
		rest[j] = 1
	}
	for ; k > first; k-- {
		a := m.Tables[in[k].Table][in[k].outer[o]:]
		rest, next := after[k*n:][:n], after[(k-1)*n:][:n]
		for j, i := range in[k].inner[at:][:n] {
			next[j] = rest[j] * a[i]
		}
	}
}
