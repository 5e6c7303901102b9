package compiled

// Steps in blocks: the innermost loops go over the entries of a block of the output, for one term of the sums after the
// other. Offsets are relative to the beginning of the block in each operand (Operand.outer).

// forwardOne computes the output of a step with one operand, whose table is a: out[j] = Σ a[offset], for entry j of each block. out is 0
// before. The operand begins at outer[k] in block k, and inner has the offsets of one term of all entries of a block, then of the next
// term.
func (s *Step) forwardOne(a, out []float64) {
	offsets := s.In[0].inner
	for k, begin := range s.In[0].outer {
		a, out := a[begin:], s.blockOf(out, k)
		for term := 0; term < len(offsets); term += len(out) {
			for j, i := range offsets[term:][:len(out)] {
				out[j] += a[i]
			}
		}
	}
}

// forwardTwo computes the output of a step with two operands, block by block: out[j] = Σ a[i]·b[l], for entry j of a block. out is 0
// before. The operands begin at outer[k] in block k, and inner has their offsets for one term of all entries of a block, then for the
// next term. If an operand has one entry for the whole block and term, it is taken as the left one.
func (s *Step) forwardTwo(m *Memory, out []float64) {
	left, right := &s.In[0], &s.In[1]
	if right.isConstant {
		left, right = right, left
	}
	a, b := m.Tables[left.Table], m.Tables[right.Table]
	for k, begin := range left.outer {
		a, b, out := a[begin:], b[right.outer[k]:], s.blockOf(out, k)
		for term := 0; term < len(left.inner); term += len(out) {
			offsetsB := right.inner[term:][:len(out)]
			if left.isConstant {
				factor := a[left.inner[term]]
				for j, i := range offsetsB {
					out[j] += float64(factor * b[i])
				}
				continue
			}
			for j, i := range left.inner[term:][:len(out)] {
				out[j] += float64(a[i] * b[offsetsB[j]])
			}
		}
	}
}

// forwardThree computes the output of a step with three operands, whose tables are a, b and c: out[j] = Σ a·b·c, for entry j of each block.
// out is 0 before. The operands begin at outer[k] in block k, and inner has their offsets for one term of all entries of a block, then for
// the next term.
func (s *Step) forwardThree(a, b, c, out []float64) {
	innerA, innerB, innerC := s.In[0].inner, s.In[1].inner, s.In[2].inner
	for k, begin := range s.In[0].outer {
		a, b, c := a[begin:], b[s.In[1].outer[k]:], c[s.In[2].outer[k]:]
		out := s.blockOf(out, k)
		for term := 0; term < len(innerA); term += len(out) {
			offsetsB, offsetsC := innerB[term:][:len(out)], innerC[term:][:len(out)]
			for j, i := range innerA[term:][:len(out)] {
				out[j] += float64(a[i] * b[offsetsB[j]] * c[offsetsC[j]])
			}
		}
	}
}

// forwardMany computes the output of a step with four or more operands, block by block. out is 0 before. In each block it first multiplies
// all operands but the last two for all terms; then it adds up out[j] = Σ product·y·z, taking one term of all entries of the block, then
// the next term.
func (s *Step) forwardMany(m *Memory, out []float64) {
	n := len(s.In) - 2
	inY, inZ := &s.In[n], &s.In[n+1]
	products := m.scratch[:len(inY.inner)]
	for k := range inY.outer {
		m.multiplyAll(s.In[:n], k, products)
		y, z, out := m.Tables[inY.Table][inY.outer[k]:], m.Tables[inZ.Table][inZ.outer[k]:], s.blockOf(out, k)
		for term := 0; term < len(products); term += len(out) {
			offsetsY, offsetsZ := inY.inner[term:][:len(out)], inZ.inner[term:][:len(out)]
			for j, f := range products[term:][:len(out)] {
				out[j] += float64(f * y[offsetsY[j]] * z[offsetsZ[j]])
			}
		}
	}
}

// multiplyAll sets products[i] to the product of two or more operands in block k, each at its entry inner[i] of the block.
func (m *Memory) multiplyAll(in []Operand, k int, products []float64) {
	a, b := m.Tables[in[0].Table][in[0].outer[k]:], m.Tables[in[1].Table][in[1].outer[k]:]
	offsetsB := in[1].inner[:len(products)]
	for i, offset := range in[0].inner[:len(products)] {
		products[i] = a[offset] * b[offsetsB[i]]
	}
	for _, operand := range in[2:] {
		c := m.Tables[operand.Table][operand.outer[k]:]
		for i, offset := range operand.inner[:len(products)] {
			products[i] *= c[offset]
		}
	}
}

// backwardOne adds, for the blocks firstBlock ≤ k < endBlock of the output, to the derivative by the only operand. The operand's entry in
// each term of entry j gets byOutput[j], the derivative by the output.
func (s *Step) backwardOne(byOperand, byOutput []float64, firstBlock, endBlock int) {
	offsets := s.In[0].inner
	for k := firstBlock; k < endBlock; k++ {
		byOperand, byOutput := byOperand[s.In[0].outer[k]:], s.blockOf(byOutput, k)
		for term := 0; term < len(offsets); term += len(byOutput) {
			for j, i := range offsets[term:][:len(byOutput)] {
				byOperand[i] += byOutput[j]
			}
		}
	}
}

// backwardTwo adds, for the blocks firstBlock ≤ k < endBlock of the output, to the derivatives by two operands a and b, both of which are
// needed: ∂Z/∂a += ∂Z/∂out·b and ∂Z/∂b += ∂Z/∂out·a. It takes one term of all entries of a block, then the next term. byOutput is ∂Z/∂out.
// If an operand has one entry for the whole block and term, it is taken as a.
func (s *Step) backwardTwo(m *Memory, byOutput []float64, firstBlock, endBlock int) {
	left, right := &s.In[0], &s.In[1]
	if right.isConstant {
		left, right = right, left
	}
	for k := firstBlock; k < endBlock; k++ {
		a, byA := m.Tables[left.Table][left.outer[k]:], m.Derivatives[left.Table][left.outer[k]:]
		b, byB := m.Tables[right.Table][right.outer[k]:], m.Derivatives[right.Table][right.outer[k]:]
		byOutput := s.blockOf(byOutput, k)
		for term := 0; term < len(left.inner); term += len(byOutput) {
			offsetsA, offsetsB := left.inner[term:][:len(byOutput)], right.inner[term:][:len(byOutput)]
			if left.isConstant {
				factor, sum := a[offsetsA[0]], byA[offsetsA[0]]
				for n, d := range byOutput {
					j := offsetsB[n]
					sum += float64(d * b[j])
					byB[j] += float64(d * factor)
				}
				byA[offsetsA[0]] = sum
				continue
			}
			for n, d := range byOutput {
				i, j := offsetsA[n], offsetsB[n]
				byA[i] += float64(d * b[j])
				byB[j] += float64(d * a[i])
			}
		}
	}
}
