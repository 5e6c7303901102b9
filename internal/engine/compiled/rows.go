package compiled

// Steps in rows: the innermost loops go over the terms of one entry of the output.

// forwardRows computes the output of a step in rows. All terms of an entry are next to each other in the lists of offsets.
func (s *Step) forwardRows(m *Memory, out []float64) {
	switch in := s.In; len(in) {
	case 1:
		s.forwardOneInRows(m.Tables[in[0].Table], out)
	case 2:
		s.forwardTwoInRows(m.Tables[in[0].Table], m.Tables[in[1].Table], out)
	case 3:
		s.forwardThreeInRows(m.Tables[in[0].Table], m.Tables[in[1].Table], m.Tables[in[2].Table], out)
	default:
		term := m.scratch[:len(in[0].inner)]
		m.multiplyAll(in, 0, term)
		for o := range out {
			sum := 0.0
			for _, f := range term[:s.Sums] {
				sum += f
			}
			out[o], term = sum, term[s.Sums:]
		}
	}
}

// forwardOneInRows computes the output of a step with one operand.
func (s *Step) forwardOneInRows(a, out []float64) {
	ia := s.In[0].inner
	at := 0
	for o := range out {
		sum := 0.0
		for end := at + s.Sums; at < end; at++ {
			sum += a[ia[at]]
		}
		out[o] = sum
	}
}

// forwardTwoInRows computes the output of a step with two operands.
func (s *Step) forwardTwoInRows(a, b, out []float64) {
	ia, ib := s.In[0].inner, s.In[1].inner
	at := 0
	for o := range out {
		sum := 0.0
		for end := at + s.Sums; at < end; at++ {
			sum += float64(a[ia[at]] * b[ib[at]])
		}
		out[o] = sum
	}
}

// forwardThreeInRows computes the output of a step with three operands.
func (s *Step) forwardThreeInRows(a, b, c, out []float64) {
	ia, ib, ic := s.In[0].inner, s.In[1].inner, s.In[2].inner
	at := 0
	for o := range out {
		sum := 0.0
		for end := at + s.Sums; at < end; at++ {
			sum += float64(a[ia[at]] * b[ib[at]] * c[ic[at]])
		}
		out[o] = sum
	}
}

// backwardOneInRows adds the derivative d by the output to da, the derivative by the only operand, for every term of every entry.
func (s *Step) backwardOneInRows(da, d []float64) {
	ia := s.In[0].inner
	for _, g := range d {
		for _, i := range ia[:s.Sums] {
			da[i] += g
		}
		ia = ia[s.Sums:]
	}
}

// backwardTwoInRows adds to the derivatives by two operands: each gets d, the derivative by the output, times the other operand.
func (s *Step) backwardTwoInRows(m *Memory, d []float64) {
	l, r := &s.In[0], &s.In[1]
	a, b, da, db := m.Tables[l.Table], m.Tables[r.Table], m.Back[l.Table], m.Back[r.Table]
	ia, ib := l.inner, r.inner
	for _, g := range d {
		row := ib[:s.Sums]
		for k, i := range ia[:s.Sums] {
			j := row[k]
			da[i] += float64(g * b[j])
			db[j] += float64(g * a[i])
		}
		ia, ib = ia[s.Sums:], ib[s.Sums:]
	}
}
