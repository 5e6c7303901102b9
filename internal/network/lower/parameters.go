package lower

// Parameters: a network as tables of its own numbers, each a free parameter.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Parametric is a network as an expression whose entries are the numbers of its cores:
//
//	Z(net) = Scale · Σ_x Π_t Tables[t][x]
//
// A parameter that is 0 is a number like others: only values excluded by the weights of variables,
// evidence, are left out. The parameters of a core are, in this sequence,
//
//   - dense: the entries;
//   - CP: the weights, then the vectors of each leg that has some, term by term;
//   - symmetric: the values, by count;
//   - symmetry-CP: of each term its weight, its values, its vectors.
type Parametric struct {
	*sumproduct.Expression
	Sources []Source    // by table
	Single  []Parameter // those that are factors of Scale, because evidence leaves no other of their table
	Sizes   []int       // by core: number of its parameters
}

// Source says which parameters the entries of a table are: entry k is parameter At[k] of core Core.
type Source struct {
	Core int   // −1: none are
	At   []int // −1: the entry is none
}

// Parameter is one number of a core.
type Parameter struct {
	Core, At int
	Value    scaled.Number
}

// ParameterSizes counts the parameters of every core of the model.
func ParameterSizes(net *btn.Network) []int {
	sizes := make([]int, len(net.Own()))
	for c, core := range net.Own() {
		switch t := core.T.(type) {
		case *tensor.Dense:
			sizes[c] = len(t.Data)
		case *tensor.CP:
			sizes[c] = len(t.Weights)
			for _, v := range t.Vectors {
				sizes[c] += len(v)
			}
		case *tensor.Symmetric:
			sizes[c] = t.Values.Len()
		case *tensor.SymmetryCP:
			for i := range t.Terms {
				sizes[c] += termSize(&t.Terms[i])
			}
		}
	}
	return sizes
}

// termSize counts the parameters of a term of a symmetry-CP tensor.
func termSize(t *tensor.SymmetryRankOne) int {
	n := 1 + t.S.Len()
	for _, v := range t.R {
		n += len(v)
	}
	return n
}

// BuildParameters returns net as a parametric expression. Symmetric tensors are chains of plain
// counters, tables may have exponents of their own (see Table.Exp), nothing is divided out. The
// numbering of the indices depends on forms and shapes alone; evidence changes their dimensions.
//
// Errors: from Network.Validate; fault.Unsupported for a network with maps or with its variables as
// cores; ErrOverBudget for symmetric tensors whose counters cannot be written down; the context's.
// Cost: one pass over the tensors.
func BuildParameters(ctx context.Context, net *btn.Network) (*Parametric, error) {
	l, err := layLinks(ctx, net, true)
	if err != nil {
		return nil, err
	}
	if net.Choice == query.CoresAreVariables || slices.ContainsFunc(net.Maps, func(m btn.Map) bool { return m.A != nil }) {
		return nil, fault.New(fault.Unsupported,
			"lower: derivatives by parameters need the factors as cores, without maps")
	}

	p := &Parametric{Sizes: ParameterSizes(net)}
	sources := slices.Repeat([]Source{{Core: -1}}, len(l.tables))
	for c, k := range net.Cores {
		if err := l.add("core", c, k.Legs, k.T); err != nil {
			return nil, err
		}
		for _, at := range places(k.T) {
			s := Source{Core: -1}
			if at != nil && c < len(p.Sizes) {
				s = Source{Core: c, At: at}
			}
			sources = append(sources, s)
		}
	}

	l.assign()
	if !l.zero {
		l.observed(net)
	}
	if err := l.pace.Err(); err != nil {
		return nil, err
	}
	return p, p.write(l, net, sources)
}

// observed excludes the values that have weight 0.
func (l *layout) observed(net *btn.Network) {
	for _, v := range net.Variables {
		weights := WeightsAt(net, v.Link)
		if !hasZero(weights) {
			continue
		}
		if l.alive == nil {
			l.alive = make([][]bool, len(l.parent))
		}
		hit := make([]bool, len(weights))
		for x, w := range weights {
			hit[x] = w != 0
		}
		l.shrink(l.find(l.hidden[v.Link]), hit)
	}
}

// places lists, by table that layout.add makes of a tensor, which parameter every entry is; nil for
// tables that have none.
func places(t tensor.Tensor) [][]int {
	switch t := t.(type) {
	case *tensor.Dense:
		return [][]int{consecutive(0, len(t.Data))}
	case *tensor.CP:
		if len(t.Weights) == 0 {
			return nil
		}
		at := len(t.Weights)
		out := [][]int{consecutive(0, at)}
		for _, v := range t.Vectors {
			if v != nil {
				out = append(out, consecutive(at, len(v)))
				at += len(v)
			}
		}
		return out
	case *tensor.Symmetric:
		one := tensor.SymmetryRankOne{Alpha: 1, S: t.Values}
		out := symmetricPlaces(t.Shape, t.Levels, []tensor.SymmetryRankOne{one}, []int{-1})
		out[len(out)-1] = nil // the weight 1 is no number of it
		return out
	case *tensor.SymmetryCP:
		first := make([]int, len(t.Terms)+1)
		for i := range t.Terms {
			first[i+1] = first[i] + termSize(&t.Terms[i])
		}
		return symmetricPlaces(t.Shape, t.Levels, t.Terms, first)
	}
	return nil
}

// symmetricPlaces is places for the tables of addCounters; first says where the parameters of a term
// begin.
func symmetricPlaces(
	dims []int, levels countspace.Levels, terms []tensor.SymmetryRankOne, first []int,
) (out [][]int) {
	if len(terms) == 0 {
		return nil
	}
	vector := make([]int, len(terms)) // where the next vector of a term begins
	for i := range terms {
		vector[i] = first[i] + 1 + terms[i].S.Len()
	}
	for k, d := range dims {
		out = append(out, nil) // counters
		if termMatrix(terms, k, d) == nil {
			for i := range terms {
				if terms[i].R != nil {
					vector[i] += len(terms[i].R[k])
				}
			}
			continue
		}
		var at []int
		for i := range terms {
			if terms[i].R == nil || terms[i].R[k] == nil {
				at = append(at, slices.Repeat([]int{-1}, d)...)
				continue
			}
			at = append(at, consecutive(vector[i], d)...)
			vector[i] += d
		}
		out = append(out, at)
	}

	strides, box := countStrides(levels)
	counts := reachable(levels, strides, box)
	var final, alpha []int
	for _, c := range counts[len(dims)] {
		for i := range terms {
			final = append(final, first[i]+1+c)
		}
	}
	for i := range terms {
		alpha = append(alpha, first[i])
	}
	return append(out, final, alpha)
}

// consecutive lists n numbers from first on.
func consecutive(first, n int) []int {
	out := make([]int, n)
	for k := range out {
		out[k] = first + k
	}
	return out
}

// write makes the tables of a layout, the living entries of each, with their sources.
func (p *Parametric) write(l *layout, net *btn.Network, sources []Source) error {
	e := expression(l, net)
	p.Expression = e
	if l.zero {
		return nil
	}
	for t, table := range l.tables {
		if l.pace.Over(tableWork + int64(len(table.data))) {
			return l.pace.Err()
		}
		from := sources[t]
		if from.Core >= 0 {
			from.At = restrict(l, table, from.At, func(n int) []int { return make([]int, n) })
		}
		data := restrict(l, table, table.data, func(n int) []float64 { return make([]float64, n) })
		exp := exponents(l, table)
		if scope := l.scope(table, e.Dims); len(scope) > 0 {
			e.Tables = append(e.Tables, sumproduct.Table{Scope: scope, Data: data, Exp: exp})
			p.Sources = append(p.Sources, from)
			continue
		}
		value := first(data, exp)
		e.Scale = e.Scale.Mul(value)
		if from.Core >= 0 && from.At[0] >= 0 {
			p.Single = append(p.Single, Parameter{Core: from.Core, At: from.At[0], Value: value})
		}
	}
	return nil
}

// Floats returns the expression with every table's entries in float64, and by table the exponent of
// the power of two that they were divided by. Where an entry does not fit beside the others of its
// table the expression is Unfit.
func (p *Parametric) Floats() (*sumproduct.Expression, []int64) {
	out := *p.Expression
	out.Tables = slices.Clone(p.Tables)
	divided := make([]int64, len(p.Tables))
	for t := range out.Tables {
		table := &out.Tables[t]
		if table.Exp == nil {
			continue
		}
		top := int64(math.MinInt64)
		for k, x := range table.Data {
			if x != 0 {
				top = max(top, table.Exp[k])
			}
		}
		data := make([]float64, len(table.Data))
		for k, x := range table.Data {
			if x == 0 {
				continue
			}
			if table.Exp[k]-top < floats.Lowest {
				out.Unfit = "values of a symmetric factor are further apart than float64 holds"
				continue
			}
			data[k] = math.Ldexp(x, int(table.Exp[k]-top))
		}
		if top > math.MinInt64 {
			divided[t] = top
			out.Scale = out.Scale.Mul(scaled.Make(1, top))
		}
		table.Data, table.Exp = data, nil
	}
	return &out, divided
}
