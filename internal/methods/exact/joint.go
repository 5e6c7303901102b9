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
	// With terms as they are.
	star, err := lower.Build(ctx, net)
	if err != nil {
		return nil, err
	}
	p, err := prepare(ctx, net, star, marginals, set, memory)
	if err != nil || star.Unfit != "" || !p.simple.Expression.Signed() {
		return p, err
	}

	// With chains of states, if there are terms of both signs.
	chains, err := lower.BuildUnsigned(ctx, net, star)
	if err != nil {
		return p, err
	}
	if hasChains := chains != star && chains.Unfit == ""; !hasChains {
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
	if err != nil || unsignedFlops > unsignedWork*flops {
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

// addCells appends to the expression an index over the cells of the joint marginal of set, and its selectors (PrepareJoint). The error is
// over budget if the selectors do not fit the memory.
func (p *Prepared) addCells(set []int, memory int64) error {
	e := p.given
	if len(e.Variables) == 0 {
		return fault.New(fault.BadInput,
			"exact: the network has no variables, so there is no joint marginal")
	}

	// The indices that make up a cell, and the size of their selectors.
	var free []int // distinct indices of the set with more than one value
	count := 1     // the number of cells
	digits := 0    // the sum of the dimensions of free
	for _, v := range set {
		if i := e.Variables[v]; e.Dims[i] > 1 && !slices.Contains(free, i) {
			free = append(free, i)
			count *= e.Dims[i]
			digits += e.Dims[i]
		}
	}
	if need := 8 * float64(count) * float64(digits); need > float64(memory) {
		return fault.New(fault.OverBudget,
			"exact: the joint marginal of %d variables with %d cells needs %.0f bytes of "+
				"selectors, the budget is %d bytes", len(set), count, need, memory)
	}

	// The position of each cell in the table of the joint marginal, Σ_k x_k Π_{l>k} |domain l|, with the value x_k of variable k of the
	// set.
	c := &cells{index: -1, positions: make([]int, count), size: 1}
	digitOf := func(i, cell int) int { // the value of index i in a cell: its digit, with the last index of free fastest
		for k := len(free) - 1; free[k] != i; k-- {
			cell /= e.Dims[free[k]]
		}
		return cell % e.Dims[i]
	}
	for k := len(set) - 1; k >= 0; k-- {
		i := e.Variables[set[k]]
		for cell := range c.positions {
			x := 0
			if e.Dims[i] > 1 {
				x = digitOf(i, cell)
			}
			c.positions[cell] += p.valueOf(i, x) * c.size
		}
		c.size *= p.net.Variables[set[k]].Domain
	}
	p.cells = c
	if len(free) == 0 {
		return nil
	}

	// The index of cells and its selectors.
	c.index = len(e.Dims)
	e.Dims = append(e.Dims, count)
	e.Support = append(e.Support, nil)
	for _, i := range free {
		d := e.Dims[i]
		data := make([]float64, count*d)
		for cell := range count {
			data[cell*d+digitOf(i, cell)] = 1
		}
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{c.index, i}, Data: data})
	}
	return nil
}

// recoverJoint returns the table of the joint marginal. marginals has those of the indices of the contracted tables.
func (p *Prepared) recoverJoint(marginals [][]float64) ([]float64, error) {
	if p.cells.index < 0 {
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
