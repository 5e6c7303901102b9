package compiled

// Steps in blocks: the innermost loops go over the entries of a block of the output, for one term of the sums after the
// other. Offsets are relative to the beginning of the block in each operand (Operand.outer).

// forwardOne adds the terms of a step with one operand to its output, which is 0 before.
func (s *Step) forwardOne(a, out []float64) {
	ia := s.In[0].inner
	for o, from := range s.In[0].outer {
		a, out := a[from:], s.blockOf(out, o)
		for at := 0; at < len(ia); at += len(out) {
			for j, i := range ia[at:][:len(out)] {
				out[j] += a[i]
			}
		}
	}
}

// forwardTwo adds the terms of a step with two operands to its output, which is 0 before. If one operand is constant within a run, it
// is taken as the left one, and its entry is a factor of the run.
func (s *Step) forwardTwo(m *Memory, out []float64) {
	l, r := &s.In[0], &s.In[1]
	if r.isConstant {
		l, r = r, l
	}
	a, b := m.Tables[l.Table], m.Tables[r.Table]
	ia, ib := l.inner, r.inner
	for o, from := range l.outer {
		a, b, out := a[from:], b[r.outer[o]:], s.blockOf(out, o)
		for at := 0; at < len(ia); at += len(out) {
			ib := ib[at:][:len(out)]
			if l.isConstant {
				f := a[ia[at]]
				for j, i := range ib {
					out[j] += float64(f * b[i])
				}
				continue
			}
			for j, i := range ia[at:][:len(out)] {
				out[j] += float64(a[i] * b[ib[j]])
			}
		}
	}
}

// forwardThree adds the terms of a step with three operands to its output, which is 0 before.
func (s *Step) forwardThree(a, b, c, out []float64) {
	ia, ib, ic := s.In[0].inner, s.In[1].inner, s.In[2].inner
	for o, from := range s.In[0].outer {
		a, b, c := a[from:], b[s.In[1].outer[o]:], c[s.In[2].outer[o]:]
		out := s.blockOf(out, o)
		for at := 0; at < len(ia); at += len(out) {
			ib, ic := ib[at:][:len(out)], ic[at:][:len(out)]
			for j, i := range ia[at:][:len(out)] {
				out[j] += float64(a[i] * b[ib[j]] * c[ic[j]])
			}
		}
	}
}

// forwardMany adds the terms of a step with four or more operands to its output, which is 0 before. In each block it multiplies all
// operands but the last two beforehand.
func (s *Step) forwardMany(m *Memory, out []float64) {
	last := len(s.In) - 2
	y, z := &s.In[last], &s.In[last+1]
	iy, iz := y.inner, z.inner
	term := m.scratch[:len(iy)]
	for o, from := range y.outer {
		m.multiplyAll(s.In[:last], o, term)
		y, z, out := m.Tables[y.Table][from:], m.Tables[z.Table][z.outer[o]:], s.blockOf(out, o)
		for at := 0; at < len(iy); at += len(out) {
			iy, iz := iy[at:][:len(out)], iz[at:][:len(out)]
			for j, f := range term[at:][:len(out)] {
				out[j] += float64(f * y[iy[j]] * z[iz[j]])
			}
		}
	}
}

// multiplyAll sets term to the products of two or more operands in block o, entry by entry.
func (m *Memory) multiplyAll(in []Operand, o int, term []float64) {
	a, b := m.Tables[in[0].Table][in[0].outer[o]:], m.Tables[in[1].Table][in[1].outer[o]:]
	ib := in[1].inner[:len(term)]
	for i, at := range in[0].inner[:len(term)] {
		term[i] = a[at] * b[ib[i]]
	}
	for k := range in[2:] {
		a := m.Tables[in[2+k].Table][in[2+k].outer[o]:]
		for i, at := range in[2+k].inner[:len(term)] {
			term[i] *= a[at]
		}
	}
}

// backwardOne is BackwardIn for one operand: da and d are the derivatives by the operand and by the output.
func (s *Step) backwardOne(da, d []float64, from, to int) {
	ia := s.In[0].inner
	for o := from; o < to; o++ {
		da, d := da[s.In[0].outer[o]:], s.blockOf(d, o)
		for at := 0; at < len(ia); at += len(d) {
			for j, i := range ia[at:][:len(d)] {
				da[i] += d[j]
			}
		}
	}
}

// backwardTwo is BackwardIn for two operands whose derivatives are both needed. d is the derivative by the output.
func (s *Step) backwardTwo(m *Memory, d []float64, from, to int) {
	l, r := &s.In[0], &s.In[1]
	if r.isConstant {
		l, r = r, l
	}
	ia, ib := l.inner, r.inner
	for o := from; o < to; o++ {
		a, da := m.Tables[l.Table][l.outer[o]:], m.Back[l.Table][l.outer[o]:]
		b, db := m.Tables[r.Table][r.outer[o]:], m.Back[r.Table][r.outer[o]:]
		d := s.blockOf(d, o)
		for at := 0; at < len(ia); at += len(d) {
			ia, ib := ia[at:][:len(d)], ib[at:][:len(d)]
			if l.isConstant {
				f, sum := a[ia[0]], da[ia[0]]
				for k, g := range d {
					j := ib[k]
					sum += float64(g * b[j])
					db[j] += float64(g * f)
				}
				da[ia[0]] = sum
				continue
			}
			for k, g := range d {
				i, j := ia[k], ib[k]
				da[i] += float64(g * b[j])
				db[j] += float64(g * a[i])
			}
		}
	}
}
