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

// cells describes the index over the cells of a joint marginal.
type cells struct {
	index int // of the expression, a value for each cell; −1: the evidence leaves one cell, and no index is needed
	// positions has, by cell, its position in the table of the joint marginal, in which the last variable of the set changes fastest.
	positions []int
	size      int // number of entries of that table: Π domains of the set
}

// unsignedWork is the largest ratio of the flops of chains of states, without signs, to the flops
// of terms of both signs, by a quick order. Where the width stays they take up to four times as
// many (a step has two states where a term's matrix has one), and terms are contracted twice, the
// second time for possible cancellation.
// Counted, and measured: 2,000 variables with 1,500 clauses of 10 literals each within 16
// variables take 3.3 s of CPU in chains and are not done in 40 s as stars, 600 with 600 of 14
// within 18 take 5.2 s and are not done either; clauses over all of some hundred variables stay
// stars with this bound and with twice of it.
const unsignedWork = 8.0

// PrepareJoint is Prepare with the joint marginal of a set of variables in view (nil: none), which
// CheckJoint has passed. The expression gets one more index J over the combinations of the values
// that the evidence leaves the set, K = Π_i d_i over the distinct indices i of its variables with
// more than one value, and a table per such index:
//
//	selector_i(J, x_i) = 1 where the digit of J for i is x_i, else 0
//	M_J                = Σ of the terms of Z in which the set has cell J
//
// so that the marginal of J is the joint marginal. Variables that share an index share a digit:
// cells in which they differ are 0. Cost: K·Σ_i d_i entries beside Prepare's, and up to K times the
// flops.
//
// CP tensors with signs are chains without (lower.BuildUnsigned) where that does not take much longer.
//
// Errors: from Prepare; over budget before anything is built, where the selectors do not
// fit memory bytes (0: query.DefaultMemory); bad_input for a network without variables.
func PrepareJoint(
	ctx context.Context, net *btn.Network, marginals bool, set []int, memory int64,
) (*Prepared, error) {
	star, err := lower.Build(ctx, net)
	if err != nil {
		return nil, err
	}
	p, err := prepare(ctx, net, star, marginals, set, memory)
	if err != nil || star.Unfit != "" || !p.simple.Expression.Signed() {
		return p, err
	}

	chains, err := lower.BuildUnsigned(ctx, net, star)
	if err != nil || chains == star || chains.Unfit != "" {
		return p, err
	}
	other, err := prepare(ctx, net, chains, marginals, set, memory)
	if err != nil {
		return nil, err
	}
	work, err := p.minFillFlops(ctx)
	if err != nil {
		return nil, err
	}
	without, err := other.minFillFlops(ctx)
	if err != nil || without > unsignedWork*work {
		return p, err
	}
	return other, nil
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

// prepare simplifies the network net, which given is written as, for all marginals or the joint marginal of set or both.
func prepare(
	ctx context.Context, net *btn.Network, given *sumproduct.Expression, marginals bool, set []int, memory int64,
) (*Prepared, error) {
	p := &Prepared{net: net, given: given, marginals: marginals}
	o := preprocess.Options{Marginals: marginals, Classes: true}

	if len(set) > 0 {
		if memory <= 0 {
			memory = query.DefaultMemory
		}
		if err := p.addCells(set, memory); err != nil {
			return nil, err
		}
		if p.cells.index >= 0 {
			o.Keep = []int{p.cells.index}
		}
	}

	var err error
	if p.simple, err = preprocess.Run(ctx, p.given, o); err != nil {
		return nil, err
	}
	return p, nil
}

// addCells appends the index of cells and its selectors to the expression. The error is over budget if the selectors do not fit the
// memory.
func (p *Prepared) addCells(set []int, memory int64) error {
	e := p.given
	if len(e.Variables) == 0 {
		return fault.New(fault.BadInput,
			"exact: the network has no variables, so there is no joint marginal")
	}

	var free []int // distinct indices of the set with more than one value
	values := 1    // of the index of cells
	entries := 0   // of one of its rows in all selectors
	for _, v := range set {
		if i := e.Variables[v]; e.Dims[i] > 1 && !slices.Contains(free, i) {
			free = append(free, i)
			values *= e.Dims[i]
			entries += e.Dims[i]
		}
	}
	if need := 8 * float64(values) * float64(entries); need > float64(memory) {
		return fault.New(fault.OverBudget,
			"exact: the joint marginal of %d variables with %d cells needs %.0f bytes of "+
				"selectors, the budget is %d bytes", len(set), values, need, memory)
	}

	c := &cells{index: -1, positions: make([]int, values), size: 1}

	// digit returns index i's digit in the number of a cell, mixed radix over free, the last one fastest
	digit := func(i, value int) int {
		for k := len(free) - 1; free[k] != i; k-- {
			value /= e.Dims[free[k]]
		}
		return value % e.Dims[i]
	}

	// positions[J] = Σ_k x_k Π_{l>k} |domain l|, where x_k is the value of variable k in the network.
	for k := len(set) - 1; k >= 0; k-- {
		i := e.Variables[set[k]]
		for value := range c.positions {
			x := 0
			if e.Dims[i] > 1 {
				x = digit(i, value)
			}
			if s := e.Support[i]; s != nil {
				x = s[x]
			}
			c.positions[value] += x * c.size
		}
		c.size *= p.net.Variables[set[k]].Domain
	}

	p.cells = c

	if len(free) == 0 {
		return nil
	}

	c.index = len(e.Dims)
	e.Dims = append(e.Dims, values)
	e.Support = append(e.Support, nil)

	for _, i := range free {
		d := e.Dims[i]
		data := make([]float64, values*d)
		for value := range values {
			data[value*d+digit(i, value)] = 1
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

// jointTable returns the table of the joint marginal, which has an entry for each combination of values of the set. The cells are those
// combinations that the evidence leaves. All other entries are 0. marginalOf returns the marginal of an index, by value. It is called for
// the index whose values are the cells, and not at all if there is only one cell, whose probability is 1.
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
