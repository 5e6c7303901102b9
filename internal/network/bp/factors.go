package bp

// A factor graph as an expression whose belief propagation has the messages between factors and
// variables, for factors of every form.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

const (
	// maxWritten is the largest symmetric factor that is written out as a table for belief
	// propagation.
	maxWritten = 1 << 12
	// maxChain bounds the entries of the tables of one chain of counters.
	maxChain = 1 << 24
)

// incidence is the place in an expression of the messages between a factor and the k-th variable
// of its scope: index k of table t. Table −1: the factor takes no part in belief propagation.
type incidence struct{ table, k int }

// factors are the factors of a model as an expression: index i is variable i, and each factor is a
// tree of tables, so that the messages to its variables are sums over the factor.
type factors struct {
	model *factorgraph.Model
	e     *sumproduct.Expression
	at    [][]incidence // per factor, per position of its scope; nil below order 2
}

// newFactors takes the weights w_i of the variables, and the factors of order ≥ 2:
//
//   - dense: one table;
//   - CP: a star, a table (term, value) per variable;
//   - symmetric: the chain of counters of lower.Build, with a table (value, value the chain has) per
//     variable; up to 4,096 entries one table;
//   - symmetry-CP as symmetric; of several terms, which share an index in lower.Build's chain and
//     make it no tree, a chain that carries the term along.
//
// A factor too large for its form takes no part.
func newFactors(
	ctx context.Context, m *factorgraph.Model, weights [][]float64, scale scaled.Number,
) (*factors, error) {
	n := &factors{model: m, at: make([][]incidence, len(m.Factors))}
	n.e = &sumproduct.Expression{Scale: scale, Dims: append([]int(nil), m.Domains...)}
	for i, w := range weights {
		n.add([]int{i}, w)
	}
	for j, f := range m.Factors {
		if len(f.Scope) < 2 {
			continue
		}
		if err := n.factor(ctx, j, f); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// add appends a table and returns its number.
func (n *factors) add(scope []int, data []float64) int {
	n.e.Tables = append(n.e.Tables, sumproduct.Table{Scope: scope, Data: data})
	return len(n.e.Tables) - 1
}

// index appends an index and returns its number.
func (n *factors) index(dim int) int {
	n.e.Dims = append(n.e.Dims, dim)
	return len(n.e.Dims) - 1
}

// factor writes factor j as a tree of tables in its own form, or leaves it out where that is too
// large.
func (n *factors) factor(ctx context.Context, j int, f factorgraph.Factor) error {
	at := make([]incidence, len(f.Scope))
	n.at[j] = at
	switch t := f.Table.(type) {
	case *tensor.Dense:
		n.dense(at, f.Scope, t)
		return nil
	case *tensor.CP:
		n.star(at, f.Scope, t)
		return nil
	}

	if size, err := tensor.Size(f.Table.Dims()); err == nil && size <= maxWritten {
		if t, err := tensor.ToDense(f.Table, maxWritten); err == nil {
			n.dense(at, f.Scope, t)
		} else { // entries that no float64 holds
			leaveOut(at)
		}
		return nil
	}

	if t, ok := f.Table.(*tensor.SymmetryCP); ok && len(t.Terms) > 1 {
		if !n.addTermChain(at, f.Scope, t) {
			leaveOut(at)
		}
		return nil
	}

	return n.chain(ctx, at, f)
}

func leaveOut(at []incidence) {
	for k := range at {
		at[k].table = -1
	}
}

func (n *factors) dense(at []incidence, scope []int, t *tensor.Dense) {
	table := n.add(scope, t.Data)
	for k := range at {
		at[k] = incidence{table, k}
	}
}

// star writes a CP factor: its weights over a hidden index of the terms, and a matrix (term, value)
// per variable.
func (n *factors) star(at []incidence, scope []int, t *tensor.CP) {
	rank := len(t.Weights)
	if rank == 0 { // a factor of zeros: no value is left
		for k, i := range scope {
			at[k] = incidence{n.add([]int{i}, make([]float64, n.e.Dims[i])), 0}
		}
		return
	}
	hidden := n.index(rank)
	n.add([]int{hidden}, t.Weights)
	for k, i := range scope {
		data := t.Vectors[k]
		if data == nil {
			data = selection(rank, nil)
		}
		at[k] = incidence{n.add([]int{hidden, i}, data), 1}
	}
}

// chain embeds the expression of the factor alone, with a table between each variable and the index
// that stands for it.
func (n *factors) chain(ctx context.Context, at []incidence, f factorgraph.Factor) error {
	net := alone(f.Table)
	if shape, err := lower.Shape(ctx, net); err != nil || entries(shape) > maxChain {
		if ctxErr := ctx.Err(); ctxErr != nil {
			return ctxErr
		}
		leaveOut(at) // no chain of counters can be written down
		return nil
	}

	e, err := lower.Build(ctx, net)
	if err != nil {
		return err
	}
	if e.Unfit != "" {
		leaveOut(at)
		return nil
	}

	n.e.Scale = n.e.Scale.Mul(e.Scale)
	base := len(n.e.Dims)
	n.e.Dims = append(n.e.Dims, e.Dims...)
	for _, t := range e.Tables {
		scope := make([]int, len(t.Scope))
		for k, i := range t.Scope {
			scope[k] = base + i
		}
		n.add(scope, t.Data)
	}

	for k, i := range f.Scope {
		local := e.Variables[k]
		data := selection(n.model.Domains[i], e.Support[local])
		at[k] = incidence{n.add([]int{i, base + local}, data), 0}
	}
	return nil
}

// alone is the network of one tensor: a core, and a variable of weight 1 on each of its legs.
func alone(t tensor.Tensor) *btn.Network {
	dims := t.Dims()
	net := &btn.Network{Scale: scaled.One, Dims: dims, Choice: query.CoresAreFactors}
	core := btn.Core{Legs: make([]int, len(dims)), T: t}
	for k, d := range dims {
		core.Legs[k] = k
		star := &tensor.CP{Shape: []int{d}, Weights: slices.Repeat([]float64{1}, d), Vectors: [][]float64{nil}}
		net.Links = append(net.Links, btn.Link{Legs: []int{k}, T: star})
		net.Maps = append(net.Maps, btn.Identity())
		net.Variables = append(net.Variables, btn.Variable{Domain: d, Link: k})
	}
	net.Cores = []btn.Core{core}
	return net
}

// entries counts the entries of all tables of a shape.
func entries(h contractionorder.Hypergraph) float64 {
	total := 0.0
	for _, edge := range h.Edges {
		size := 1.0
		for _, i := range edge {
			size *= float64(h.Dims[i])
		}
		total += size
	}
	return min(total, math.MaxFloat64)
}

// selection is the matrix of d values and those in support, 1 where they are the same; nil: all of
// them.
func selection(d int, support []int) []float64 {
	columns := len(support)
	if support == nil {
		columns = d
	}
	data := make([]float64, d*columns)
	for c := range columns {
		x := c
		if support != nil {
			x = support[c]
		}
		data[x*columns+c] = 1
	}
	return data
}
