package exact

// The joint marginal of a set of variables: one more index, over its cells.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/preprocess"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// cells describes the cells of a joint marginal: the combinations of values of a set of variables that the evidence leaves. They are the
// values of one more index of the expression.
type cells struct {
	index int // the number of that index; −1: the evidence leaves one cell, and no index is needed
	// positions has, by cell, its position in the table of the joint marginal, in which the last variable of the set changes fastest.
	positions []int
	size      int // number of entries of that table: Π domains of the set
}

// unsignedWork is the largest ratio of the flops of chains of states, without signs, to the flops of terms of both signs, along min-fill
// orders. If the width is the same, chains take up to four times as many (a step has two states where a term's matrix has one), and terms
// are contracted twice, the second time for possible cancellation. Counted, and measured: 2,000 variables with 1,500 clauses of 10
// literals each within 16 variables take 3.3 s of CPU in chains and are not done in 40 s as stars, 600 with 600 of 14 within 18 take 5.2
// s and are not done either; clauses over all of some hundred variables stay stars with this bound and with twice of it.
const unsignedWork = 8.0

// PrepareJoint simplifies a network, as Prepare does, for the joint marginal of a set of variables, which CheckJoint has passed. If
// marginals is true, the marginals of all variables can be recovered as well. If set is empty, it is Prepare. Terms of both signs are
// replaced by chains of states without signs (lower.BuildUnsigned) if these do not take much longer.
//
// The expression gets one more index J, whose values are the K cells of the joint marginal: the combinations of the values that the
// evidence leaves the set. K = Π_i d_i over the distinct indices i of the variables of the set, d_i values each. A cell number has one
// digit for each of these indices. A table for each index ties it to its digit:
//
//	selector_i(J, x_i) = 1 if the digit of J for i is x_i, otherwise 0
//	M_J                = Σ of the terms of Z in which the set has cell J
//
// so that the marginal M of J is the joint marginal. Variables that share an index share a digit: cells in which they differ are 0. Cost:
// K·Σ_i d_i entries in addition to Prepare's, and up to K times the flops.
//
// Errors: those of Prepare; over budget, before anything is built, if the selectors do not fit memory bytes (0: query.DefaultMemory);
// bad_input for a network without variables.
func PrepareJoint(
	ctx context.Context, net *btn.Network, marginals bool, set []int, memory int64,
) (*Prepared, error) {
	// With terms as they are: a CP tensor is a star of matrices around an index over its terms.
	star, err := lower.Build(ctx, net)
	if err != nil {
		return nil, err
	}
	p, err := prepare(ctx, net, star, marginals, set, memory)
	if err != nil || star.Unfit != "" || !p.simple.Expression.Signed() {
		return p, err // an error, or a network that chains would not change
	}

	// With chains of states, if there are terms of both signs.
	chains, err := lower.BuildUnsigned(ctx, net, star)
	if err != nil {
		return p, err
	}
	if hasChains := chains != star && chains.Unfit == ""; !hasChains { // star itself: it has no chains
		return p, nil
	}
	unsigned, err := prepare(ctx, net, chains, marginals, set, memory)
	if err != nil {
		return nil, err
	}

	// The cheaper of the two.
	flops, err := p.minFillFlops(ctx)
	if err != nil {
		return nil, err
	}
	unsignedFlops, err := unsigned.minFillFlops(ctx)
	if err != nil || unsignedFlops > unsignedWork*flops { // much longer: by that factor
		return p, err
	}
	return unsigned, nil
}

// minFillFlops returns the flops of contracting the simplified tables along the min-fill order.
func (p *Prepared) minFillFlops(ctx context.Context) (float64, error) {
	h := p.Hypergraph()
	order, err := contractionorder.MinFill(ctx, h)
	if err != nil {
		return 0, err
	}
	cost, err := contractionorder.EvaluateOrder(ctx, h, order)
	return cost.Flops, err
}

// prepare simplifies given, which is the network net as an expression. If marginals is true, the marginals of all variables can be
// recovered from those of the simplified expression. If set is not empty, given gets an index over the cells of the joint marginal of set
// first, and the joint marginal can be recovered as well. The memory, in bytes, limits the tables of that index.
func prepare(
	ctx context.Context, net *btn.Network, given *sumproduct.Expression, marginals bool, set []int, memory int64,
) (*Prepared, error) {
	p := &Prepared{net: net, given: given, marginals: marginals}
	options := preprocess.Options{Marginals: marginals, Classes: true}

	if len(set) > 0 {
		if memory <= 0 {
			memory = query.DefaultMemory
		}
		if err := p.addCells(set, memory); err != nil {
			return nil, err
		}
		if hasIndex := p.cells.index >= 0; hasIndex {
			options.Keep = []int{p.cells.index} // it is not to be summed out
		}
	}

	var err error
	if p.simple, err = preprocess.Run(ctx, p.given, options); err != nil {
		return nil, err
	}
	return p, nil
}

// addCells appends to the expression one more index, whose values are the cells of the joint marginal of set: the combinations of values
// of its variables. It also appends a selector for each index i of these variables: a table over the new index and i that is 1 where i has
// the value that the cell gives it, and 0 elsewhere. The error is over budget if the selectors do not fit the memory.
func (p *Prepared) addCells(set []int, memory int64) error {
	if len(p.given.Variables) == 0 {
		return fault.New(fault.BadInput,
			"exact: the network has no variables, so there is no joint marginal")
	}
	code := newCellCode(p.given, set)
	if need := 8 * code.selectorEntries(); need > float64(memory) { // 8 bytes an entry
		return fault.New(fault.OverBudget,
			"exact: the joint marginal of %d variables with %d cells needs %.0f bytes of "+
				"selectors, the budget is %d bytes", len(set), code.count, need, memory)
	}
	p.cells = p.cellsOf(set, code)
	if len(code.indices) > 0 { // otherwise all have one value, and there is one cell, which needs no index
		p.addSelectors(code)
	}
	return nil
}

// cellCode numbers the cells of a joint marginal. The number of a cell has one digit for each of some indices, the value of that index in
// the cell. The last index is the fastest.
type cellCode struct {
	indices []int // the distinct indices of the variables with more than one value
	dims    []int // by index of the expression: the number of its values
	count   int   // the number of cells
}

// newCellCode returns the code of the cells of a set of variables, which numbers these combinations of values: a digit for each distinct
// index of the variables that has more than one value. Index e.Variables[v] belongs to variable v.
func newCellCode(e *sumproduct.Expression, set []int) cellCode {
	code := cellCode{dims: e.Dims, count: 1}
	for _, v := range set {
		if i := e.Variables[v]; e.Dims[i] > 1 && !slices.Contains(code.indices, i) {
			code.indices = append(code.indices, i)
			code.count *= e.Dims[i]
		}
	}
	return code
}

// selectorEntries returns the number of entries of all selectors: each is a table over the cells and one of the indices.
func (c cellCode) selectorEntries() float64 {
	values := 0
	for _, i := range c.indices {
		values += c.dims[i]
	}
	return float64(c.count) * float64(values)
}

// valueIn returns the value of index i in a cell: the digit of i in the number of the cell, whose last digit is that of the last of
// c.indices and counts ones. An index with one value has no digit, and the result is 0.
func (c cellCode) valueIn(cell, i int) int {
	if c.dims[i] <= 1 {
		return 0
	}
	for k := len(c.indices) - 1; c.indices[k] != i; k-- {
		cell /= c.dims[c.indices[k]]
	}
	return cell % c.dims[i]
}

// cellsOf returns the cells of a set of variables, the combinations of their values that the evidence leaves. Their index is −1 until
// addSelectors adds one. The position of a cell in the table of the joint marginal is Σ_k x_k Π_{l>k} |domain l|, with the value x_k of
// variable k of the set: the last variable is the fastest.
func (p *Prepared) cellsOf(set []int, code cellCode) *cells {
	c := &cells{index: -1, positions: make([]int, code.count), size: 1}
	for k := len(set) - 1; k >= 0; k-- {
		i := p.given.Variables[set[k]]
		for cell := range c.positions {
			c.positions[cell] += p.valueOf(i, code.valueIn(cell, i)) * c.size
		}
		c.size *= p.net.Variables[set[k]].Domain
	}
	return c
}

// addSelectors appends to the expression the index of cells, and for each index of a cell a selector: a table over these two that is 1 if
// the index has its value in the cell, and 0 otherwise.
func (p *Prepared) addSelectors(code cellCode) {
	e := p.given
	p.cells.index = len(e.Dims)
	e.Dims = append(e.Dims, code.count)
	e.Support = append(e.Support, nil)
	for _, i := range code.indices {
		d := e.Dims[i]
		data := make([]float64, code.count*d)
		for cell := range code.count {
			data[cell*d+code.valueIn(cell, i)] = 1
		}
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{p.cells.index, i}, Data: data})
	}
}

// recoverJoint returns the table of the joint marginal. marginals has the marginals of the indices of the contracted tables. The joint
// marginal is that of the index over the cells, which is recovered from them.
func (p *Prepared) recoverJoint(marginals [][]float64) ([]float64, error) {
	if p.cells.index < 0 { // there is one cell, of probability 1, and no index
		return p.jointTable(nil), nil
	}
	row, err := p.simple.Recover(p.cells.index, marginals)
	if err != nil {
		return nil, err
	}
	if !isFinite(row) {
		return nil, fault.New(fault.Unsupported, "%w: joint marginal", sumproduct.ErrNotFinite)
	}
	return p.jointTable(func(int) []float64 { return row }), nil
}

// jointTable returns the table of the joint marginal, with an entry for each combination of values of the set. The cells are those
// combinations that the evidence leaves, and all other entries are 0. marginalOf returns the marginal of an index, by value. It is called
// for the index whose values are the cells. If there is only one cell, its probability is 1.
func (p *Prepared) jointTable(marginalOf func(index int) []float64) []float64 {
	table := make([]float64, p.cells.size)
	probabilities := []float64{1} // by cell
	if p.cells.index >= 0 {
		probabilities = marginalOf(p.cells.index)
	}
	for cell, probability := range probabilities {
		table[p.cells.positions[cell]] = probability
	}
	return table
}
