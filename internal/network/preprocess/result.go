package preprocess

// The result: the simplified expression, the origins of indices, and connected parts.

import (
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// newResult returns the result of a simplification: e is what became of the original expression. Rounding is the error of the scale and of
// all tables together, in units of 2^-53. If e is 0, the result has no tables, all dimensions are 1, and no index has an origin.
func newResult(original *sumproduct.Expression, e *expression) *Result {
	r := &Result{Report: e.report, Rounding: e.scaleErr, dims: original.Dims}
	simplified := &sumproduct.Expression{
		Dims:    e.dims,
		Scale:   e.scale,
		Support: make([][]int, len(e.dims)),
		Unfit:   original.Unfit,
	}
	r.Origin = e.origins.resolveAll()[:len(original.Dims)] // without the hidden indices, which come last

	if e.report.Zero == nil {
		for _, t := range e.tables {
			if t != nil {
				simplified.Tables = append(simplified.Tables, sumproduct.Table{Scope: t.scope, Data: t.data})
				r.Roundings = append(r.Roundings, t.err)
				r.Rounding += t.err
			}
		}
	} else {
		simplified.Scale = scaled.Number{}
		simplified.Dims = slices.Repeat([]int{1}, len(e.dims))
		for i := range r.Origin {
			r.Origin[i] = Origin{Index: -1}
		}
	}

	for i := range original.Dims {
		simplified.Support[i] = remainingValues(original, e, i)
	}

	r.Expression = simplified
	r.Parts = connectedTables(simplified)
	r.Report.After = countExpression(simplified)
	r.Report.Parts = len(r.Parts)
	return r
}

// remainingValues returns the values of index i that are left, numbered as in the network, or nil for all. original.Support has the list
// of the original expression, whose own values are numbered by their positions in that list. That list is also the result if the index
// lost no value since, if it was removed, or if e is 0.
func remainingValues(original *sumproduct.Expression, e *expression, i int) []int {
	var support []int // of the original expression
	if i < len(original.Support) {
		support = original.Support[i]
	}
	isUnchanged := e.dims[i] == original.Dims[i]
	if e.report.Zero != nil || isUnchanged || e.origins.isGone(i) {
		return support
	}

	values := make([]int, 0, e.dims[i])
	for _, v := range e.origins.values[i] {
		if support != nil {
			v = support[v] // from the number in the original expression to that in the network
		}
		values = append(values, v)
	}
	return values
}

// Recover returns the marginal of index i of the given expression, computed from a marginal of the simplified one. marginals[j] is the
// marginal of index j of the simplified expression. r.Origin[i] tells from which index i follows, and how: by a function (ValueOf) or by
// conditional probabilities (Conditional). Only the marginal of that index is needed, and only if it has more than one value. The result
// has an entry for every value of i in the given expression; a value that was removed has probability 0. The error is ErrSummedOut if the
// origin has neither, that is, if i was summed out because Options did not keep it, or if Z is 0.
func (r *Result) Recover(i int, marginals [][]float64) ([]float64, error) {
	if i < 0 || i >= len(r.Origin) {
		return nil, fmt.Errorf("%w: no index %d, there are %d",
			sumproduct.ErrExpression, i, len(r.Origin))
	}
	o := r.Origin[i]
	d := r.dims[i]
	originMarginal, err := r.originMarginal(i, marginals)
	if err != nil {
		return nil, err
	}

	// P(x) = Σ_v P(v) P(x | v), where P(x | v) is Conditional[v*d + x], or 1 for x = ValueOf[v].
	marginal := make([]float64, d)
	for v, p := range originMarginal {
		if o.ValueOf != nil {
			marginal[o.ValueOf[v]] += p
			continue
		}
		for x := range marginal {
			marginal[x] += float64(p * o.Conditional[v*d+x])
		}
	}
	return marginal, nil
}

// originMarginal returns the marginal of the index from which index i of the given expression follows, one of marginals. If that index has
// one value, its marginal is 1 and need not be given.
func (r *Result) originMarginal(i int, marginals [][]float64) ([]float64, error) {
	o := r.Origin[i]
	originDim := len(o.ValueOf) // number of values of the index from which i follows
	if o.ValueOf == nil {
		originDim = len(o.Conditional) / r.dims[i]
	}
	switch {
	case originDim == 0: // neither ValueOf nor Conditional is known
		return nil, fmt.Errorf("%w: index %d", ErrSummedOut, i)
	case originDim == 1:
		return []float64{1}, nil
	case o.Index >= len(marginals) || len(marginals[o.Index]) != originDim:
		return nil, fmt.Errorf("%w: index %d needs a marginal of index %d with %d entries",
			sumproduct.ErrExpression, i, o.Index, originDim)
	}
	return marginals[o.Index], nil
}

// connectedTables returns the tables of e by connected component: tables that share an index are in one. Components are in the order of
// their first tables, and tables ascending. A table without indices is a component of its own. Linear time.
func connectedTables(e *sumproduct.Expression) [][]int {
	// Union-find over the indices: find returns the representative of an index's component, the index that stands for all of them.
	parent := sequence(len(e.Dims))
	find := func(i int) int {
		for parent[i] != i {
			parent[i] = parent[parent[i]]
			i = parent[i]
		}
		return i
	}

	for _, t := range e.Tables {
		for _, i := range t.Scope[min(1, len(t.Scope)):] { // all but the first; none for a table without indices
			parent[find(i)] = find(t.Scope[0])
		}
	}

	componentOf := map[int]int{} // by representative: the position of its component
	var components [][]int
	for n, t := range e.Tables {
		component, isKnown := len(components), false
		if len(t.Scope) > 0 {
			representative := find(t.Scope[0])
			if component, isKnown = componentOf[representative]; !isKnown {
				component = len(components)
				componentOf[representative] = component
			}
		}
		if !isKnown {
			components = append(components, nil)
		}
		components[component] = append(components[component], n)
	}
	return components
}
