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
	Sources         []Source    // by table
	ScaleParameters []Parameter // parameters that are factors of Scale, because evidence leaves no other entry of their table
	Sizes           []int       // by core: the number of its parameters
}

// Source tells which parameters the entries of a table are: entry k is parameter Position[k] of core Core.
type Source struct {
	Core      int   // −1: no entry of the table is a parameter
	Positions []int // by entry; −1: the entry is no parameter
}

// Parameter is one number of a core: its parameter number Position.
type Parameter struct {
	Core, Position int
	Value          scaled.Number
}

// ParameterSizes returns the number of parameters of every core of the model: its entries, or the numbers of its form.
func ParameterSizes(net *btn.Network) []int {
	sizes := make([]int, len(net.ModelCores()))
	for c, core := range net.ModelCores() {
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
				sizes[c] += parameterCount(&t.Terms[i])
			}
		}
	}
	return sizes
}

// parameterCount returns the number of parameters of a term of a symmetry-CP tensor: its weight, its values and its vectors.
func parameterCount(t *tensor.SymmetryRankOne) int {
	count := 1 + t.S.Len()
	for _, vector := range t.R {
		count += len(vector)
	}
	return count
}

// BuildParameters returns net as a parametric expression: one that tells which parameter of the model each entry of a table is. A
// symmetric tensor becomes a chain of tables along its legs, whose states count how many legs so far are at each level (a value of a leg
// has a level, and the tensor depends only on these counts); the last tables have the parameters as they are. Tables may have exponents
// (see Table.Exp), and no table is normalised. The numbering of the indices depends on forms and shapes only; evidence changes their
// dimensions.
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

	// Add the cores, and note for every table which parameters its entries are. Tables of links have none.
	p := &Parametric{Sizes: ParameterSizes(net)}
	sources := slices.Repeat([]Source{{Core: -1}}, len(l.tables)) // by table
	for c, core := range net.Cores {
		if err := l.addTensor("core", c, core.Legs, core.T); err != nil {
			return nil, err
		}
		isOfModel := c < len(p.Sizes)                          // else it is a core of evidence
		for _, positions := range parameterPositions(core.T) { // by table that addTensor has just added
			s := Source{Core: -1}
			if positions != nil && isOfModel {
				s = Source{Core: c, Positions: positions}
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

// excludeZeroWeights excludes the values of variables that have weight 0: it sets l.isAlive of these values to false. isAlive is by root,
// the node that stands for a variable's index, and by value; nil means that no value is excluded.
func (l *layout) excludeZeroWeights(net *btn.Network) {
	for _, v := range net.Variables {
		weights := LinkWeights(net, v.Link)
		if !hasZero(weights) {
			continue
		}
		if l.isAlive == nil {
			l.isAlive = make([][]bool, len(l.parent))
		}
		isPossible := make([]bool, len(weights))
		for x, w := range weights {
			isPossible[x] = w != 0
		}
		l.intersectAlive(l.root(l.hiddenNode[v.Link]), isPossible) // it sets l.isZero if no value is left
	}
}

// parameterPositions returns which parameters of a core the entries of its tables are. The tables are those that layout.addTensor makes of
// the core in a wide layout. Element k of the list of a table is the number of the parameter that entry k is, or −1 if the entry is no
// parameter. The list is nil if the table has no parameters.
func parameterPositions(t tensor.Tensor) [][]int {
	switch t := t.(type) {
	case *tensor.Dense:
		return [][]int{consecutiveNumbers(0, len(t.Data))}
	case *tensor.CP:
		if len(t.Weights) == 0 {
			return nil
		}
		next := len(t.Weights) // the first parameter of the next vectors
		lists := [][]int{consecutiveNumbers(0, next)}
		for _, vectors := range t.Vectors {
			if vectors != nil {
				lists = append(lists, consecutiveNumbers(next, len(vectors)))
				next += len(vectors)
			}
		}
		return lists
	case *tensor.Symmetric:
		s := &symmetricSum{dims: t.Shape, levels: t.Levels, terms: []tensor.SymmetryRankOne{{Alpha: 1, S: t.Values}}}
		// The weight 1 of the term is no parameter: the values begin at 0, as if the weight were parameter −1.
		lists := s.parameterPositions([]int{-1})
		lists[len(lists)-1] = nil // the last table has the weight
		return lists
	case *tensor.SymmetryCP:
		first := make([]int, len(t.Terms)) // by term: its first parameter
		next := 0
		for i := range t.Terms {
			first[i] = next
			next += parameterCount(&t.Terms[i])
		}
		s := &symmetricSum{dims: t.Shape, levels: t.Levels, terms: t.Terms}
		return s.parameterPositions(first)
	}
	return nil
}

// parameterPositions returns which parameters of a symmetric core the entries of its tables are. There is a list per table: element k is
// the number of the parameter that entry k is, or −1 if it is none. The tables are those of addPlainChain: per leg a table of 0 and 1,
// without parameters (nil), and the matrix of the vectors, if the leg has some; then the values of S, and the weights. Term i has its
// weight at parameter first[i], then its values, then its vectors. The result is nil if s has no terms, as it then has no tables.
func (s *symmetricSum) parameterPositions(first []int) (lists [][]int) {
	if len(s.terms) == 0 {
		return nil
	}

	// The tables of the legs.
	nextVector := make([]int, len(s.terms)) // by term: the first parameter of its next vector
	for i, t := range s.terms {
		nextVector[i] = first[i] + 1 + t.S.Len()
	}
	for k := range s.dims {
		lists = append(lists, nil)
		if s.hasVectors(k) {
			lists = append(lists, s.vectorPositions(k, nextVector))
		}
	}

	// The table of the values, over (count, term), and that of the weights.
	strides, boxSize := levelStrides(s.levels)
	counts := reachableCounts(s.levels, strides, boxSize)
	var values []int
	for _, count := range counts[len(s.dims)] {
		for i := range s.terms {
			values = append(values, first[i]+1+count)
		}
	}
	return append(lists, values, slices.Clone(first))
}

// vectorPositions returns the parameters that are the entries of the matrix of leg k, over (term, value of the leg), −1 for the entries of
// a term without a vector on the leg. nextVector has, by term, the first parameter of its next vector; vectorPositions moves it behind the
// vectors of leg k.
func (s *symmetricSum) vectorPositions(k int, nextVector []int) []int {
	var matrix []int
	d := s.dims[k]
	for i, t := range s.terms {
		if t.R == nil || t.R[k] == nil {
			matrix = append(matrix, slices.Repeat([]int{-1}, d)...)
			continue
		}
		matrix = append(matrix, consecutiveNumbers(nextVector[i], d)...)
		nextVector[i] += d
	}
	return matrix
}

// consecutiveNumbers returns the n numbers first, first + 1, …, first + n − 1.
func consecutiveNumbers(first, n int) []int {
	numbers := make([]int, n)
	for k := range numbers {
		numbers[k] = first + k
	}
	return numbers
}

// writeTables sets the expression of p to that of the layout, and p.Sources: which parameters the entries of its tables are. It copies the
// entries of every table over values that are not excluded. sources are those of the layout's tables, for all entries. A table without an
// index becomes a factor of the scale; if its entry is a parameter, it is in ScaleParameters.
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
			source.Positions = copyLiving(l, table, source.Positions, func(n int) []int { return make([]int, n) })
		}
		data := copyLiving(l, table, table.data, func(n int) []float64 { return make([]float64, n) })
		exp := livingExponents(l, table)
		if scope := l.scope(table, e.Dims); len(scope) > 0 {
			e.Tables = append(e.Tables, sumproduct.Table{Scope: scope, Data: data, Exp: exp})
			p.Sources = append(p.Sources, source)
			continue
		}

		// A table without an index has one entry.
		value := firstEntry(data, exp)
		e.Scale = e.Scale.Mul(value)
		if source.Core >= 0 && source.Positions[0] >= 0 {
			p.ScaleParameters = append(p.ScaleParameters, Parameter{Core: source.Core, Position: source.Positions[0], Value: value})
		}
	}
	return nil
}

// WithoutExponents returns the expression with plain float64 entries. The entries of a table with exponents are divided by 2^exponent of
// its largest entry, and the scale is multiplied by that power. dividedBy has this exponent by table, 0 for tables without exponents. If
// float64 does not hold all entries of a table then, the expression is Unfit.
func (p *Parametric) WithoutExponents() (e *sumproduct.Expression, dividedBy []int64) {
	plain := *p.Expression
	plain.Tables = slices.Clone(p.Tables)
	dividedBy = make([]int64, len(p.Tables))
	for t := range plain.Tables {
		table := &plain.Tables[t]
		if table.Exp == nil {
			continue
		}
		maxExponent, isAllZero := largestExponent(table)
		data := make([]float64, len(table.Data))
		for k, x := range table.Data {
			if x == 0 {
				continue
			}
			if table.Exp[k]-maxExponent < floats.Lowest { // float64 would lose digits of the entry
				plain.Unfit = "values of a symmetric factor are further apart than float64 holds"
				continue // the entry becomes 0
			}
			data[k] = math.Ldexp(x, int(table.Exp[k]-maxExponent))
		}
		if !isAllZero {
			dividedBy[t] = maxExponent
			plain.Scale = plain.Scale.Mul(scaled.Make(1, maxExponent))
		}
		table.Data, table.Exp = data, nil
	}
	return &plain, dividedBy
}

// largestExponent returns the largest binary exponent of the entries of t that are not 0. isAllZero is true if all entries are.
func largestExponent(t *sumproduct.Table) (maxExponent int64, isAllZero bool) {
	maxExponent, isAllZero = math.MinInt64, true
	for k, x := range t.Data {
		if x != 0 {
			maxExponent, isAllZero = max(maxExponent, t.Exp[k]), false
		}
	}
	return maxExponent, isAllZero
}
