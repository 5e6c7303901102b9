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
	// maxDenseEntries is the limit of the entries up to which a symmetric factor is written as a dense table.
	maxDenseEntries = 1 << 12
	// maxChainEntries is the limit of the entries of the tables of one chain of counters.
	maxChainEntries = 1 << 24
)

// incidence tells where the messages between a factor and one of its variables are in an expression: between a table and the index at a
// position of its scope. If the factor takes no part in belief propagation, table is −1.
type incidence struct{ table, scopePosition int }

// factors is a model as an expression, in which belief propagation passes the messages between factors and variables. Index i is variable
// i; further indices are hidden in factors. Each factor is a tree of tables, so that the messages from it to its variables are exact sums
// over the factor.
type factors struct {
	model      *factorgraph.Model
	expression *sumproduct.Expression
	incidences [][]incidence // by factor, by position in its scope; nil for a factor of one variable or none
}

// newFactors returns the expression of a model with the given weights of its variables and the given scale. The weights become tables of
// one index. A factor of two variables or more becomes a tree of tables, by its form:
//
//   - dense: one table;
//   - CP: a star of tables, one per variable, over (term, value);
//   - symmetric: one dense table up to 4,096 entries, else the chain of counters of lower.Build,
//     with a table (value, value in the chain) per variable;
//   - symmetry-CP with one term: as symmetric. With several terms: a chain whose states are a term
//     and a count, since in lower.Build's chain the tables share an index of the terms and are no tree.
//
// A factor that is too large for its form takes no part. The error is that of the context or of lower.Build.
func newFactors(
	ctx context.Context, model *factorgraph.Model, weights [][]float64, scale scaled.Number,
) (*factors, error) {
	fs := &factors{model: model, incidences: make([][]incidence, len(model.Factors))}
	fs.expression = &sumproduct.Expression{Scale: scale, Dims: append([]int(nil), model.Domains...)}
	for i, w := range weights {
		fs.addTable([]int{i}, w)
	}
	for j, f := range model.Factors {
		if len(f.Scope) < 2 {
			continue // it is in the weights or in the scale
		}
		if err := fs.addFactor(ctx, j, f); err != nil {
			return nil, err
		}
	}
	return fs, nil
}

// addTable appends a table to the expression and returns its number.
func (fs *factors) addTable(scope []int, data []float64) int {
	fs.expression.Tables = append(fs.expression.Tables, sumproduct.Table{Scope: scope, Data: data})
	return len(fs.expression.Tables) - 1
}

// addIndex appends an index of the given dimension to the expression and returns its number.
func (fs *factors) addIndex(dim int) int {
	fs.expression.Dims = append(fs.expression.Dims, dim)
	return len(fs.expression.Dims) - 1
}

// addFactor writes factor j as a tree of tables, as newFactors describes, or leaves it out if it is too large.
func (fs *factors) addFactor(ctx context.Context, j int, f factorgraph.Factor) error {
	incidences := make([]incidence, len(f.Scope))
	fs.incidences[j] = incidences
	switch t := f.Table.(type) {
	case *tensor.Dense:
		fs.addDenseTable(incidences, f.Scope, t)
		return nil
	case *tensor.CP:
		fs.addStarTables(incidences, f.Scope, t)
		return nil
	}

	// Symmetric and symmetry-CP factors: small ones become dense tables, others chains.
	if size, err := tensor.Size(f.Table.Dims()); err == nil && size <= maxDenseEntries {
		if t, err := tensor.ToDense(f.Table, maxDenseEntries); err == nil {
			fs.addDenseTable(incidences, f.Scope, t)
		} else { // entries that no float64 holds
			leaveOut(incidences)
		}
		return nil
	}

	if t, ok := f.Table.(*tensor.SymmetryCP); ok && len(t.Terms) > 1 {
		if !fs.addTermChain(incidences, f.Scope, t) {
			leaveOut(incidences)
		}
		return nil
	}

	return fs.addCounterChain(ctx, incidences, f)
}

// leaveOut marks the incidences of a factor that takes no part in belief propagation.
func leaveOut(incidences []incidence) {
	for k := range incidences {
		incidences[k].table = -1
	}
}

// addDenseTable writes a factor over scope as one table, and sets its incidences.
func (fs *factors) addDenseTable(incidences []incidence, scope []int, t *tensor.Dense) {
	table := fs.addTable(scope, t.Data)
	for k := range incidences {
		incidences[k] = incidence{table: table, scopePosition: k}
	}
}

// addStarTables writes a CP factor over scope as a table of its weights over a hidden index of the terms, and a table (term, value) per
// variable. It sets the incidences of the factor.
func (fs *factors) addStarTables(incidences []incidence, scope []int, t *tensor.CP) {
	rank := len(t.Weights)
	if rank == 0 { // a factor of zeros excludes all values
		for k, i := range scope {
			zeros := make([]float64, fs.expression.Dims[i])
			incidences[k] = incidence{table: fs.addTable([]int{i}, zeros), scopePosition: 0}
		}
		return
	}
	hidden := fs.addIndex(rank)
	fs.addTable([]int{hidden}, t.Weights)
	for k, i := range scope {
		data := t.Vectors[k]
		if data == nil { // unit vectors: term t is 1 for value t only
			data = selectionMatrix(rank, nil)
		}
		incidences[k] = incidence{table: fs.addTable([]int{hidden, i}, data), scopePosition: 1}
	}
}

// addCounterChain writes a symmetric factor as the chain of tables that lower.Build makes of it, and sets its incidences: for each
// variable, the table that joins it with the chain. The indices of the chain become further indices of the expression. An index of the
// chain may have fewer values than the variable that it stands for, since lower.Build drops values that are excluded: so the joining table
// has 0 and 1. The factor takes no part in belief propagation if the chain would be too large or if float64 does not hold its entries.
func (fs *factors) addCounterChain(ctx context.Context, incidences []incidence, f factorgraph.Factor) error {
	chain, err := counterChain(ctx, f.Table)
	if err != nil {
		return err
	}
	if chain == nil {
		leaveOut(incidences)
		return nil
	}

	// Add the tables and indices of the chain.
	fs.expression.Scale = fs.expression.Scale.Mul(chain.Scale)
	firstIndex := len(fs.expression.Dims)
	fs.expression.Dims = append(fs.expression.Dims, chain.Dims...)
	for _, t := range chain.Tables {
		scope := make([]int, len(t.Scope))
		for k, i := range t.Scope {
			scope[k] = firstIndex + i
		}
		fs.addTable(scope, t.Data)
	}

	// Join the variables with the chain.
	for k, i := range f.Scope {
		chainIndex := chain.Variables[k]
		data := selectionMatrix(fs.model.Domains[i], chain.Support[chainIndex])
		incidences[k] = incidence{table: fs.addTable([]int{i, firstIndex + chainIndex}, data), scopePosition: 0}
	}
	return nil
}

// counterChain returns a symmetric tensor as the chain of tables that lower.Build makes of it. It returns nil in three cases: if no chain
// can be written down, if it has more than maxChainEntries entries, or if float64 does not hold them.
func counterChain(ctx context.Context, t tensor.Tensor) (*sumproduct.Expression, error) {
	net := networkOfTensor(t)
	shape, err := lower.Shape(ctx, net)
	if err != nil || entryCount(shape) > maxChainEntries {
		return nil, ctx.Err() // an error that is not the context's means that there is no chain
	}
	chain, err := lower.Build(ctx, net)
	if err != nil || chain.Unfit != "" {
		return nil, err
	}
	return chain, nil
}

// networkOfTensor returns a network of one core t, with a variable of weight 1 for all values on each of its legs.
func networkOfTensor(t tensor.Tensor) *btn.Network {
	dims := t.Dims()
	net := &btn.Network{Scale: scaled.One, Dims: dims, Choice: query.CoresAreFactors}
	core := btn.Core{Legs: make([]int, len(dims)), T: t}
	for k, d := range dims {
		core.Legs[k] = k
		ones := &tensor.CP{Shape: []int{d}, Weights: slices.Repeat([]float64{1}, d), Vectors: [][]float64{nil}}
		net.Links = append(net.Links, btn.Link{Legs: []int{k}, T: ones})
		net.Maps = append(net.Maps, btn.Identity())
		net.Variables = append(net.Variables, btn.Variable{Domain: d, Link: k})
	}
	net.Cores = []btn.Core{core}
	return net
}

// entryCount returns the number of entries of all tables of a shape together, at most the largest float64.
func entryCount(h contractionorder.Hypergraph) float64 {
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

// selectionMatrix returns a matrix over (value, position in support), which is 1 if support has the value at that position, else 0. There
// are valueCount values. If support is nil, the result is the identity.
func selectionMatrix(valueCount int, support []int) []float64 {
	columns := len(support)
	if support == nil {
		columns = valueCount
	}
	data := make([]float64, valueCount*columns)
	for column := range columns {
		value := column
		if support != nil {
			value = support[column]
		}
		data[value*columns+column] = 1
	}
	return data
}
