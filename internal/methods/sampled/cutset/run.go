package cutset

// Slices: messages up, and marginals down.

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/engine/buckets"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// noLogs is the argument of buckets.Kernel.Product for tables of entries, not of their logarithms.
const noLogs = false

// Space is the memory with which one goroutine contracts slices of a program.
type Space struct {
	program   *Program
	baseIndex []int       // by table of the expression: the number of its first entry at the cut-set's values
	tables    [][]float64 // the tables of the expression from that entry on, then the messages of the steps
	messages  []message   // by step
	shares    [][]float64 // by step and entry of its message: the entry's share of the slice's sum; nil until it is asked for
	product   []float64   // scratch: a block of a product
}

// NewSpace returns memory with which one goroutine contracts slices. It takes Cost.Each bytes.
func (p *Program) NewSpace() *Space {
	s := &Space{program: p, baseIndex: make([]int, len(p.tables))}
	s.messages, s.product = make([]message, len(p.steps)), make([]float64, p.maxInner)
	for _, t := range p.tables {
		s.tables = append(s.tables, t.data)
	}
	s.tables = append(s.tables, make([][]float64, len(p.steps))...) // behind the tables, the message of each step
	return s
}

// LnSlice returns ln of the sum over all states that have the values of x at the cut-set's indices, nats, −Inf for 0. If shares is not nil,
// it sets shares[i][a] to the share of the states with value a of index i in that sum; the entries must be 0 before. If products may leave
// the range of float64, package buckets sums with logarithms; then a state that r draws stands for the shares. Errors: those of these sums;
// that of the context, which is looked at before each large step. Cost: see Price.
func (s *Space) LnSlice(ctx context.Context, r *rand.Rand, x []int, shares [][]float64) (ln float64, err error) {
	// Sum out index by index. The last messages are numbers, whose product is the sum.
	p := s.program
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	ln = s.selectSlice(x)
	if math.IsInf(ln, -1) {
		return ln, nil
	}
	for k := range p.steps {
		if p.steps[k].Outer > 1 && ctx.Err() != nil { // a step of several blocks is a large one
			return 0, ctx.Err()
		}
		if p.commonMessages[k].data != nil { // the same in all slices, computed by New
			s.messages[k] = p.commonMessages[k]
			s.tables[len(p.tables)+k] = p.commonMessages[k].data
		} else if !s.computeMessage(k) { // products may leave the range of float64
			return s.sumByBuckets(ctx, r, x, shares)
		}
		if s.messages[k].divisor == 0 { // all entries are 0, and so is the sum
			return math.Inf(-1), nil
		}
		ln += floats.Ln(s.messages[k].divisor) // a message is divided by its largest entry
	}
	if shares != nil {
		s.addShares(x, shares)
	}
	return ln, nil
}

// addShares adds the shares of the values in the sum of the slice. A cut index has one value. The values of a free index, which is in no
// table, have equal shares.
func (s *Space) addShares(x []int, shares [][]float64) {
	for i := range x {
		if s.program.isCut[i] {
			shares[i][x[i]] = 1
		}
	}
	for _, i := range s.program.free {
		for a := range shares[i] {
			shares[i][a] = 1 / float64(len(shares[i]))
		}
	}
	s.addEliminatedShares(shares)
}

// selectSlice lets the tables begin at their first entry with the values of x at the cut-set's indices. It returns ln of the product of the
// constant and of the tables whose indices are all in the cut-set. Tables are divided by their largest entry, which is in the constant.
func (s *Space) selectSlice(x []int) (ln float64) {
	p := s.program
	for t := range p.tables {
		base := 0
		for k, i := range p.tables[t].scope {
			base += x[i] * p.tables[t].stride[k]
		}
		s.baseIndex[t] = base
		s.tables[t] = p.tables[t].data[base:]
	}

	ln = p.lnConstant
	for _, t := range p.cutOnly {
		quotient, entry := p.tables[t].data[s.baseIndex[t]], p.expression.Tables[t].Data[s.baseIndex[t]]
		if entry > 0 && quotient < 0x1p-1022 { // the quotient has lost digits, or is 0
			ln += floats.Ln(entry) - floats.Ln(p.tables[t].divisor)
		} else {
			ln += floats.Ln(quotient)
		}
	}
	return ln
}

// computeMessage computes the message of step k: the product of its tables with one index summed out, divided by its largest entry. It
// returns false, without a message, if products may leave the range of float64.
func (s *Space) computeMessage(k int) bool {
	st := &s.program.steps[k]
	// Give up if products may underflow. leastPossible is the product of the smallest entries above 0: no product above 0 is smaller.
	leastPossible := 1.0
	for i := range st.In {
		leastPossible *= s.smallestEntry(st.In[i].Table)
	}
	if leastPossible < leastProduct {
		return false
	}

	// The message has st.Outer blocks of st.Inner entries, and the summed index st.Drops values. st.Product multiplies the tables for block
	// o at value a of the summed index.
	m := &s.messages[k]
	if m.data == nil {
		m.data = make([]float64, st.Outer*st.Inner)
		s.tables[len(s.program.tables)+k] = m.data
	}
	clear(m.data)
	product := s.product[:st.Inner]
	for o := range st.Outer {
		sums := m.data[o*st.Inner : (o+1)*st.Inner]
		for a := range st.Drops {
			if st.Product(s.tables, o, a, noLogs, product) { // false: all products of the block are 0
				for j, x := range product {
					sums[j] += x
				}
			}
		}
	}

	m.normalise()
	return true
}

// normalise divides the entries of a message by the largest one, unless that is 0. It sets divisor to that largest entry and least to the
// smallest entry above 0 after the division.
func (m *message) normalise() {
	m.divisor, m.least = 0, 1
	for _, x := range m.data {
		m.divisor = max(m.divisor, x)
	}
	if m.divisor == 0 {
		return
	}
	for j, x := range m.data {
		if x > 0 {
			x /= m.divisor
			m.data[j], m.least = x, min(m.least, x)
		}
	}
}

// smallestEntry returns the smallest entry above 0 of table t. Tables are those of the expression, then the messages of the steps.
func (s *Space) smallestEntry(t int) float64 {
	if n := len(s.program.tables); t >= n {
		return s.messages[t-n].least
	}
	return s.program.tables[t].least
}

// addEliminatedShares adds to shares[i][a] the share of value a of each eliminated index i in the sum of the slice. It goes through the
// steps from the last to the first. A step has summed products to an entry of its message: each product has the fraction
// product/(entry·divisor) of the entry's share. If the entry is 0, its products have none.
func (s *Space) addEliminatedShares(shares [][]float64) {
	p := s.program
	s.startShares()
	for k := len(p.steps) - 1; k >= 0; k-- {
		// Divide the shares of the message's entries by the entries.
		st := &p.steps[k]
		m, ratios := &s.messages[k], s.shares[k]
		for j, x := range ratios {
			if x > 0 {
				ratios[j] = x / (m.data[j] * m.divisor)
			}
		}

		// Compute the products again, block by block and for each value a of the summed index, and pass their shares on: to the value, and
		// to the entries of earlier messages that they are made of.
		product := s.product[:st.Inner]
		for o := range st.Outer {
			blockRatios := ratios[o*st.Inner : (o+1)*st.Inner]
			for a := range st.Drops {
				if !st.Product(s.tables, o, a, noLogs, product) { // all products of the block are 0
					continue
				}
				sum := 0.0
				for j, x := range blockRatios {
					product[j] *= x // now the share of the product
					sum += product[j]
				}
				shares[st.index][a] += sum
				s.passShares(st, o, a, product)
			}
		}
	}
}

// passShares takes the shares of the products of a step in block o at value a of the summed index. It adds the share of each product to the
// entries of the earlier messages that are factors of the product.
func (s *Space) passShares(st *step, o, a int, productShares []float64) {
	tables := len(s.program.tables)
	for t := range st.In {
		operand := &st.In[t]
		if operand.Table < tables { // a table of the expression, no message
			continue
		}
		// Block o at value a begins at this offset in the earlier message; in.Inner has the offsets within a block.
		inShares := s.shares[operand.Table-tables][operand.Outer[o]+operand.Drop[a]:]
		for j, entry := range operand.Inner {
			inShares[entry] += productShares[j]
		}
	}
}

// startShares sets the shares of the entries of all messages to 0. A message that is a number, the result of its step, has share 1.
func (s *Space) startShares() {
	p := s.program
	if s.shares == nil {
		s.shares = make([][]float64, len(p.steps))
		for k := range p.steps {
			s.shares[k] = make([]float64, p.steps[k].Outer*p.steps[k].Inner)
		}
	}
	for k := range s.shares {
		clear(s.shares[k])
		if p.steps[k].isLast {
			s.shares[k][0] = 1
		}
	}
}

// sumByBuckets returns ln of the sum over the slice, as LnSlice does, but by package buckets, with logarithms. The slice is all states that
// have the values of x at the cut-set's indices. If shares is not nil, r draws one state of the slice, and its values get share 1.
func (s *Space) sumByBuckets(ctx context.Context, r *rand.Rand, x []int, shares [][]float64) (ln float64, err error) {
	p := s.program
	e := s.slicedExpression()
	isMaximal := make([]bool, len(e.Dims)) // false: all indices are summed
	steps, err := buckets.AlongOrder(ctx, e.Hypergraph(), p.eliminated, isMaximal)
	if err != nil {
		return 0, err
	}
	const maximal = false // sums, not maxima
	run, err := buckets.Eliminate(ctx, e, steps, maximal, buckets.Options{Memory: p.memory, Threads: 1})
	if err != nil {
		return 0, err
	}
	ln = run.LnTotal()
	if shares == nil || math.IsInf(ln, -1) {
		return ln, nil
	}
	state := make([]int, len(x))
	run.Draw(r, state)
	for i, a := range x {
		if !p.isCut[i] {
			a = state[i]
		}
		shares[i][a] = 1
	}
	return ln, nil
}

// slicedExpression returns the expression of the present slice: the indices of the cut-set have one value and are in no table.
func (s *Space) slicedExpression() *sumproduct.Expression {
	p := s.program
	e := &sumproduct.Expression{Dims: slices.Clone(p.expression.Dims), Scale: p.expression.Scale}
	for i, isCut := range p.isCut {
		if isCut {
			e.Dims[i] = 1
		}
	}

	// Take the entries of each table for the values of its other indices, from the first entry at the cut-set's values on.
	for t := range p.expression.Tables {
		whole := &p.expression.Tables[t]
		sliced := sumproduct.Table{}
		stride := make([]int, len(p.expression.Dims))
		sumproduct.Strides(stride, p.expression.Dims, whole.Scope)
		for _, i := range whole.Scope {
			if !p.isCut[i] {
				sliced.Scope = append(sliced.Scope, i)
			}
		}
		offsets := sumproduct.Offsets([]int(nil), p.expression.Dims, sliced.Scope, stride) // in the whole table; nil: a new list
		for _, offset := range offsets {
			sliced.Data = append(sliced.Data, whole.Data[s.baseIndex[t]+offset])
		}
		e.Tables = append(e.Tables, sliced)
	}
	return e
}
