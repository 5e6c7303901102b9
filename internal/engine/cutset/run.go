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
	base     []int // of tables of the expression: where the entries are at the cut-set's values
	messages []message
	down     [][]float64 // shares of the total by entries of messages
	tmp      []float64   // a block
}

// NewSpace returns room for slices. Bytes: Cost.Each.
func (p *Program) NewSpace() *Space {
	return &Space{p: p, base: make([]int, len(p.tables)), messages: make([]message, len(p.steps)), tmp: make([]float64, p.inner)}
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
	}
	for _, t := range p.within {
		ln += floats.Ln(p.tables[t].data[s.base[t]])
	}
	if math.IsInf(ln, -1) {
		return ln, nil
	}
	for k := range p.steps {
		if p.steps[k].outer > 1 && ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if p.fixed[k].data != nil {
			s.messages[k] = p.fixed[k]
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
	for _, o := range st.operands {
		least *= s.smallestEntry(o.table)
	}
	if least < deepest {
		return false
	}
	m := &s.messages[k]
	n := st.outer * st.inner
	if m.data == nil {
		m.data = make([]float64, n)
	}
	clear(m.data)
	for o := range st.outer {
		out := m.data[o*st.inner : (o+1)*st.inner]
		for a := range st.d {
			tmp, c := s.product(st, o, a)
			if tmp == nil {
				for j := range out {
					out[j] += c
				}
				continue
			}
			for j, x := range tmp[:len(out)] {
				out[j] += x
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

// data is a table at the cut-set's values, or a message.
func (s *Space) data(t int) []float64 {
	if n := len(s.p.tables); t >= n {
		return s.messages[t-n].data
	}
	return s.p.tables[t].data[s.base[t]:]
}

// product multiplies the operands of a step over a block at a value of its index; where all are constant there, nil and their
// product.
func (s *Space) product(st *step, o, a int) (tmp []float64, c float64) {
	c = 1
	t := 0
	for ; t < len(st.operands) && st.operands[t].kind == constant; t++ {
		in := &st.operands[t]
		c *= s.data(in.table)[int(in.outer[o])+a*in.own]
	}
	if t == len(st.operands) || c == 0 {
		return nil, c
	}
	tmp = s.tmp[:st.inner]
	for first := true; t < len(st.operands); t++ {
		in := &st.operands[t]
		data := s.data(in.table)[int(in.outer[o])+a*in.own:]
		switch {
		case in.kind == contiguous && first:
			for j, x := range data[:len(tmp)] {
				tmp[j] = c * x
			}
		case in.kind == contiguous:
			for j, x := range data[:len(tmp)] {
				tmp[j] *= x
			}
		case first:
			for j, at := range in.inner[:len(tmp)] {
				tmp[j] = c * data[at]
			}
		default:
			for j, at := range in.inner[:len(tmp)] {
				tmp[j] *= data[at]
			}
		}
		first = false
	}
	return tmp, 1
}

// passBack goes down from the last step: the share of the total at each entry of a product is the product times the share of the message it
// goes into, over the message. A zero entry of a message has no share, and nothing below it has.
func (s *Space) passBack(shares [][]float64) {
	p := s.p
	if s.down == nil {
		s.down = make([][]float64, len(p.steps))
		for k := range p.steps {
			s.down[k] = make([]float64, p.steps[k].outer*p.steps[k].inner)
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
		for o := range st.outer {
			own := down[o*st.inner : (o+1)*st.inner]
			for a := range st.d {
				tmp, c := s.product(st, o, a)
				if tmp == nil {
					tmp = s.tmp[:st.inner]
					for j := range tmp {
						tmp[j] = c
					}
				}
				sum := 0.0
				for j, x := range own {
					tmp[j] *= x
					sum += tmp[j]
				}
				shares[st.index][a] += sum
				for t := range st.operands {
					in := &st.operands[t]
					if in.table < len(p.tables) {
						continue
					}
					to := s.down[in.table-len(p.tables)][int(in.outer[o])+a*in.own:]
					for j, at := range in.inner {
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
