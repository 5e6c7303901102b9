package truncated

// Masks: evidence and slices enter a network that has been simplified before.

import (
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Mask returns the simplified network under evidence. Its Z is that of the network conditioned on the evidence. An index with one value
// left disappears from all scopes and has dimension 1; the weights of all other indices are multiplied into their first table. The number
// and sequence of the tables stay, so that a plan for p fits. p does not change. Errors: ErrNoMask if no index determines a variable, if
// a product with a weight leaves the range of float64, or if p is under a mask already. Cost: one pass over the tables touched.
func (p *Prepared) Mask(ev factorgraph.Evidence) (*Prepared, error) {
	if ev.IsEmpty() {
		return p, nil
	}
	if p.weights != nil {
		return nil, fmt.Errorf("%w: the network is under a mask already", ErrNoMask)
	}
	e := p.simple.Expression
	masked := &Prepared{net: p.net, given: p.given, marginals: p.marginals, signed: p.signed, weights: make([][]float64, len(e.Dims))}
	m := masker{network: p, masked: masked, scale: e.Scale}
	for _, s := range ev.Soft {
		if err := m.addWeights(s.Var, func(x int) float64 { return s.Weights[x] }); err != nil {
			return nil, err
		}
	}
	for _, h := range ev.Hard {
		if err := m.addWeights(h.Var, func(x int) float64 {
			if x == h.Value {
				return 1
			}
			return 0
		}); err != nil {
			return nil, err
		}
	}
	simple := *p.simple
	if simple.Expression = m.apply(); m.exceedsRange {
		return nil, fmt.Errorf("%w: a product of weights leaves the range of float64", ErrNoMask)
	}
	masked.simple = &simple
	if p.absolute > 0 {
		masked.absolute = absoluteBytes(simple.Expression)
	}
	return masked, nil
}

// masker applies a mask.
type masker struct {
	network      *Prepared     // before the mask
	masked       *Prepared     // whose weights are collected
	scale        scaled.Number // of the masked expression
	touched      []int         // indices with weights
	exceedsRange bool          // a product has lost digits to the range of float64
}

// leastProduct is the smallest magnitude of a nonzero product that certainly has all its digits, as in package preprocess.
const leastProduct = 0x1p-1000

// product returns the product of an entry and a weight, and notes if it leaves the range of float64.
func (m *masker) product(x, weight float64) float64 {
	if x == 0 || weight == 0 || weight == 1 {
		return x * weight
	}
	y := x * weight
	m.exceedsRange = m.exceedsRange || math.Abs(y) < leastProduct || math.IsInf(y, 0)
	return y
}

// addWeights multiplies the weights of the index that determines a variable by weights of the values x of the variable. If a value of the
// variable is certain, it multiplies the scale. The error is ErrNoMask if no index determines the variable.
func (m *masker) addWeights(variable int, weight func(x int) float64) error {
	p := m.network
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
	w := m.masked.weights[j]
	if w == nil {
		w = slices.Repeat([]float64{1}, len(o.From))
	}
	for y, k := range o.From {
		w[y] = m.product(w[y], weight(value(k)))
	}
	m.masked.weights[j] = w
	return nil
}

// apply returns the simplified expression under the collected weights. An index whose weights are 0 but for one value is fixed there. The
// weights of all others go into the first table that has the index. If all weights of an index are 0, so is the scale.
func (m *masker) apply() *sumproduct.Expression {
	e := m.network.simple.Expression
	out := &sumproduct.Expression{
		Dims:      slices.Clone(e.Dims),
		Tables:    slices.Clone(e.Tables),
		Variables: e.Variables,
		Support:   e.Support,
		Unfit:     e.Unfit,
	}
	slices.Sort(m.touched)
	fixed := map[int]int{}
	weighted := map[int]bool{}
	for _, j := range m.touched {
		w := m.masked.weights[j]
		positive, last := 0, 0
		for y, x := range w {
			if x != 0 {
				positive, last = positive+1, y
			}
		}
		switch {
		case positive == 0:
			m.scale = scaled.Number{}
		case positive == 1:
			fixed[j] = last
			m.scale = m.scale.Mul(scaled.FromFloat(w[last]))
			out.Dims[j] = 1
		default:
			weighted[j] = true
		}
	}
	used := map[int]bool{}
	for t, table := range e.Tables {
		touched := false
		for _, i := range table.Scope {
			_, isFixed := fixed[i]
			touched = touched || isFixed || weighted[i] && !used[i]
		}
		if touched {
			out.Tables[t] = m.maskTable(table, fixed, weighted, used)
		}
		for _, i := range table.Scope {
			used[i] = true
		}
	}
	for _, j := range m.touched { // an index in no table is a factor of its dimension
		if weighted[j] && !used[j] {
			sum := 0.0
			for _, x := range m.masked.weights[j] {
				sum += x
			}
			m.scale = m.scale.Mul(scaled.FromFloat(sum))
			out.Dims[j] = 1
		}
	}
	out.Scale = m.scale
	return out
}

// maskTable returns a table with fixed indices at their values, and multiplied by the weights of those weighted indices that no earlier
// table has used.
func (m *masker) maskTable(t sumproduct.Table, fixed map[int]int, weighted, used map[int]bool) sumproduct.Table {
	dims := m.network.simple.Expression.Dims
	out := sumproduct.Table{}
	for _, i := range t.Scope {
		if _, isFixed := fixed[i]; !isFixed {
			out.Scope = append(out.Scope, i)
		}
	}
	walk := sumproduct.NewWalk(dims, t.Scope)
	for _, x := range t.Data {
		isKept := true
		for k, i := range t.Scope {
			if y, isFixed := fixed[i]; isFixed {
				isKept = isKept && walk.X[k] == y
			} else if weighted[i] && !used[i] {
				x = m.product(x, m.masked.weights[i][walk.X[k]])
			}
		}
		if isKept {
			out.Data = append(out.Data, x)
		}
		walk.Next()
	}
	return out
}

// completeMarginals returns marginals with rows for the indices that a mask fixed, or that are in no table.
func (p *Prepared) completeMarginals(marginals [][]float64) [][]float64 {
	if p.weights == nil {
		return marginals
	}
	full := slices.Clone(marginals)
	for j, w := range p.weights {
		if w == nil || p.simple.Expression.Dims[j] > 1 {
			continue
		}
		sum, positive := 0.0, 0
		for _, x := range w {
			sum += x
			if x != 0 {
				positive++
			}
		}
		row := make([]float64, len(w))
		for y, x := range w {
			if positive == 1 && x != 0 {
				row[y] = 1
			} else {
				row[y] = x / sum
			}
		}
		full[j] = row
	}
	return full
}

// Rows returns the marginals of the network's variables. marginals has those of the indices of Expression. The probability of each value
// is a mean over the values of the index that determines it. Errors: preprocess.ErrSummedOut if the network was not prepared for
// marginals.
func (p *Prepared) Rows(marginals [][]float64) ([][]float64, error) {
	full := p.completeMarginals(marginals)
	out := make([][]float64, len(p.net.Variables))
	for v, variable := range p.net.Variables {
		i := p.given.Variables[v]
		row, err := p.simple.Recover(i, full)
		if err != nil {
			return nil, fmt.Errorf("truncated: marginal of variable %d: %w", v, err)
		}
		if support := p.given.Support[i]; support != nil {
			overDomain := make([]float64, variable.Domain)
			for k, x := range support {
				overDomain[x] = row[k]
			}
			row = overDomain
		}
		out[v] = row
	}
	return out, nil
}
