package compiled

// Steps in rows: the innermost loops go over the terms of one entry of the output.

// forwardRows computes the output of a step in rows, by loops made for the number of its operands. In such a step the output is one block,
// and the lists of offsets have all s.Sums terms of an entry next to each other.
func (s *Step) forwardRows(m *Memory, out []float64) {
	switch in := s.In; len(in) {
	case 1:
		s.forwardOneInRows(m.Tables[in[0].Table], out)
	case 2:
		s.forwardTwoInRows(m.Tables[in[0].Table], m.Tables[in[1].Table], out)
	case 3:
		s.forwardThreeInRows(m.Tables[in[0].Table], m.Tables[in[1].Table], m.Tables[in[2].Table], out)
	default:
		const onlyBlock = 0
		products := m.scratch[:len(in[0].inner)]
		m.multiplyAll(in, onlyBlock, products)
		for o := range out {
			sum := 0.0
			for _, f := range products[:s.Sums] {
				sum += f
			}
			out[o], products = sum, products[s.Sums:]
		}
	}
}

// forwardOneInRows computes the output of a step with one operand, whose table is a: each entry is the sum of the entries of a at the next
// s.Sums offsets.
func (s *Step) forwardOneInRows(a, out []float64) {
	offsets := s.In[0].inner
	term := 0
	for o := range out {
		sum := 0.0
		for end := term + s.Sums; term < end; term++ {
			sum += a[offsets[term]]
		}
		out[o] = sum
	}
}

// forwardTwoInRows computes the output of a step with two operands, whose tables are a and b: each entry is the sum of the products of
// their entries at the next s.Sums offsets.
func (s *Step) forwardTwoInRows(a, b, out []float64) {
	offsetsA, offsetsB := s.In[0].inner, s.In[1].inner
	term := 0
	for o := range out {
		sum := 0.0
		for end := term + s.Sums; term < end; term++ {
			sum += float64(a[offsetsA[term]] * b[offsetsB[term]])
		}
		out[o] = sum
	}
}

// forwardThreeInRows computes the output of a step with three operands, whose tables are a, b and c: each entry is the sum of the products
// of their entries at the next s.Sums offsets.
func (s *Step) forwardThreeInRows(a, b, c, out []float64) {
	offsetsA, offsetsB, offsetsC := s.In[0].inner, s.In[1].inner, s.In[2].inner
	term := 0
	for o := range out {
		sum := 0.0
		for end := term + s.Sums; term < end; term++ {
			sum += float64(a[offsetsA[term]] * b[offsetsB[term]] * c[offsetsC[term]])
		}
		out[o] = sum
	}
}

// backwardOneInRows adds to the derivative by the only operand: its entry in each of the s.Sums terms of an output entry gets the
// derivative by that output entry.
func (s *Step) backwardOneInRows(byOperand, byOutput []float64) {
	offsets := s.In[0].inner
	for _, d := range byOutput {
		for _, i := range offsets[:s.Sums] {
			byOperand[i] += d
		}
		offsets = offsets[s.Sums:]
	}
}

// backwardTwoInRows adds to the derivatives by two operands a and b: ∂Z/∂a += ∂Z/∂out·b and ∂Z/∂b += ∂Z/∂out·a in each of the s.Sums terms
// of an output entry. byOutput is ∂Z/∂out.
func (s *Step) backwardTwoInRows(m *Memory, byOutput []float64) {
	left, right := &s.In[0], &s.In[1]
	a, b, byA, byB := m.Tables[left.Table], m.Tables[right.Table], m.Derivatives[left.Table], m.Derivatives[right.Table]
	offsetsA, offsetsB := left.inner, right.inner
	for _, d := range byOutput {
		termsB := offsetsB[:s.Sums]
		for n, i := range offsetsA[:s.Sums] {
			j := termsB[n]
			byA[i] += float64(d * b[j])
			byB[j] += float64(d * a[i])
		}
		offsetsA, offsetsB = offsetsA[s.Sums:], offsetsB[s.Sums:]
	}
}
