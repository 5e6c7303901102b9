package enginetest

// Problems: random models as engines are given them.

import (
	"context"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Problem is a model under evidence, in all forms that engines take.
type Problem struct {
	Model      *factorgraph.Model
	Evidence   factorgraph.Evidence
	Base       *btn.Network           // without the evidence
	Network    *btn.Network           // with it
	Expression *sumproduct.Expression // of Network
	Seed       uint64
}

// NewProblem returns a model under evidence as a problem: it builds its network and lowers that to an expression.
func NewProblem(t testing.TB, m *factorgraph.Model, ev factorgraph.Evidence, o reparam.Options, seed uint64) *Problem {
	t.Helper()
	p := &Problem{Model: m, Evidence: ev, Seed: seed}
	var err error
	if p.Base, err = reparam.Build(context.Background(), m, o); err != nil {
		t.Fatal(err)
	}
	if p.Network, err = p.Base.Condition(ev); err != nil {
		t.Fatal(err)
	}
	if p.Expression, err = lower.Build(context.Background(), p.Network); err != nil {
		t.Fatal(err)
	}
	return p
}

// ByVariable returns the marginals of the model's variables, where rows[i] is the marginal of index i of the expression. The expression may
// have fewer values of a variable than the model, those of its Support; the others have probability 0. It returns nil if rows is nil.
func (p *Problem) ByVariable(rows [][]float64) [][]float64 {
	if rows == nil {
		return nil
	}
	e := p.Expression
	out := make([][]float64, len(p.Model.Domains))
	for v, d := range p.Model.Domains {
		out[v] = make([]float64, d)
		i := e.Variables[v]
		for k, q := range rows[i] {
			if e.Support[i] != nil {
				out[v][e.Support[i][k]] = q
			} else {
				out[v][k] = q
			}
		}
	}
	return out
}

// Normalised returns the marginals of all indices divided by Z, or nil if Z is 0 or there are none.
func Normalised(z scaled.Number, marginals [][]scaled.Number) [][]float64 {
	if z.IsZero() || marginals == nil {
		return nil
	}
	rows := make([][]float64, len(marginals))
	for i, row := range marginals {
		for _, m := range row {
			rows[i] = append(rows[i], m.Div(z).Float64())
		}
	}
	return rows
}

// entryKinds says which entries a drawn model may have beside positive ones.
type entryKinds struct {
	signs bool // negative ones
	zeros bool
}

// drawModel draws a model of up to nine variables that the engine is for.
func (e Engine) drawModel(rng *rand.Rand, kinds entryKinds) *factorgraph.Model {
	if e.Draw != nil {
		return e.Draw(rng, kinds.signs, kinds.zeros)
	}
	o := modeltest.SmallOptions{
		Variables: 2 + rng.IntN(7), Factors: 1 + rng.IntN(12), MinDomain: 1 + rng.IntN(2), MaxDomain: 4, MaxArity: 4, MaxStates: 1 << 9,
		Constant: rng.IntN(2) == 0, Negative: kinds.signs,
	}
	if kinds.zeros {
		o.Zeros = 0.3
	}
	return modeltest.Small(rng, o)
}

// drawOptions draws the choice of maps and cores by which a network is built.
func drawOptions(rng *rand.Rand) reparam.Options {
	return reparam.Options{
		Maps:  []query.MapKind{query.MapIdentity, query.MapOrthogonal}[rng.IntN(2)],
		Cores: []query.CoreChoice{query.CoresAreFactors, query.CoresAreVariables}[rng.IntN(2)],
	}
}

// modelOf returns an expression as a model: a variable for each index, a dense factor for each table, and a constant factor for the scale.
func modelOf(e *sumproduct.Expression) *factorgraph.Model {
	m := &factorgraph.Model{Domains: e.Dims}
	for _, table := range e.Tables {
		shape := make([]int, len(table.Scope))
		for k, i := range table.Scope {
			shape[k] = e.Dims[i]
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: table.Scope, Table: &tensor.Dense{Shape: shape, Data: table.Data}})
	}
	scale := &tensor.Dense{Shape: []int{}, Data: []float64{e.Scale.Float64()}}
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{}, Table: scale})
	return m
}

// expressionOf returns a model under evidence as an expression over its variables, without simplifying anything: a table for each factor,
// one for each observation (1 at the value, else 0), and one for each likelihood.
func expressionOf(m *factorgraph.Model, ev factorgraph.Evidence) *sumproduct.Expression {
	e := &sumproduct.Expression{Dims: m.Domains, Scale: scaled.One, Support: make([][]int, len(m.Domains))}
	for v := range m.Domains {
		e.Variables = append(e.Variables, v)
	}
	for _, f := range m.Factors {
		e.Tables = append(e.Tables, sumproduct.Table{Scope: f.Scope, Data: oracle.Table(f.Table)})
	}
	for _, h := range ev.Hard {
		data := make([]float64, m.Domains[h.Var])
		data[h.Value] = 1
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{h.Var}, Data: data})
	}
	for _, s := range ev.Soft {
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{s.Var}, Data: s.Weights})
	}
	return e
}

// jointOf returns the joint distribution of some indices of an expression whose value is z, row-major in their order. Each cell is the
// value of the expression with these indices observed, divided by z.
func jointOf(e *sumproduct.Expression, z *big.Float, indices []int) []float64 {
	var out []float64
	dims := make([]int, len(indices))
	for k, v := range indices {
		dims[k] = e.Dims[v]
	}
	oracle.Each(dims, func(x []int) {
		cell := *e
		cell.Tables = slices.Clone(e.Tables)
		for k, v := range indices {
			observation := make([]float64, e.Dims[v])
			observation[x[k]] = 1
			cell.Tables = append(cell.Tables, sumproduct.Table{Scope: []int{v}, Data: observation})
		}
		p, _ := new(big.Float).Quo(oracle.Sum(&cell, 0).Z, z).Float64()
		out = append(out, p)
	})
	return out
}
