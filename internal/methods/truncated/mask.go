package truncated

// Masks: evidence and slices on a network that has been simplified already.

import (
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Mask returns the network under evidence at the same simplification: Z is the Z of the conditioned network. An index with one value left
// is gone from all scopes and has dimension 1; the weights of others are multiplied into their first table. The number and sequence of
// the tables stay, so a plan for p fits. p does not change. Errors: ErrNoMask for a variable that no index decides any more, and where a
// product with a weight leaves the range of float64. Cost: one pass over the tables touched.
func (p *Prepared) Mask(ev factorgraph.Evidence) (*Prepared, error) {
	if ev.IsEmpty() {
		return p, nil
	}
	if p.weights != nil {
		return nil, fmt.Errorf("%w: the network is under a mask already", ErrNoMask)
	}
	e := p.simple.Expression
	q := &Prepared{net: p.net, given: p.given, marginals: p.marginals, signed: p.signed, weights: make([][]float64, len(e.Dims))}
	m := masker{p: p, q: q, scale: e.Scale}
	for _, s := range ev.Soft {
		if err := m.multiply(s.Var, func(x int) float64 { return s.Weights[x] }); err != nil {
			return nil, err
		}
	}
	for _, h := range ev.Hard {
		if err := m.multiply(h.Var, func(x int) float64 {
			if x == h.Value {
				return 1
			}
			return 0
		}); err != nil {
			return nil, err
		}
	}
	simple := *p.simple
	if simple.Expression = m.apply(); m.beyond {
		return nil, fmt.Errorf("%w: a product of weights leaves the range of float64", ErrNoMask)
	}
	q.simple = &simple
	if p.absolute > 0 {
		q.absolute = absoluteOf(simple.Expression)
	}
	return q, nil
}

// masker collects the weights of the indices.
type masker struct {
	p, q    *Prepared
	scale   scaled.Number
	touched []int
	beyond  bool // a product has lost digits to the range of float64
}

// leastProduct is the least magnitude of a nonzero product that is trusted to have all its digits, as in package preprocess.
const leastProduct = 0x1p-1000

// times is the product of an entry and a weight.
func (m *masker) times(x, weight float64) float64 {
	if x == 0 || weight == 0 || weight == 1 {
		return x * weight
	}
	y := x * weight
	m.beyond = m.beyond || math.Abs(y) < leastProduct || math.IsInf(y, 0)
	return y
}

// multiply puts weights on the values of a variable.
func (m *masker) multiply(variable int, weight func(x int) float64) error {
	p := m.p
	if variable < 0 || variable >= len(p.given.Variables) {
		return fmt.Errorf("%w: variable %d of %d", ErrNoMask, variable, len(p.given.Variables))
	}
	i := p.given.Variables[variable]
	value := func(k int) int { // of the network, for the k-th value of index i
		if s := p.given.Support[i]; s != nil {
			return s[k]
		}
		return k
	}
	if p.given.Dims[i] == 1 {
		m.scale = m.scale.Mul(scaled.FromFloat(weight(value(0))))
		return nil
	}
	o := p.simple.Origin[i]
	if o.From == nil {
		return fmt.Errorf("%w: variable %d", ErrNoMask, variable)
	}
	if len(o.From) == 1 { // the network decides it
		m.scale = m.scale.Mul(scaled.FromFloat(weight(value(o.From[0]))))
		return nil
	}
	j := o.Index
	if !slices.Contains(m.touched, j) {
		m.touched = append(m.touched, j)
	}
	w := m.q.weights[j]
	if w == nil {
		w = slices.Repeat([]float64{1}, len(o.From))
	}
	for y, k := range o.From {
		w[y] = m.times(w[y], weight(value(k)))
	}
	m.q.weights[j] = w
	return nil
}

// apply returns the simplified expression under the weights.
func (m *masker) apply() *sumproduct.Expression {
	e := m.p.simple.Expression
	out := &sumproduct.Expression{
		Dims:      slices.Clone(e.Dims),
		Tables:    slices.Clone(e.Tables),
		Variables: e.Variables,
		Support:   e.Support,
		Unfit:     e.Unfit,
	}
	slices.Sort(m.touched)
	fixed := map[int]int{}
	rest := map[int]bool{}
	for _, j := range m.touched {
		w := m.q.weights[j]
		left, at := 0, 0
		for y, x := range w {
			if x != 0 {
				left, at = left+1, y
			}
		}
		switch {
		case left == 0:
			m.scale = scaled.Number{}
		case left == 1:
			fixed[j] = at
			m.scale = m.scale.Mul(scaled.FromFloat(w[at]))
			out.Dims[j] = 1
		default:
			rest[j] = true
		}
	}
	used := map[int]bool{}
	for t, table := range e.Tables {
		touched := false
		for _, i := range table.Scope {
			_, isFixed := fixed[i]
			touched = touched || isFixed || rest[i] && !used[i]
		}
		if touched {
			out.Tables[t] = m.cut(table, fixed, rest, used)
		}
		for _, i := range table.Scope {
			used[i] = true
		}
	}
	for _, j := range m.touched { // an index in no table is a factor of its dimension
		if rest[j] && !used[j] {
			sum := 0.0
			for _, x := range m.q.weights[j] {
				sum += x
			}
			m.scale = m.scale.Mul(scaled.FromFloat(sum))
			out.Dims[j] = 1
		}
	}
	out.Scale = m.scale
	return out
}

// cut fixes indices of a table and multiplies the weights of others in whose first table it is.
func (m *masker) cut(t sumproduct.Table, fixed map[int]int, rest, used map[int]bool) sumproduct.Table {
	dims := m.p.simple.Expression.Dims
	out := sumproduct.Table{}
	for _, i := range t.Scope {
		if _, gone := fixed[i]; !gone {
			out.Scope = append(out.Scope, i)
		}
	}
	at := sumproduct.NewWalk(dims, t.Scope)
	for _, x := range t.Data {
		in := true
		for k, i := range t.Scope {
			if y, gone := fixed[i]; gone {
				in = in && at.X[k] == y
			} else if rest[i] && !used[i] {
				x = m.times(x, m.q.weights[i][at.X[k]])
			}
		}
		if in {
			out.Data = append(out.Data, x)
		}
		at.Next()
	}
	return out
}

// complete gives indices that a mask fixed, or that are in no table, their marginals.
func (p *Prepared) complete(marginals [][]float64) [][]float64 {
	if p.weights == nil {
		return marginals
	}
	full := slices.Clone(marginals)
	for j, w := range p.weights {
		if w == nil || p.simple.Expression.Dims[j] > 1 {
			continue
		}
		sum, left := 0.0, 0
		for _, x := range w {
			sum += x
			if x != 0 {
				left++
			}
		}
		row := make([]float64, len(w))
		for y, x := range w {
			if left == 1 && x != 0 {
				row[y] = 1
			} else {
				row[y] = x / sum
			}
		}
		full[j] = row
	}
	return full
}

// Rows returns the marginals of the network's variables from the marginals of Expression. Each of its values is a mean of the values of
// the index that decides it. Errors: preprocess.ErrSummedOut where the network was not prepared for marginals.
func (p *Prepared) Rows(marginals [][]float64) ([][]float64, error) {
	full := p.complete(marginals)
	out := make([][]float64, len(p.net.Variables))
	for v, variable := range p.net.Variables {
		i := p.given.Variables[v]
		row, err := p.simple.Recover(i, full)
		if err != nil {
			return nil, fmt.Errorf("truncated: marginal of variable %d: %w", v, err)
		}
		if support := p.given.Support[i]; support != nil {
			wide := make([]float64, variable.Domain)
			for k, x := range support {
				wide[x] = row[k]
			}
			row = wide
		}
		out[v] = row
	}
	return out, nil
}
