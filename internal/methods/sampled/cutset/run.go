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

// Space is the room of one goroutine.
type Space struct {
	p        *Program
	base     []int       // of tables of the expression: where the entries are at the cut-set's values
	tables   [][]float64 // and from there on; then the messages
	messages []message
	down     [][]float64 // shares of the total by entries of messages
	tmp      []float64   // a block
}

// NewSpace returns room for slices. Bytes: Cost.Each.
func (p *Program) NewSpace() *Space {
	s := &Space{p: p, base: make([]int, len(p.tables)), messages: make([]message, len(p.steps)), tmp: make([]float64, p.inner)}
	for _, t := range p.tables {
		s.tables = append(s.tables, t.data)
	}
	s.tables = append(s.tables, make([][]float64, len(p.steps))...)
	return s
}

// LnSlice returns ln of the sum over all states that have the values of x at the cut-set's indices, nats, −Inf for 0. Where shares is not
// nil it adds the share of each value of each index to shares[i], which has zeros. Where products may leave the range of float64,
// package buckets sums with logarithms, and a state drawn from it by r stands for the shares. Errors: from these sums; the
// context's, which is looked at before each large step. Cost: see Price.
func (s *Space) LnSlice(ctx context.Context, r *rand.Rand, x []int, shares [][]float64) (ln float64, err error) {
	p := s.p
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	ln = p.ln
	for t := range p.tables {
		at := 0
		for k, i := range p.tables[t].scope {
			at += x[i] * p.tables[t].stride[k]
		}
		s.base[t] = at
		s.tables[t] = p.tables[t].data[at:]
	}
	for _, t := range p.within {
		x, given := p.tables[t].data[s.base[t]], p.e.Tables[t].Data[s.base[t]]
		if given > 0 && x < 0x1p-1022 { // the quotient has lost digits, or is 0
			ln += floats.Ln(given) - floats.Ln(p.tables[t].top)
		} else {
			ln += floats.Ln(x)
		}
	}
	if math.IsInf(ln, -1) {
		return ln, nil
	}
	for k := range p.steps {
		if p.steps[k].Outer > 1 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if p.fixed[k].data != nil {
			s.messages[k] = p.fixed[k]
			s.tables[len(p.tables)+k] = p.fixed[k].data
		} else if !s.step(k) {
			return s.deep(ctx, r, x, shares)
		}
		if s.messages[k].top == 0 {
			return math.Inf(-1), nil
		}
		ln += floats.Ln(s.messages[k].top)
	}
	if shares != nil {
		for i := range x {
			if p.cut[i] {
				shares[i][x[i]] = 1
			}
		}
		for _, i := range p.free {
			for a := range shares[i] {
				shares[i][a] = 1 / float64(len(shares[i]))
			}
		}
		s.passBack(shares)
	}
	return ln, nil
}

// step makes message k; false where products may leave the range of float64.
func (s *Space) step(k int) bool {
	st := &s.p.steps[k]
	least := 1.0
	for i := range st.In {
		least *= s.smallestEntry(st.In[i].Table)
	}
	if least < deepest {
		return false
	}
	m := &s.messages[k]
	if m.data == nil {
		m.data = make([]float64, st.Outer*st.Inner)
		s.tables[len(s.p.tables)+k] = m.data
	}
	clear(m.data)
	tmp := s.tmp[:st.Inner]
	for o := range st.Outer {
		out := m.data[o*st.Inner : (o+1)*st.Inner]
		for a := range st.Drops {
			if st.Product(s.tables, o, a, false, tmp) {
				for j, x := range tmp {
					out[j] += x
				}
			}
		}
	}
	m.top, m.least = 0, 1
	for _, x := range m.data {
		m.top = max(m.top, x)
	}
	if m.top == 0 {
		return true
	}
	for j, x := range m.data {
		if x > 0 {
			x /= m.top
			m.data[j], m.least = x, min(m.least, x)
		}
	}
	return true
}

// smallestEntry returns the smallest entry above 0 of a table or message.
func (s *Space) smallestEntry(t int) float64 {
	if n := len(s.p.tables); t >= n {
		return s.messages[t-n].least
	}
	return s.p.tables[t].least
}

// passBack goes down from the last step: the share of the total at each entry of a product is the product times the share of the message it
// goes into, over the message. A zero entry of a message has no share, and nothing below it has.
func (s *Space) passBack(shares [][]float64) {
	p := s.p
	if s.down == nil {
		s.down = make([][]float64, len(p.steps))
		for k := range p.steps {
			s.down[k] = make([]float64, p.steps[k].Outer*p.steps[k].Inner)
		}
	}
	for k := range s.down {
		clear(s.down[k])
		if p.steps[k].last {
			s.down[k][0] = 1
		}
	}
	for k := len(p.steps) - 1; k >= 0; k-- {
		st := &p.steps[k]
		m, down := &s.messages[k], s.down[k]
		for j, x := range down {
			if x > 0 {
				down[j] = x / (m.data[j] * m.top)
			}
		}
		tmp := s.tmp[:st.Inner]
		for o := range st.Outer {
			own := down[o*st.Inner : (o+1)*st.Inner]
			for a := range st.Drops {
				if !st.Product(s.tables, o, a, false, tmp) {
					continue
				}
				sum := 0.0
				for j, x := range own {
					tmp[j] *= x
					sum += tmp[j]
				}
				shares[st.index][a] += sum
				for t := range st.In {
					in := &st.In[t]
					if in.Table < len(p.tables) {
						continue
					}
					to := s.down[in.Table-len(p.tables)][in.Outer[o]+in.Drop[a]:]
					for j, at := range in.Inner {
						to[at] += tmp[j]
					}
				}
			}
		}
	}
}

// deep is LnSlice by package buckets.
func (s *Space) deep(ctx context.Context, r *rand.Rand, x []int, shares [][]float64) (ln float64, err error) {
	p := s.p
	e := &sumproduct.Expression{Dims: slices.Clone(p.e.Dims), Scale: p.e.Scale}
	for i, cut := range p.cut {
		if cut {
			e.Dims[i] = 1
		}
	}
	for t := range p.e.Tables {
		given := &p.e.Tables[t]
		own := sumproduct.Table{}
		stride := make([]int, len(p.e.Dims))
		sumproduct.Strides(stride, p.e.Dims, given.Scope)
		for _, i := range given.Scope {
			if !p.cut[i] {
				own.Scope = append(own.Scope, i)
			}
		}
		for _, at := range sumproduct.Offsets([]int(nil), p.e.Dims, own.Scope, stride) {
			own.Data = append(own.Data, given.Data[s.base[t]+at])
		}
		e.Tables = append(e.Tables, own)
	}
	steps, err := buckets.AlongOrder(ctx, e.Hypergraph(), p.eliminated, make([]bool, len(e.Dims)))
	if err != nil {
		return 0, err
	}
	run, err := buckets.Eliminate(ctx, e, steps, false, buckets.Options{Memory: p.memory, Threads: 1})
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
		if !p.cut[i] {
			a = state[i]
		}
		shares[i][a] = 1
	}
	return ln, nil
}
