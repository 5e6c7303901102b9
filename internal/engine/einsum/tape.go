package einsum

// The tape: the steps of an order, the tables that the way back leads to, and the cost of both ways.

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

// goals are the results of a contraction beside its value.
type goals struct {
	marginals bool
	wanted    []bool // by table of the expression: its derivative is; nil: none
}

// back reports whether there is a way back.
func (g goals) back() bool { return g.marginals || g.wanted != nil }

// wants reports whether the derivative by a table of the expression is wanted.
func (g goals) wants(t int) bool { return g.wanted != nil && g.wanted[t] }

// tape is an elimination before it is done. Tables are numbered as in contractionorder.Step: the expression's first, then the
// outputs of the steps.
type tape struct {
	goals
	h      contractionorder.Hypergraph
	steps  []*contractionorder.Step
	reader []int  // by index: the table of the expression that its marginal is read from, if it is
	need   []bool // by table: its derivative is needed, because it is wanted, an index is read there, or for one of its inputs
	used   []bool // by index: some table has it
}

// newTape lists the steps of an order and chooses, for every index, the smallest table of the expression that has it. The cost is that of
// contractionorder.EvaluateOrder. Where it takes more than memory bytes, or has a hopeless table, there is no tape: nobody computes that.
func newTape(ctx context.Context, h contractionorder.Hypergraph, order []int, g goals, memory float64) (*tape, query.Cost, error) {
	t := &tape{goals: g, h: h, reader: slices.Repeat([]int{noTable}, len(h.Dims)), used: make([]bool, len(h.Dims))}
	var m contractionorder.Meter
	m.Start(h)
	fits := func() bool { return m.Plan().Bytes <= memory && m.Plan().Log2Table < hopeless }
	if err := contractionorder.Walk(ctx, h, order, func(s *contractionorder.Step) bool {
		m.Begin(h, s)
		m.End(s)
		t.steps = append(t.steps, s)
		return fits()
	}); err != nil {
		return nil, query.Cost{}, err
	}
	if !fits() {
		cost, err := contractionorder.EvaluateOrder(ctx, h, order)
		return nil, cost, err
	}
	least := make([]float64, len(h.Dims))
	for k, scope := range h.Edges {
		size := t.size(k)
		for _, i := range scope {
			t.used[i] = true
			if g.marginals && h.Dims[i] > 1 && (t.reader[i] == noTable || size < least[i]) {
				t.reader[i], least[i] = k, size
			}
		}
	}
	need := make([]bool, len(h.Edges))
	copy(need, g.wanted)
	for _, k := range t.reader {
		if k != noTable {
			need[k] = true
		}
	}
	t.need = contractionorder.Reach(need, t.steps)
	return t, m.Plan(), nil
}

// scope returns the indices of a table.
func (t *tape) scope(table int) []int {
	if table >= len(t.h.Edges) {
		return t.steps[table-len(t.h.Edges)].Out
	}
	return t.h.Edges[table]
}

// size returns the entries of a table.
func (t *tape) size(table int) float64 {
	size := 1.0
	for _, i := range t.scope(table) {
		size *= float64(t.h.Dims[i])
	}
	return size
}

// inner is the number of entries of a table over a scope between one value of an index and the next.
func inner(dims, scope []int, index int) int {
	inner := 1
	for a := len(scope) - 1; scope[a] != index; a-- {
		inner *= dims[scope[a]]
	}
	return inner
}

// addressable refuses tables of 2^31 entries, whose places are beyond int32.
func (t *tape) addressable() error {
	for table := range t.need {
		if size := t.size(table); size >= 1<<31 {
			return fault.New(fault.OverBudget, "%w: a table of %.3g entries, fewer than 2^31 are allowed", sumproduct.ErrOverBudget, size)
		}
	}
	return nil
}

// PlanMarginals prices Marginals as contractionorder.EvaluateOrder prices Contract: the flops of both passes, and the peak of the
// tables and derivatives that live together, 8 bytes an entry, with the lists of offsets of large steps. The only error is the context's.
func PlanMarginals(ctx context.Context, h contractionorder.Hypergraph, order []int) (query.Cost, error) {
	return planBack(ctx, h, order, goals{marginals: true})
}

// PlanDerivatives prices Differentiate, except for its result. The only error is the context's.
func PlanDerivatives(
	ctx context.Context, h contractionorder.Hypergraph, order []int, wanted []bool, marginals bool,
) (query.Cost, error) {
	return planBack(ctx, h, order, goals{marginals, wanted})
}

// hopeless is log2 of a table beyond which the steps of an order are not listed.
const hopeless = 1000

// planBack prices a contraction with a way back.
func planBack(ctx context.Context, h contractionorder.Hypergraph, order []int, g goals) (query.Cost, error) {
	t, plan, err := newTape(ctx, h, order, g, math.Inf(1))
	if err != nil || t == nil {
		return plan, err
	}
	return t.plan(), nil
}

// backFlops counts the multiplications and additions of the way back over a step of K inputs, m of them needed: per
// entry of its full table K−1 products from the front, K−2 from the back, m−1 that join both, and m additions.
func (t *tape) backFlops(s *contractionorder.Step) float64 {
	needed := 0
	for _, k := range s.In {
		if t.need[k] {
			needed++
		}
	}
	return max(1, float64(2*len(s.In)+2*needed-4)) * s.Full
}

// plan adds the way back to the plan of the way forth. Tables live until the way back has passed the step that made them,
// derivatives from the step that consumed the table to the one that made it.
func (t *tape) plan() query.Cost {
	var m contractionorder.Meter
	m.Start(t.h)
	for _, s := range t.steps {
		m.Begin(t.h, s) // and never End: nothing is released
	}
	plan := m.Plan()
	live := plan.Bytes / 8
	for n, s := range t.steps {
		if len(s.Out) == 0 && t.need[len(t.h.Edges)+n] {
			live++ // a seed
		}
	}
	plan.Bytes = max(plan.Bytes, 8*live)
	for n := len(t.steps) - 1; n >= 0; n-- {
		s, out := t.steps[n], len(t.h.Edges)+n
		live -= s.Size
		if !t.need[out] {
			continue
		}
		plan.Flops += t.backFlops(s)
		leaves := 0.0
		for _, k := range s.In {
			if t.need[k] {
				live += t.size(k)
				if k < len(t.h.Edges) {
					leaves += t.size(k)
					for _, i := range t.h.Edges[k] {
						if t.reader[i] == k {
							plan.Flops += 2 * t.size(k)
						}
					}
				}
			}
		}
		plan.Bytes = max(plan.Bytes, 8*live)
		live -= leaves + s.Size
	}
	plan.Bytes += compiled.Bytes(t.h.Dims, t.steps)
	plan.Flops, plan.Bytes = min(plan.Flops, maxPlan), min(plan.Bytes, maxPlan)
	return plan
}

// maxPlan stands for figures beyond float64, which JSON could not hold.
const maxPlan = 0x1p1023
