package einsum

// The tape: the steps of an order, the tables whose derivatives are needed, and the cost of both passes.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/engine/compiled"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// noTable is the table of a number that is the dimension of an index without tables.
const noTable = -1

// goals are the results of a contraction in addition to its value.
type goals struct {
	marginals bool
	wanted    []bool // by table of the expression: the derivative by it is wanted; nil: by no table
}

// hasBackward reports whether the goals need a backward pass.
func (g goals) hasBackward() bool { return g.marginals || g.wanted != nil }

// wants reports whether the derivative by a table of the expression is wanted.
func (g goals) wants(t int) bool { return g.wanted != nil && g.wanted[t] }

// tape is the list of steps of an elimination, before any is done. Tables are numbered as in contractionorder.Step: the expression's first,
// then the outputs of the steps.
type tape struct {
	goals
	h        contractionorder.Hypergraph
	steps    []*contractionorder.Step
	readFrom []int  // by index: the table of the expression that its marginal is read from; noTable if it is not read
	isNeeded []bool // by table: the backward pass computes the derivative of Z by it, since that is wanted itself or others need it
	isUsed   []bool // by index: some table has it
}

// newTape lists the steps of an order, and chooses the smallest table of every index to read its marginal from. The cost is that of
// contractionorder.EvaluateOrder. If the elimination takes more than memory bytes, or has a table of 2^hopeless entries, it returns the
// cost and a nil tape.
func newTape(ctx context.Context, h contractionorder.Hypergraph, order []int, g goals, memory float64) (*tape, query.Cost, error) {
	t := &tape{goals: g, h: h}
	var m contractionorder.Meter
	m.Start(h)
	fits := func() bool { return m.Plan().Bytes <= memory && m.Plan().Log2Table < hopeless }
	addStep := func(s *contractionorder.Step) (goesOn bool) {
		m.Begin(h, s)
		m.End(s)
		t.steps = append(t.steps, s)
		return fits()
	}
	if err := contractionorder.Walk(ctx, h, order, addStep); err != nil {
		return nil, query.Cost{}, err
	}
	if !fits() { // the walk has stopped early, so that m has a part of the cost only
		cost, err := contractionorder.EvaluateOrder(ctx, h, order)
		return nil, cost, err
	}
	t.chooseTables()
	return t, m.Plan(), nil
}

// chooseTables sets isUsed, readFrom, which is the smallest table of each index, and isNeeded. A table is needed if the derivative by it is
// wanted or a marginal is read from it. So is the output of every step that has a needed table among its inputs: the backward pass goes
// from the last step to the first, and computes the derivatives by the inputs of a step from the one by its output.
func (t *tape) chooseTables() {
	t.isUsed = make([]bool, len(t.h.Dims))
	t.readFrom = slices.Repeat([]int{noTable}, len(t.h.Dims))
	smallest := make([]float64, len(t.h.Dims)) // by index: the size of the table readFrom
	for k, scope := range t.h.Edges {
		size := t.size(k)
		for _, i := range scope {
			t.isUsed[i] = true
			if t.marginals && t.h.Dims[i] > 1 && (t.readFrom[i] == noTable || size < smallest[i]) {
				t.readFrom[i], smallest[i] = k, size
			}
		}
	}

	isNeeded := make([]bool, len(t.h.Edges)) // by table of the expression
	copy(isNeeded, t.wanted)
	for _, k := range t.readFrom {
		if k != noTable {
			isNeeded[k] = true
		}
	}
	t.isNeeded = contractionorder.MarkOutputs(isNeeded, t.steps) // adds the outputs of steps with a needed input
}

// scope returns the indices of a table.
func (t *tape) scope(table int) []int {
	if table >= len(t.h.Edges) {
		return t.steps[table-len(t.h.Edges)].Out
	}
	return t.h.Edges[table]
}

// size returns the number of entries of a table.
func (t *tape) size(table int) float64 {
	size := 1.0
	for _, i := range t.scope(table) {
		size *= float64(t.h.Dims[i])
	}
	return size
}

// strideOf returns the distance between the entries of neighbouring values of an index in a table over scope, whose last index varies
// fastest: the product of the dimensions of the indices behind it. scope has the index.
func strideOf(dims, scope []int, index int) int {
	stride := 1
	for a := len(scope) - 1; scope[a] != index; a-- {
		stride *= dims[scope[a]]
	}
	return stride
}

// checkAddressable returns an error if a table has 2^31 entries or more, whose offsets are beyond int32.
func (t *tape) checkAddressable() error {
	for table := range t.isNeeded {
		if size := t.size(table); size >= 1<<31 {
			return fault.New(fault.OverBudget, "%w: a table of %.3g entries, fewer than 2^31 are allowed", sumproduct.ErrOverBudget, size)
		}
	}
	return nil
}

// PlanMarginals prices Marginals as contractionorder.EvaluateOrder prices Contract: the flops of both passes, and the peak of the
// tables and derivatives that live together, 8 bytes an entry, with the lists of offsets of large steps. The only error is the context's.
func PlanMarginals(ctx context.Context, h contractionorder.Hypergraph, order []int) (query.Cost, error) {
	return planBothPasses(ctx, h, order, goals{marginals: true})
}

// PlanDerivatives prices Differentiate, except for its result. The only error is the context's.
func PlanDerivatives(
	ctx context.Context, h contractionorder.Hypergraph, order []int, wanted []bool, marginals bool,
) (query.Cost, error) {
	return planBothPasses(ctx, h, order, goals{marginals, wanted})
}

// hopeless is log2 of the entries of a table from which the steps of an order are not listed.
const hopeless = 1000

// planBothPasses prices a contraction with a backward pass. If a table is hopelessly large, the price is that of the forward pass.
func planBothPasses(ctx context.Context, h contractionorder.Hypergraph, order []int, g goals) (query.Cost, error) {
	t, plan, err := newTape(ctx, h, order, g, math.Inf(1))
	if err != nil || t == nil {
		return plan, err
	}
	return t.planBothPasses(), nil
}

// backwardFlops returns the multiplications and additions of the backward pass over a step of K inputs. Derivatives are computed by m of
// the inputs, those that are needed (isNeeded). For each term of the step's sum there are K−1 products of the first inputs, K−2 of the last
// ones, m−1 that join both, and m additions: 2K+2m−4.
func (t *tape) backwardFlops(s *contractionorder.Step) float64 {
	needed := 0
	for _, k := range s.In {
		if t.isNeeded[k] {
			needed++
		}
	}
	return max(1, float64(2*len(s.In)+2*needed-4)) * s.FullSize
}

// planBothPasses returns the cost of the forward and the backward pass. A table lives until the backward pass has gone through the step
// that made it. The derivative by a table lives, in the backward pass, from the step that consumed the table to the step that made it.
// Tables have 8 bytes an entry.
func (t *tape) planBothPasses() query.Cost {
	// Forward: nothing is released.
	var m contractionorder.Meter
	m.Start(t.h)
	for _, s := range t.steps {
		m.Begin(t.h, s)
	}
	plan := m.Plan()

	// Backward, from the derivatives by tables of one entry.
	liveEntries := plan.Bytes / 8 // of tables and derivatives
	for n, s := range t.steps {
		if len(s.Out) == 0 && t.isNeeded[len(t.h.Edges)+n] {
			liveEntries++
		}
	}
	plan.Bytes = max(plan.Bytes, 8*liveEntries)
	for n := len(t.steps) - 1; n >= 0; n-- {
		s, out := t.steps[n], len(t.h.Edges)+n
		liveEntries -= s.Size // the output itself
		if !t.isNeeded[out] {
			continue
		}
		plan.Flops += t.backwardFlops(s)
		leafEntries := 0.0 // of derivatives by tables of the expression, which are read at once
		for _, k := range s.In {
			if !t.isNeeded[k] {
				continue
			}
			liveEntries += t.size(k)
			if isLeaf := k < len(t.h.Edges); isLeaf {
				leafEntries += t.size(k)
				for range t.marginalsOf(k) {
					plan.Flops += 2 * t.size(k) // a product and a sum for each entry
				}
			}
		}
		plan.Bytes = max(plan.Bytes, 8*liveEntries)
		liveEntries -= leafEntries + s.Size // s.Size is now the derivative by the output
	}
	plan.Bytes += compiled.Bytes(t.h.Dims, t.steps)
	plan.Flops, plan.Bytes = min(plan.Flops, maxPlan), min(plan.Bytes, maxPlan)
	return plan
}

// marginalsOf returns the number of marginals that are read from a table of the expression.
func (t *tape) marginalsOf(table int) (n int) {
	for _, i := range t.h.Edges[table] {
		if t.readFrom[i] == table {
			n++
		}
	}
	return n
}

// maxPlan stands for figures beyond float64, which JSON could not hold.
const maxPlan = 0x1p1023
