package wide

// The elimination itself: plain loops, table after table, and back.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// termsPerCheck is the number of terms added between two looks at the context.
const termsPerCheck = 1 << 16

// machine is one contraction in the arithmetic F of numbers T.
type machine[T any, F field[T]] struct {
	f      F
	ctx    context.Context
	p      *plan
	scopes [][]int // by table: the expression's, then the outputs of the steps
	tables [][]T
	// derivatives are those of Z by tables, each nil until it is computed.
	derivatives [][]T
	terms       int // added so far
	flops       float64
}

// evaluate contracts the network n along a plan in the arithmetic f, with marginals and derivatives if the plan has them.
func evaluate[T any, F field[T]](ctx context.Context, p *plan, n *network, f F) (Result, error) {
	m := &machine[T, F]{f: f, ctx: ctx, p: p}
	for _, t := range n.tables {
		m.scopes = append(m.scopes, t.scope)
		m.tables = append(m.tables, m.load(t))
	}
	for _, s := range p.steps {
		if err := m.step(s); err != nil {
			return Result{}, err
		}
	}
	factors, tables := m.scalarFactors(n)
	z := n.scale
	total := f.of(z)
	for _, x := range factors {
		total = f.mul(total, x)
	}
	r := Result{Z: f.number(total), Flops: m.flops}
	if !p.marginals {
		return r, nil
	}
	err := m.backward(n, factors, tables, &r)
	r.Flops = m.flops
	return r, err
}

// TableBytes is the memory in bytes of an entry of a table that Table makes.
const TableBytes = entryBytes + 16

// Table runs steps over an expression without its scale, and returns the numbers and the scope of the last table. The error of a number is
// at most 2^-102 · operations · Σ|its terms|. It reads only In, Sum and Out of a step.
func Table(
	ctx context.Context, e *sumproduct.Expression, steps []*contractionorder.Step,
) (numbers []scaled.Number, scope []int, err error) {
	m := &machine[scaled.Wide, double]{ctx: ctx, p: &plan{h: e.Hypergraph()}}
	for _, t := range newNetwork(e).tables {
		m.scopes, m.tables = append(m.scopes, t.scope), append(m.tables, t.data)
	}
	for _, s := range steps {
		if err := m.step(s); err != nil {
			return nil, nil, err
		}
	}
	last := len(m.tables) - 1
	numbers = make([]scaled.Number, len(m.tables[last]))
	for k, x := range m.tables[last] {
		numbers[k] = x.Number()
	}
	return numbers, m.scopes[last], nil
}

// load returns the entries of t in the arithmetic of m.
func (m *machine[T, F]) load(t table) []T {
	out := make([]T, len(t.data))
	for k, a := range t.data {
		out[k] = m.f.wide(a)
	}
	return out
}

// scalarFactors returns the factors of Z after all steps: the entries of tables without indices, and the dimensions of indices in no table.
// tables has the table of each factor, −1 for a dimension.
func (m *machine[T, F]) scalarFactors(n *network) (factors []T, tables []int) {
	used := make([]bool, len(n.dims))
	for t, scope := range m.scopes {
		if len(scope) == 0 {
			factors, tables = append(factors, m.tables[t][0]), append(tables, t)
		}
		for _, i := range scope {
			used[i] = true
		}
	}
	for i, d := range n.dims {
		if !used[i] && d > 1 {
			factors, tables = append(factors, m.f.of(scaled.FromFloat(float64(d)))), append(tables, -1)
		}
	}
	return factors, tables
}

// walk returns a walk over the full table of a step, the indices summed over fastest, with the position in every input. sums is the number
// of terms of an entry.
func (m *machine[T, F]) walk(s *contractionorder.Step) (w *sumproduct.Walk, sums int) {
	scopes := make([][]int, len(s.In))
	for k, t := range s.In {
		scopes[k] = m.scopes[t]
	}
	sums = 1
	for _, i := range s.Sum {
		sums *= m.p.h.Dims[i]
	}
	return sumproduct.NewWalk(m.p.h.Dims, slices.Concat(s.Out, s.Sum), scopes...), sums
}

// checkContext counts a term, and returns the context's error after every termsPerCheck terms.
func (m *machine[T, F]) checkContext() error {
	if m.terms++; m.terms%termsPerCheck != 0 {
		return nil
	}
	return m.ctx.Err()
}

// step computes out[Out] = Σ_Sum Π_k in_k.
func (m *machine[T, F]) step(s *contractionorder.Step) error {
	if err := m.ctx.Err(); err != nil {
		return err
	}
	w, sums := m.walk(s)
	out := make([]T, sumproduct.Size(m.p.h.Dims, s.Out))
	for o := range out {
		var sum T
		for range sums {
			if err := m.checkContext(); err != nil {
				return err
			}
			p := m.tables[s.In[0]][w.At[0]]
			for k := 1; k < len(s.In) && !m.f.isZero(p); k++ {
				p = m.f.mul(p, m.tables[s.In[k]][w.At[k]])
			}
			if !m.f.isZero(p) {
				sum = m.f.add(sum, p)
			}
			w.Next()
		}
		out[o] = sum
	}
	m.flops += s.Flops()
	if !m.p.marginals {
		for _, t := range s.In {
			m.tables[t] = nil
		}
	}
	m.scopes, m.tables = append(m.scopes, s.Out), append(m.tables, out)
	return nil
}

// backward computes the derivatives by all tables, from the last step to the first. It sets the marginals of r and, if the plan wants
// them, its derivatives.
func (m *machine[T, F]) backward(n *network, factors []T, tables []int, r *Result) error {
	m.derivatives = make([][]T, len(m.tables))
	m.seed(n.scale, factors, tables)
	for k := len(m.p.steps) - 1; k >= 0; k-- {
		if err := m.stepBack(m.p.steps[k], len(n.tables)+k); err != nil {
			return err
		}
	}
	if m.p.derivatives {
		r.By = make([][]scaled.Number, len(n.tables))
		for t := range n.tables {
			r.By[t] = make([]scaled.Number, len(m.tables[t]))
			for k := range m.derivatives[t] {
				r.By[t][k] = m.f.number(m.derivatives[t][k])
			}
		}
	}
	r.Marginals = make([][]scaled.Number, len(n.dims))
	reader := map[int]int{}
	for t := range n.tables {
		for _, i := range n.tables[t].scope {
			if k, known := reader[i]; !known || len(n.tables[t].data) < len(n.tables[k].data) {
				reader[i] = t
			}
		}
	}
	for i, d := range n.dims {
		t, known := reader[i]
		switch {
		case known && d > 1:
			r.Marginals[i] = m.marginal(t, i)
		default:
			r.Marginals[i] = make([]scaled.Number, d)
			for x := range d {
				r.Marginals[i][x] = r.Z.Div(scaled.FromFloat(float64(d)))
			}
		}
	}
	return nil
}

// seed sets the derivatives of Z by the tables without indices: Z is scale · Π factors, and the derivative by a factor is the product of
// all others, without a division.
func (m *machine[T, F]) seed(scale scaled.Number, factors []T, tables []int) {
	seeds := make([]T, len(factors))
	p := m.f.of(scale)
	for i, x := range factors {
		seeds[i] = p
		p = m.f.mul(p, x)
	}
	p = m.f.of(scaled.One)
	for i := len(factors) - 1; i >= 0; i-- {
		if tables[i] >= 0 {
			m.derivatives[tables[i]] = []T{m.f.mul(seeds[i], p)}
		}
		p = m.f.mul(p, factors[i])
	}
}

// stepBack computes the derivative by every input k of step s, Σ ∂Z/∂out · Π_{m≠k} in_m. out is the number of the step's output table. It
// drops that table and the derivative by it.
func (m *machine[T, F]) stepBack(s *contractionorder.Step, out int) error {
	if err := m.ctx.Err(); err != nil {
		return err
	}
	for _, t := range s.In {
		m.derivatives[t] = make([]T, len(m.tables[t]))
	}
	w, sums := m.walk(s)
	for _, g := range m.derivatives[out] {
		for range sums {
			if err := m.checkContext(); err != nil {
				return err
			}
			if !m.f.isZero(g) {
				m.addDerivatives(s, w, g)
			}
			w.Next()
		}
	}
	m.flops += 3 * float64(len(s.In)) * s.Full
	m.derivatives[out], m.tables[out] = nil, nil
	return nil
}

// addDerivatives adds, for the term at the position of w, g · Π_{m≠k} in_m to the derivative by every input k. g is ∂Z/∂out.
func (m *machine[T, F]) addDerivatives(s *contractionorder.Step, w *sumproduct.Walk, g T) {
	var front [contractionorder.MaxOperands]T
	p := g
	for k, t := range s.In {
		front[k] = p
		p = m.f.mul(p, m.tables[t][w.At[k]])
	}
	p = m.f.of(scaled.One)
	for k := len(s.In) - 1; k >= 0; k-- {
		d := &m.derivatives[s.In[k]][w.At[k]]
		*d = m.f.add(*d, m.f.mul(front[k], p))
		p = m.f.mul(p, m.tables[s.In[k]][w.At[k]])
	}
}

// marginal returns, for every value of index i, Σ t[y]·∂Z/∂t[y] over the entries y of table t with this value.
func (m *machine[T, F]) marginal(t, i int) []scaled.Number {
	inner := 1
	for a := len(m.scopes[t]) - 1; m.scopes[t][a] != i; a-- {
		inner *= m.p.h.Dims[m.scopes[t][a]]
	}
	sums := make([]T, m.p.h.Dims[i])
	if m.derivatives[t] != nil {
		for k, x := range m.tables[t] {
			v := &sums[k/inner%len(sums)]
			*v = m.f.add(*v, m.f.mul(x, m.derivatives[t][k]))
		}
	}
	out := make([]scaled.Number, len(sums))
	for v, x := range sums {
		out[v] = m.f.number(x)
	}
	return out
}
