package compiled

// Steps in rows: the innermost loops go over the terms of one entry of the output.

func (s *Step) forwardRows(m *Memory, out []float64) {
	switch in := s.In; len(in) {
	case 1:
		s.oneRow(m.Tables[in[0].Table], out)
	case 2:
		s.twoRow(m.Tables[in[0].Table], m.Tables[in[1].Table], out)
	case 3:
		s.threeRow(m.Tables[in[0].Table], m.Tables[in[1].Table], m.Tables[in[2].Table], out)
	default:
		term := m.scratch[:len(in[0].inner)]
		m.product(in, 0, term)
		for o := range out {
			sum := 0.0
			for _, f := range term[:s.Sums] {
				sum += f
			}
			out[o], term = sum, term[s.Sums:]
		}
	}
}

func (s *Step) oneRow(a, out []float64) {
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

func (s *Step) twoRow(a, b, out []float64) {
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

func (s *Step) threeRow(a, b, c, out []float64) {
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

func (s *Step) backOneRows(da, d []float64) {
	ia := s.In[0].inner
	for _, g := range d {
		for _, i := range ia[:s.Sums] {
			da[i] += g
		}
		ia = ia[s.Sums:]
	}
}

func (s *Step) backTwoRows(m *Memory, d []float64) {
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
