package compiled

// Runs: forwards for the value, backwards for derivatives.

import "slices"

// Memory holds the tables that a run of a program reads and writes, for one goroutine.
type Memory struct {
	Tables            [][]float64 // by table: its entries; the caller sets the leaves
	Derivatives       [][]float64 // by table: the derivative of Z by its entries; nil if it is not needed
	outEntries        []float64   // memory of Tables, without leaves
	derivativeEntries []float64   // memory of Derivatives
	scratch           []float64
}

// Prepare divides the memory among the outputs of p's steps, and among the needed derivatives if hasDerivatives is set. The caller has to
// set the leaves afterwards. Capacity grown for other programs is reused.
func (m *Memory) Prepare(p *Program, hasDerivatives bool) {
	m.outEntries = resize(m.outEntries, p.Entries)
	m.scratch = resize(m.scratch, p.scratchSize)
	m.Tables = resize(m.Tables, len(p.sizes))
	start := 0 // of the next table in outEntries; the leaves are the caller's
	for t := p.Leaves; t < len(p.sizes); t++ {
		end := start + p.sizes[t]
		m.Tables[t] = m.outEntries[start:end:end]
		start = end
	}
	if !hasDerivatives {
		return
	}
	m.derivativeEntries = resize(m.derivativeEntries, p.derivativeEntries)
	m.Derivatives = resize(m.Derivatives, len(p.sizes))
	start = 0 // of the next derivative in derivativeEntries, those by leaves among them
	for t, size := range p.sizes {
		m.Derivatives[t] = nil
		if p.isNeeded[t] {
			end := start + size
			m.Derivatives[t] = m.derivativeEntries[start:end:end]
			start = end
		}
	}
}

// WithOwnScratch returns memory with the same tables and derivatives, and scratch space of its own for Backward and BackwardBlocks. It is
// for a further goroutine, or for a caller that sets the tables and derivatives of each step himself, without Prepare.
func (m *Memory) WithOwnScratch(p *Program) Memory {
	return Memory{Tables: m.Tables, Derivatives: m.Derivatives, scratch: make([]float64, p.backScratchSize)}
}

// resize returns a slice of n elements, which may have any values, in the memory of s if its capacity is enough.
func resize[T any](s []T, n int) []T { return slices.Grow(s[:0], n)[:n] }

// Forward computes the output of step n from its operands, by loops made for their number, and for a step in rows or in blocks (Step). In
// rows, the innermost loop goes over the terms of one entry of the output.
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
//	∂Z/∂in_k[i] = Σ ∂Z/∂out[o] Π_{l≠k} in_l    over all entries o and terms s whose factor in_k is entry i
func (p *Program) Backward(m *Memory, n int) {
	s := &p.Steps[n]
	for k := range s.In {
		if s.In[k].Needed {
			clear(m.Derivatives[s.In[k].Table])
		}
	}
	p.BackwardBlocks(m, n, 0, s.Blocks)
}

// BackwardBlocks adds, to the derivatives by the operands of step n, what the output's blocks first ≤ b < end contribute. Step.Unit blocks
// in a row are a unit; different units change different derivatives, so goroutines may work side by side. The range must consist of whole
// units.
func (p *Program) BackwardBlocks(m *Memory, n, first, end int) {
	s, byOutput := &p.Steps[n], m.Derivatives[p.Leaves+n]
	in := s.In
	areTwoNeeded := len(in) == 2 && in[0].Needed && in[1].Needed // Needed: the derivative by the operand is wanted or leads to a wanted one
	switch {
	case len(in) == 1 && s.isInRows: // a single block
		s.backwardOneInRows(m.Derivatives[in[0].Table], byOutput)
	case len(in) == 1:
		s.backwardOne(m.Derivatives[in[0].Table], byOutput, first, end)
	case areTwoNeeded && s.isInRows:
		s.backwardTwoInRows(m, byOutput)
	case areTwoNeeded:
		s.backwardTwo(m, byOutput, first, end)
	default:
		s.backwardMany(m, byOutput, first, end)
	}
}

// backwardMany adds, for the blocks firstBlock ≤ b < endBlock of the output, to the derivatives by any number of operands. byOutput is the
// derivative by the output. For each term, the derivative by operand k gets the product of byOutput and of the operands before k (prefix)
// and after k (suffix).
//
// It takes runs of n terms at a time: those of one entry of the output if the step is in rows, else one term of each entry of a block.
func (s *Step) backwardMany(m *Memory, byOutput []float64, firstBlock, endBlock int) {
	firstNeeded, lastNeeded := 0, len(s.In)-1 // of the operands; one at least is needed
	for !s.In[firstNeeded].Needed {
		firstNeeded++
	}
	for !s.In[lastNeeded].Needed {
		lastNeeded--
	}
	n := s.runLength()
	prefixMemory, suffixes := m.scratch[:n], m.scratch[n:]
	for b := firstBlock; b < endBlock; b++ {
		for start := 0; start < len(s.In[0].inner); start += n {
			m.setSuffixes(s.In, b, start, firstNeeded, suffixes, n)
			prefix := prefixMemory // by term of the run; at first byOutput at the term's entry
			if s.isInRows {
				for j := range prefix {
					prefix[j] = byOutput[(start+j)/s.Sums]
				}
			} else {
				prefix = s.blockOf(byOutput, b) // not to be changed
			}
			for k := range s.In[:lastNeeded+1] {
				in := &s.In[k]
				offsets := in.inner[start:][:n]
				if in.Needed {
					suffix := []float64(nil) // ones, behind the last operand
					if k+1 < len(s.In) {
						suffix = suffixes[k*n:][:n]
					}
					in.addProducts(m.Derivatives[in.Table][in.outer[b]:], offsets, prefix, suffix)
				}
				if k < lastNeeded {
					in.multiply(prefixMemory, prefix, m.Tables[in.Table][in.outer[b]:], offsets)
					prefix = prefixMemory
				}
			}
		}
	}
}

// addProducts adds prefix[j]·suffix[j] to derivative[offsets[j]] for every j. A nil suffix stands for ones. If the operand is constant, all
// offsets are the same.
func (in *Operand) addProducts(derivative []float64, offsets []int32, prefix, suffix []float64) {
	offsets = offsets[:len(prefix)]
	switch {
	case in.isConstant && suffix == nil: // one entry of the derivative takes all products
		sum := derivative[offsets[0]]
		for _, f := range prefix {
			sum += f
		}
		derivative[offsets[0]] = sum
	case in.isConstant:
		suffix = suffix[:len(prefix)]
		sum := derivative[offsets[0]]
		for j, f := range prefix {
			sum += float64(f * suffix[j])
		}
		derivative[offsets[0]] = sum
	case suffix == nil:
		for j, f := range prefix {
			derivative[offsets[j]] += f
		}
	default:
		suffix = suffix[:len(prefix)]
		for j, f := range prefix {
			derivative[offsets[j]] += float64(f * suffix[j])
		}
	}
}

// multiply sets out[j] = factors[j]·table[offsets[j]] for every j. Nil factors stand for ones. If the operand is constant, all offsets are
// the same.
func (in *Operand) multiply(out, factors, table []float64, offsets []int32) {
	out = out[:len(offsets)]
	switch {
	case factors == nil:
		for j, i := range offsets {
			out[j] = table[i]
		}
	case in.isConstant:
		entry := table[offsets[0]]
		for j, f := range factors[:len(offsets)] {
			out[j] = f * entry
		}
	default:
		factors = factors[:len(offsets)]
		for j, i := range offsets {
			out[j] = factors[j] * table[i]
		}
	}
}

// setSuffixes sets suffixes[k·n:(k+1)·n], for every operand k ≥ firstNeeded but the last, to the products of the operands behind k. They
// are for the run of n terms that begins at position start of the inner offsets in block b.
func (m *Memory) setSuffixes(in []Operand, b, start, firstNeeded int, suffixes []float64, n int) {
	suffix := []float64(nil)
	for k := len(in) - 1; k > firstNeeded; k-- {
		longer := suffixes[(k-1)*n:][:n]
		in[k].multiply(longer, suffix, m.Tables[in[k].Table][in[k].outer[b]:], in[k].inner[start:][:n])
		suffix = longer
	}
}

// blockOf returns block b of the output, or of a table of the same shape.
func (s *Step) blockOf(out []float64, b int) []float64 {
	if s.blockStart != nil {
		return out[s.blockStart[b]:][:s.blockSize]
	}
	return out[b*s.blockSize:][:s.blockSize]
}
