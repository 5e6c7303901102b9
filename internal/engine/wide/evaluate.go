package wide

// The elimination itself, by plain loops: table after table, then derivatives in reverse.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// termsPerCheck is the number of terms added between two looks at the context.
const termsPerCheck = 1 << 16

// machine is one contraction in the arithmetic F of numbers T. Tables are numbered: those of the expression, then the outputs of the steps.
type machine[T any, F field[T]] struct {
	f           F
	ctx         context.Context
	p           *plan
	scopes      [][]int // by table: its indices, the last one fastest
	tables      [][]T   // by table: its entries
	derivatives [][]T   // by table: ∂Z by each of its entries; nil until it is computed
	terms       int     // the number of terms added so far
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
		if err := m.runStep(s); err != nil {
			return Result{}, err
		}
	}
	factors, tables := m.scalarFactors(n) // tables: where each factor comes from
	z := f.fromNumber(n.scale)
	for _, x := range factors {
		z = f.mul(z, x)
	}
	r := Result{Z: f.toNumber(z), Flops: m.flops}
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
		if err := m.runStep(s); err != nil {
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
		out[k] = m.f.fromWide(a)
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
			factors, tables = append(factors, m.f.fromNumber(scaled.FromFloat(float64(d)))), append(tables, -1)
		}
	}
	return factors, tables
}

// walkTerms returns a walk over all terms of a step, with the position of each term's factor in every input. The terms of one entry of the
// output, whose number is termsPerEntry, follow one another.
func (m *machine[T, F]) walkTerms(s *contractionorder.Step) (w *sumproduct.Walk, termsPerEntry int) {
	inputScopes := make([][]int, len(s.In))
	for k, t := range s.In {
		inputScopes[k] = m.scopes[t]
	}
	termsPerEntry = 1
	for _, i := range s.Sum {
		termsPerEntry *= m.p.h.Dims[i]
	}
	return sumproduct.NewWalk(m.p.h.Dims, slices.Concat(s.Out, s.Sum), inputScopes...), termsPerEntry
}

// checkContext counts a term. After every termsPerCheck terms it returns the context's error, else nil.
func (m *machine[T, F]) checkContext() error {
	if m.terms++; m.terms%termsPerCheck != 0 {
		return nil
	}
	return m.ctx.Err()
}

// runStep appends the output of a step to the tables: out[Out] = Σ_Sum Π_k in_k. Without marginals it drops the inputs.
func (m *machine[T, F]) runStep(s *contractionorder.Step) error {
	if err := m.ctx.Err(); err != nil {
		return err
	}
	w, termsPerEntry := m.walkTerms(s)
	out := make([]T, sumproduct.Size(m.p.h.Dims, s.Out))
	for o := range out {
		var sum T
		for range termsPerEntry {
			if err := m.checkContext(); err != nil {
				return err
			}
			product := m.tables[s.In[0]][w.Position[0]]
			for k := 1; k < len(s.In) && !m.f.isZero(product); k++ { // a product of 0 stays 0
				product = m.f.mul(product, m.tables[s.In[k]][w.Position[k]])
			}
			if !m.f.isZero(product) {
				sum = m.f.add(sum, product)
			}
			w.Next()
		}
		out[o] = sum
	}
	m.flops += s.Flops()
	if !m.p.marginals { // no pass back needs them
		for _, t := range s.In {
			m.tables[t] = nil
		}
	}
	m.scopes, m.tables = append(m.scopes, s.Out), append(m.tables, out)
	return nil
}

// backward computes the derivatives by all tables, from the last step to the first. It sets the marginals of r and, if the plan wants them,
// its derivatives. factors and tables are those of scalarFactors.
func (m *machine[T, F]) backward(n *network, factors []T, tables []int, r *Result) error {
	m.derivatives = make([][]T, len(m.tables))
	m.setFactorDerivatives(n.scale, factors, tables) // the pass back begins with these
	for k := len(m.p.steps) - 1; k >= 0; k-- {
		if err := m.differentiateStep(m.p.steps[k], len(n.tables)+k); err != nil {
			return err
		}
	}
	if m.p.derivatives {
		r.Derivatives = make([][]scaled.Number, len(n.tables))
		for t := range n.tables {
			r.Derivatives[t] = make([]scaled.Number, len(m.tables[t]))
			for k := range m.derivatives[t] {
				r.Derivatives[t][k] = m.f.toNumber(m.derivatives[t][k])
			}
		}
	}

	m.setMarginals(n, r)
	return nil
}

// setMarginals sets the marginals of r, each from the smallest table of its index and the derivatives by that. The values of an index in no
// table have equal shares of Z.
func (m *machine[T, F]) setMarginals(n *network, r *Result) {
	r.Marginals = make([][]scaled.Number, len(n.dims))
	smallest := map[int]int{} // by index: its smallest table
	for t := range n.tables {
		for _, i := range n.tables[t].scope {
			if k, isKnown := smallest[i]; !isKnown || len(n.tables[t].data) < len(n.tables[k].data) {
				smallest[i] = t
			}
		}
	}
	for i, d := range n.dims {
		if t, hasTable := smallest[i]; hasTable && d > 1 {
			r.Marginals[i] = m.marginal(t, i)
			continue
		}
		r.Marginals[i] = make([]scaled.Number, d)
		for x := range d {
			r.Marginals[i][x] = r.Z.Div(scaled.FromFloat(float64(d)))
		}
	}
}

// setFactorDerivatives sets the derivatives of Z = scale · Π factors by the factors that are tables: each is the product of scale and all
// other factors, without a division. tables[i] is the table of factor i, −1 if it is none.
func (m *machine[T, F]) setFactorDerivatives(scale scaled.Number, factors []T, tables []int) {
	prefixes := make([]T, len(factors)) // by factor: the product of scale and the factors before it
	product := m.f.fromNumber(scale)
	for i, x := range factors {
		prefixes[i] = product
		product = m.f.mul(product, x)
	}
	suffix := m.f.fromNumber(scaled.One) // the product of the factors behind i
	for i := len(factors) - 1; i >= 0; i-- {
		if tables[i] >= 0 {
			m.derivatives[tables[i]] = []T{m.f.mul(prefixes[i], suffix)}
		}
		suffix = m.f.mul(suffix, factors[i])
	}
}

// differentiateStep computes the derivative by every input k of step s, Σ ∂Z/∂out · Π_{l≠k} in_l. out is the number of the step's output
// table. It drops that table and the derivative by it.
func (m *machine[T, F]) differentiateStep(s *contractionorder.Step, out int) error {
	if err := m.ctx.Err(); err != nil {
		return err
	}
	for _, t := range s.In {
		m.derivatives[t] = make([]T, len(m.tables[t]))
	}
	w, termsPerEntry := m.walkTerms(s)
	for _, d := range m.derivatives[out] {
		for range termsPerEntry {
			if err := m.checkContext(); err != nil {
				return err
			}
			if !m.f.isZero(d) {
				m.addDerivatives(s, w, d)
			}
			w.Next()
		}
	}
	m.flops += 3 * float64(len(s.In)) * s.FullSize // about 3 operations for each input of each term
	m.derivatives[out], m.tables[out] = nil, nil
	return nil
}

// addDerivatives adds, for the term of step s at the position of w, ∂Z/∂out · Π_{l≠k} in_l to the derivative by every input k. byOutput is
// ∂Z/∂out.
func (m *machine[T, F]) addDerivatives(s *contractionorder.Step, w *sumproduct.Walk, byOutput T) {
	var prefixes [contractionorder.MaxOperands]T // by input: the product of byOutput and the inputs before it
	product := byOutput
	for k, t := range s.In {
		prefixes[k] = product
		product = m.f.mul(product, m.tables[t][w.Position[k]])
	}
	suffix := m.f.fromNumber(scaled.One) // the product of the inputs behind k
	for k := len(s.In) - 1; k >= 0; k-- {
		d := &m.derivatives[s.In[k]][w.Position[k]]
		*d = m.f.add(*d, m.f.mul(prefixes[k], suffix))
		suffix = m.f.mul(suffix, m.tables[s.In[k]][w.Position[k]])
	}
}

// marginal returns, for every value of index i, Σ t[y]·∂Z/∂t[y] over the entries y of table t with this value.
func (m *machine[T, F]) marginal(t, i int) []scaled.Number {
	stride := 1 // of index i in the table
	for a := len(m.scopes[t]) - 1; m.scopes[t][a] != i; a-- {
		stride *= m.p.h.Dims[m.scopes[t][a]]
	}
	sums := make([]T, m.p.h.Dims[i])
	if m.derivatives[t] != nil {
		for k, x := range m.tables[t] {
			sum := &sums[k/stride%len(sums)] // that of the value of i in entry k
			*sum = m.f.add(*sum, m.f.mul(x, m.derivatives[t][k]))
		}
	}
	marginal := make([]scaled.Number, len(sums))
	for v, x := range sums {
		marginal[v] = m.f.toNumber(x)
	}
	return marginal
}
