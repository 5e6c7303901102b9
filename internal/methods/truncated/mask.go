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

// Mask returns the simplified network under evidence; p does not change. Evidence becomes weights of the values of indices. An index with
// one value of positive weight disappears from all scopes and has dimension 1. The weights of any other index are multiplied into the first
// table that has it. The number and sequence of the tables stay, so that a plan for p fits. Errors: ErrNoMask if no index determines a
// variable, if a product with a weight leaves the range of float64, or if p is under a mask already. Cost: one pass over the changed
// tables.
func (p *Prepared) Mask(ev factorgraph.Evidence) (*Prepared, error) {
	if ev.IsEmpty() {
		return p, nil
	}
	if p.weights != nil {
		return nil, fmt.Errorf("%w: the network is under a mask already", ErrNoMask)
	}

	// Collect the weights.
	e := p.simple.Expression
	masked := &Prepared{net: p.net, original: p.original, marginals: p.marginals, signed: p.signed, weights: make([][]float64, len(e.Dims))}
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
	if simple.Expression = m.applyWeights(); m.exceedsRange {
		return nil, fmt.Errorf("%w: a product of weights leaves the range of float64", ErrNoMask)
	}
	masked.simple = &simple
	if p.absolute > 0 { // entries below 0: the bytes of the tables, held while their absolute values are contracted
		masked.absolute = absoluteBytes(simple.Expression)
	}
	return masked, nil
}

// masker computes a network under a mask: weights of the values of some indices.
type masker struct {
	network      *Prepared     // before the mask
	masked       *Prepared     // the result; the masker sets its weights
	scale        scaled.Number // of the masked expression
	weighted     []int         // indices of the simplified expression that have weights
	exceedsRange bool          // a product has lost digits to the range of float64
}

// leastProduct is the smallest magnitude of a nonzero product that certainly has all its digits, as in package preprocess.
const leastProduct = 0x1p-1000

// product returns the product of an entry and a weight. It sets exceedsRange if that leaves the range of float64.
func (m *masker) product(x, weight float64) float64 {
	if x == 0 || weight == 0 || weight == 1 {
		return x * weight
	}
	y := x * weight
	m.exceedsRange = m.exceedsRange || math.Abs(y) < leastProduct || math.IsInf(y, 0)
	return y
}

// addWeights weighs each value x of a variable by weight(x). It multiplies that into the collected weights of the simplified index that
// determines the variable, or into the scale if the variable has only one value left. The error is ErrNoMask if no index determines the
// variable.
func (m *masker) addWeights(variable int, weight func(x int) float64) error {
	p := m.network
	if variable < 0 || variable >= len(p.original.Variables) {
		return fmt.Errorf("%w: variable %d of %d", ErrNoMask, variable, len(p.original.Variables))
	}
	i := p.original.Variables[variable] // its index in the original expression
	value := func(k int) int {          // value of the variable for the k-th value of index i
		if support := p.original.Support[i]; support != nil {
			return support[k]
		}
		return k
	}
	if p.original.Dims[i] == 1 {
		m.scale = m.scale.Mul(scaled.FromFloat(weight(value(0))))
		return nil
	}
	origin := p.simple.Origin[i] // index i has its value ValueOf[y] if the simplified index origin.Index has value y
	if origin.ValueOf == nil {
		return fmt.Errorf("%w: variable %d", ErrNoMask, variable)
	}
	if len(origin.ValueOf) == 1 { // simplification has left one value
		m.scale = m.scale.Mul(scaled.FromFloat(weight(value(origin.ValueOf[0]))))
		return nil
	}

	j := origin.Index
	if !slices.Contains(m.weighted, j) {
		m.weighted = append(m.weighted, j)
	}
	weights := m.masked.weights[j]
	if weights == nil {
		weights = slices.Repeat([]float64{1}, len(origin.ValueOf))
	}
	for y, k := range origin.ValueOf {
		weights[y] = m.product(weights[y], weight(value(k)))
	}
	m.masked.weights[j] = weights
	return nil
}

// applyWeights returns the simplified expression under the collected weights. An index with a single value of nonzero weight is fixed at
// it. The weights of any other index are multiplied into the first table that has the index. If all weights of an index are 0, so is the
// scale.
func (m *masker) applyWeights() *sumproduct.Expression {
	e := m.network.simple.Expression
	out := &sumproduct.Expression{
		Dims:      slices.Clone(e.Dims),
		Tables:    slices.Clone(e.Tables),
		Variables: e.Variables,
		Support:   e.Support,
		Unfit:     e.Unfit,
	}

	fixedValue, hasWeights := m.divideWeighted()
	for j := range fixedValue {
		out.Dims[j] = 1
	}

	// Change the tables with fixed indices, and the first table of every index with weights.
	isInTable := map[int]bool{} // by index: an earlier table has it
	for t, table := range e.Tables {
		isChanged := false
		for _, i := range table.Scope {
			_, isFixed := fixedValue[i]
			isChanged = isChanged || isFixed || hasWeights[i] && !isInTable[i]
		}
		if isChanged {
			out.Tables[t] = m.maskTable(table, fixedValue, hasWeights, isInTable)
		}
		for _, i := range table.Scope {
			isInTable[i] = true
		}
	}

	// The sum over an index in no table is the sum of its weights.
	for _, j := range m.weighted {
		if hasWeights[j] && !isInTable[j] {
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

// divideWeighted divides the indices that have weights, which it sorts, into two sets: fixedValue has the indices with one value of nonzero
// weight, and that value; hasWeights has those with several. It multiplies the weights of the fixed values into the scale. If all weights
// of an index are 0, it sets the scale to 0.
func (m *masker) divideWeighted() (fixedValue map[int]int, hasWeights map[int]bool) {
	fixedValue, hasWeights = map[int]int{}, map[int]bool{}
	slices.Sort(m.weighted)
	for _, j := range m.weighted {
		weights := m.masked.weights[j]
		nonzeros, last := 0, 0
		for y, w := range weights {
			if w != 0 {
				nonzeros, last = nonzeros+1, y
			}
		}
		switch nonzeros {
		case 0: // the evidence excludes every value
			m.scale = scaled.Number{}
		case 1:
			fixedValue[j] = last
			m.scale = m.scale.Mul(scaled.FromFloat(weights[last]))
		default:
			hasWeights[j] = true
		}
	}
	return fixedValue, hasWeights
}

// maskTable returns a table without its fixed indices: only the entries at their fixedValue stay. The entries are multiplied by the weights
// of those indices with weights that are not in an earlier table. A mask is evidence as weights of the values of indices.
func (m *masker) maskTable(
	t sumproduct.Table, fixedValue map[int]int, hasWeights, isInEarlier map[int]bool,
) sumproduct.Table {
	dims := m.network.simple.Expression.Dims
	out := sumproduct.Table{}
	for _, i := range t.Scope {
		if _, isFixed := fixedValue[i]; !isFixed {
			out.Scope = append(out.Scope, i)
		}
	}
	walk := sumproduct.NewWalk(dims, t.Scope) // walk.Values has the values of the indices at an entry
	for _, x := range t.Data {
		isKept := true
		for k, i := range t.Scope {
			if y, isFixed := fixedValue[i]; isFixed {
				isKept = isKept && walk.Values[k] == y
			} else if hasWeights[i] && !isInEarlier[i] {
				x = m.product(x, m.masked.weights[i][walk.Values[k]]) // notes in m if the product leaves the range of float64
			}
		}
		if isKept {
			out.Data = append(out.Data, x)
		}
		walk.Next()
	}
	return out
}

// completeMarginals returns the marginals of the simplified indices as they are without a mask. marginals are those of the masked
// expression, where an index that the mask fixed, or that is in no table, has one value. Such an index gets the mask's weights, normalised.
// A mask is evidence as weights of the values of indices.
func (p *Prepared) completeMarginals(marginals [][]float64) [][]float64 {
	if p.weights == nil {
		return marginals
	}
	complete := slices.Clone(marginals)
	for j, weights := range p.weights {
		hasAllValues := weights == nil || p.simple.Expression.Dims[j] > 1 // its row in marginals is complete
		if hasAllValues {
			continue
		}
		sum, nonzeros := 0.0, 0
		for _, w := range weights {
			sum += w
			if w != 0 {
				nonzeros++
			}
		}
		row := make([]float64, len(weights))
		for y, w := range weights {
			if nonzeros == 1 && w != 0 { // exactly 1, without rounding
				row[y] = 1
			} else {
				row[y] = w / sum
			}
		}
		complete[j] = row
	}
	return complete
}

// VariableMarginals returns the marginals of the network's variables, a row of probabilities each. marginals has those of the indices of
// Expression. The error is preprocess.ErrSummedOut if the network was not prepared for marginals.
func (p *Prepared) VariableMarginals(marginals [][]float64) ([][]float64, error) {
	complete := p.completeMarginals(marginals)
	rows := make([][]float64, len(p.net.Variables))
	for v, variable := range p.net.Variables {
		i := p.original.Variables[v] // its index before simplification
		row, err := p.simple.Recover(i, complete)
		if err != nil {
			return nil, fmt.Errorf("truncated: marginal of variable %d: %w", v, err)
		}
		if support := p.original.Support[i]; support != nil { // the index has only some values of the variable
			domainRow := make([]float64, variable.Domain)
			for k, x := range support {
				domainRow[x] = row[k]
			}
			row = domainRow
		}
		rows[v] = row
	}
	return rows, nil
}
