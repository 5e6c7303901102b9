package lower

// Parameters: a network as tables of its own numbers, each a free parameter.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Parametric is a network as an expression whose entries are the numbers of its cores:
//
//	Z(net) = Scale · Σ_x Π_t Tables[t][x]
//
// A parameter that is 0 is a number like any other: only values that weights of variables exclude, by evidence, are left out. The
// parameters of a core are, in this sequence,
//
//   - dense: the entries;
//   - CP: the weights, then for each leg with vectors those of all terms;
//   - symmetric: the values, by count;
//   - symmetry-CP: for each term its weight, its values, its vectors.
type Parametric struct {
	*sumproduct.Expression
	Sources []Source    // by table
	Single  []Parameter // parameters that are factors of Scale, because evidence leaves no other entry of their table
	Sizes   []int       // by core: the number of its parameters
}

// Source tells which parameters the entries of a table are: entry k is parameter At[k] of core Core.
type Source struct {
	Core int   // −1: no entry of the table is a parameter
	At   []int // by entry; −1: the entry is no parameter
}

// Parameter is one number of a core: its parameter number At.
type Parameter struct {
	Core, At int
	Value    scaled.Number
}

// ParameterSizes returns the number of parameters of every core of the model.
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

// termSize returns the number of parameters of a term of a symmetry-CP tensor: its weight, its values and its vectors.
func termSize(t *tensor.SymmetryRankOne) int {
	n := 1 + t.S.Len()
	for _, v := range t.R {
		n += len(v)
	}
	return n
}

// BuildParameters returns net as a parametric expression. Symmetric tensors are chains of plain counters, tables may have exponents (see
// Table.Exp), and no table is normalised. The numbering of the indices depends on forms and shapes only; evidence changes their dimensions.
//
// Errors: that of Network.Validate; fault.Unsupported for a network with maps or with its variables as cores; ErrOverBudget for symmetric
// tensors with too many counters; that of the context. Cost: one pass over the tensors.
func BuildParameters(ctx context.Context, net *btn.Network) (*Parametric, error) {
	l, err := newLinkLayout(ctx, net, form{isWide: true})
	if err != nil {
		return nil, err
	}
	if net.Choice == query.CoresAreVariables || slices.ContainsFunc(net.Maps, func(m btn.Map) bool { return m.A != nil }) {
		return nil, fault.New(fault.Unsupported,
			"lower: derivatives by parameters need the factors as cores, without maps")
	}

	p := &Parametric{Sizes: ParameterSizes(net)}
	sources := slices.Repeat([]Source{{Core: -1}}, len(l.tables)) // tables of links have no parameters
	for c, core := range net.Cores {
		if err := l.addTensor("core", c, core.Legs, core.T); err != nil {
			return nil, err
		}
		isOfModel := c < len(p.Sizes) // no core of evidence
		for _, positions := range parameterPositions(core.T) {
			s := Source{Core: -1}
			if positions != nil && isOfModel {
				s = Source{Core: c, At: positions}
			}
			sources = append(sources, s)
		}
	}

	l.numberIndices()
	if !l.isZero {
		l.excludeZeroWeights(net)
	}
	if err := l.pace.Err(); err != nil {
		return nil, err
	}
	return p, p.writeTables(l, net, sources)
}

// excludeZeroWeights excludes the values of variables that have weight 0.
func (l *layout) excludeZeroWeights(net *btn.Network) {
	for _, v := range net.Variables {
		weights := WeightsAt(net, v.Link)
		if !hasZero(weights) {
			continue
		}
		if l.alive == nil {
			l.alive = make([][]bool, len(l.parent))
		}
		isPossible := make([]bool, len(weights))
		for x, w := range weights {
			isPossible[x] = w != 0
		}
		l.intersectAlive(l.root(l.hiddenNode[v.Link]), isPossible)
	}
}

// parameterPositions returns one list for each table that layout.addTensor makes of a core of a wide layout. Element k of a list is the
// number of the core's parameter that entry k of the table is, or −1 if the entry is no parameter. The list is nil if the table has no
// parameters.
func parameterPositions(t tensor.Tensor) [][]int {
	switch t := t.(type) {
	case *tensor.Dense:
		return [][]int{consecutive(0, len(t.Data))}
	case *tensor.CP:
		if len(t.Weights) == 0 {
			return nil
		}
		first := len(t.Weights)
		lists := [][]int{consecutive(0, first)}
		for _, v := range t.Vectors {
			if v != nil {
				lists = append(lists, consecutive(first, len(v)))
				first += len(v)
			}
		}
		return lists
	case *tensor.Symmetric:
		s := &symmetricSum{dims: t.Shape, levels: t.Levels, terms: []tensor.SymmetryRankOne{{Alpha: 1, S: t.Values}}}
		// The weight 1 of the term is no parameter: the values begin at 0, as if the weight were parameter −1.
		lists := s.parameterPositions([]int{-1})
		lists[len(lists)-1] = nil
		return lists
	case *tensor.SymmetryCP:
		first := make([]int, len(t.Terms)) // by term: its first parameter
		next := 0
		for i := range t.Terms {
			first[i] = next
			next += termSize(&t.Terms[i])
		}
		s := &symmetricSum{dims: t.Shape, levels: t.Levels, terms: t.Terms}
		return s.parameterPositions(first)
	}
	return nil
}

// parameterPositions is the function of the same name for the tables of addPlainChain: per leg the 0-1 table, without parameters, and the
// matrix of the vectors, if the leg has some; then the values of S, and the weights. Term i has its weight at first[i], then its values,
// then its vectors. It returns nil if s has no terms, as it then has no tables.
func (s *symmetricSum) parameterPositions(first []int) (lists [][]int) {
	if len(s.terms) == 0 {
		return nil
	}
	nextVector := make([]int, len(s.terms)) // by term: the first parameter of its next vector
	for i, t := range s.terms {
		nextVector[i] = first[i] + 1 + t.S.Len()
	}
	for k, d := range s.dims {
		lists = append(lists, nil)
		if !s.hasVectors(k) {
			continue
		}
		var matrix []int
		for i, t := range s.terms {
			if t.R == nil || t.R[k] == nil {
				matrix = append(matrix, slices.Repeat([]int{-1}, d)...)
				continue
			}
			matrix = append(matrix, consecutive(nextVector[i], d)...)
			nextVector[i] += d
		}
		lists = append(lists, matrix)
	}

	strides, boxSize := countStrides(s.levels)
	counts := reachableCounts(s.levels, strides, boxSize)
	var values []int
	for _, c := range counts[len(s.dims)] {
		for i := range s.terms {
			values = append(values, first[i]+1+c)
		}
	}
	return append(lists, values, slices.Clone(first))
}

// consecutive returns the n numbers first, first + 1, and so on.
func consecutive(first, n int) []int {
	numbers := make([]int, n)
	for k := range numbers {
		numbers[k] = first + k
	}
	return numbers
}

// writeTables sets the expression of p to that of the layout, with the living entries of every table, and sets the sources of its tables.
// sources are those of the layout's tables. A table without an index becomes a factor of the scale; if its entry is a parameter, it is in
// Single.
func (p *Parametric) writeTables(l *layout, net *btn.Network, sources []Source) error {
	e := l.emptyExpression(net)
	p.Expression = e
	if l.isZero {
		return nil
	}
	for t, table := range l.tables {
		if l.pace.Over(tableWork + int64(len(table.data))) {
			return l.pace.Err()
		}
		source := sources[t]
		if source.Core >= 0 {
			source.At = copyLiving(l, table, source.At, func(n int) []int { return make([]int, n) })
		}
		data := copyLiving(l, table, table.data, func(n int) []float64 { return make([]float64, n) })
		exp := livingExponents(l, table)
		if scope := l.scope(table, e.Dims); len(scope) > 0 {
			e.Tables = append(e.Tables, sumproduct.Table{Scope: scope, Data: data, Exp: exp})
			p.Sources = append(p.Sources, source)
			continue
		}
		value := firstEntry(data, exp)
		e.Scale = e.Scale.Mul(value)
		if source.Core >= 0 && source.At[0] >= 0 {
			p.Single = append(p.Single, Parameter{Core: source.Core, At: source.At[0], Value: value})
		}
	}
	return nil
}

// Floats returns the expression without exponents, and by table the exponent of the power of two by which its entries were divided. If
// float64 does not hold all entries of a table then, the expression is Unfit.
func (p *Parametric) Floats() (e *sumproduct.Expression, dividedBy []int64) {
	out := *p.Expression
	out.Tables = slices.Clone(p.Tables)
	dividedBy = make([]int64, len(p.Tables))
	for t := range out.Tables {
		table := &out.Tables[t]
		if table.Exp == nil {
			continue
		}
		top, isAllZero := largestExponent(table)
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
		if !isAllZero {
			dividedBy[t] = top
			out.Scale = out.Scale.Mul(scaled.Make(1, top))
		}
		table.Data, table.Exp = data, nil
	}
	return &out, dividedBy
}

// largestExponent returns the largest exponent of the entries of t that are not 0, and whether there is none.
func largestExponent(t *sumproduct.Table) (top int64, isAllZero bool) {
	top, isAllZero = math.MinInt64, true
	for k, x := range t.Data {
		if x != 0 {
			top, isAllZero = max(top, t.Exp[k]), false
		}
	}
	return top, isAllZero
}
