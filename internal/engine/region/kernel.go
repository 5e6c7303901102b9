package region

// Running programs: forwards for the value, backwards for the marginals.

// machine runs programs, keeping its memory from one to the next.
type machine struct {
	out, back []float64 // outputs of the steps, and the derivatives by them
	acc       []float64
	term      []float64 // per operand, the factor of an entry
}

func fit(s []float64, n int) []float64 {
	if cap(s) < n {
		return make([]float64, n, n+n/2)
	}
	return s[:n]
}

// forward returns Σ_x Π_v b_v(x_v) Π_t tables_t(x), for b the beliefs of the indices. Outputs stay
// for backward.
func (m *machine) forward(p *program, tables, beliefs [][]float64) float64 {
	m.out, m.acc = fit(m.out, p.buffer), fit(m.acc, p.most)
	value := 1.0
	for k := range p.steps {
		s := &p.steps[k]
		for from, o := 0, 0; from < s.size; from, o = from+s.block, o+1 {
			m.block(s, m.out[s.out+from:s.out+from+s.block], o, tables, beliefs[s.index])
		}
		if s.size == 1 {
			value *= m.out[s.out]
		}
	}
	return value
}

// block computes the o-th block of a step's output.
func (m *machine) block(s *step, out []float64, o int, tables [][]float64, belief []float64) {
	clear(out)
	acc := m.acc[:len(out)]
	for x, b := range belief {
		for j := range acc {
			acc[j] = b
		}
		for k := range s.in {
			op := &s.in[k]
			data := m.data(op, tables)[int(op.outer[o])+x*int(op.stride):]
			for j, at := range op.inner {
				acc[j] *= data[at]
			}
		}
		for j, a := range acc {
			out[j] += a
		}
	}
}

func (m *machine) data(op *operand, tables [][]float64) []float64 {
	if op.buffered {
		return m.out[op.from:]
	}
	return tables[op.from]
}

// backward calls yield with the unnormalised marginal of every index, after forward. The derivative
// of an output is spread over the step's operands, and with the index left open it is the index's
// marginal:
//
//	∂Z/∂in_k = Σ ∂Z/∂out · b_v Π_{m≠k} in_m,   M_v(x) = Σ_o ∂Z/∂out[o] · b_v(x) Π_k in_k
//
// Each connected part counts for itself. The slice that yield gets is used again.
func (m *machine) backward(
	p *program, tables, beliefs [][]float64, yield func(v int, marginal []float64),
) {
	m.back = fit(m.back, p.buffer)
	clear(m.back)
	var marginal []float64
	for k := len(p.steps) - 1; k >= 0; k-- {
		s := &p.steps[k]
		if s.size == 1 {
			m.back[s.out] = 1
		}
		marginal = fit(marginal, p.dims[s.index])
		clear(marginal)
		m.term = fit(m.term, len(s.in))
		for e := range s.size {
			m.spread(s, e, tables, beliefs[s.index], marginal)
		}
		yield(s.index, marginal)
	}
}

// spread propagates the derivative of entry e of a step's output.
func (m *machine) spread(s *step, e int, tables [][]float64, belief, marginal []float64) {
	d := m.back[s.out+e]
	o, j := e/s.block, e%s.block
	for x, b := range belief {
		whole := d * b
		for k := range s.in {
			op := &s.in[k]
			m.term[k] = m.data(op, tables)[int(op.outer[o])+int(op.inner[j])+x*int(op.stride)]
			whole *= m.term[k]
		}

		marginal[x] += whole
		for k := range s.in {
			op := &s.in[k]
			if !op.buffered {
				continue
			}
			rest := d * b
			for l, term := range m.term {
				if l != k {
					rest *= term
				}
			}
			m.back[op.from+int(op.outer[o])+int(op.inner[j])+x*int(op.stride)] += rest
		}
	}
}
