package einsum

// The tape: the steps of a forward pass, their exponents and numbers, and the tables for the way back.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// noTable is the table of a number that is the dimension of an index without tables.
const noTable = -1

// tape is written by a contraction. Tables are numbered as in contractionorder.Step: the expression's first, then the
// outputs of the steps.
type tape struct {
	h       contractionorder.Hypergraph
	steps   []*contractionorder.Step
	reads   [][]int         // by table of the expression: indices whose marginals are read there
	wanted  []bool          // by table of the expression: its derivative is; nil: none
	need    []bool          // by table: its derivative is needed, because an index is read there or in its inputs
	used    []bool          // by index: some table has it
	base    scaled.Number   // the expression's scale times all powers of two
	shift   []int64         // by table: exponent of the power of two it was divided by
	numbers []scaled.Number // the factors of Z that are tables of one entry, in sequence
	tables  []int           // and their tables
}

// newTape lists the steps of an order and chooses, for every index, the smallest table of the expression that has it.
func newTape(ctx context.Context, h contractionorder.Hypergraph, order []int, scale scaled.Number) (*tape, error) {
	t := &tape{h: h, base: scale, reads: make([][]int, len(h.Edges)), used: make([]bool, len(h.Dims))}
	if err := contractionorder.Walk(ctx, h, order, func(s *contractionorder.Step) bool {
		t.steps = append(t.steps, s)
		return true
	}); err != nil {
		return nil, err
	}
	t.shift, t.need = make([]int64, len(h.Edges)+len(t.steps)), make([]bool, len(h.Edges))
	reader, least := slices.Repeat([]int{noTable}, len(h.Dims)), make([]float64, len(h.Dims))
	for k, scope := range h.Edges {
		size := t.size(scope)
		for _, i := range scope {
			t.used[i] = true
			if h.Dims[i] > 1 && (reader[i] == noTable || size < least[i]) {
				reader[i], least[i] = k, size
			}
		}
	}
	for i, k := range reader {
		if k != noTable {
			t.reads[k] = append(t.reads[k], i)
			t.need[k] = true
		}
	}
	t.need = contractionorder.Reach(t.need, t.steps)
	return t, nil
}

// want adds the derivatives by some tables of the expression to the goals of the way back, with the marginals or
// without.
func (t *tape) want(wanted []bool, marginals bool) {
	need := slices.Clone(wanted)
	for k := range t.reads {
		if !marginals {
			t.reads[k] = nil
		}
		need[k] = need[k] || len(t.reads[k]) > 0
	}
	t.wanted, t.need = wanted, contractionorder.Reach(need, t.steps)
}

func (t *tape) size(scope []int) float64 {
	size := 1.0
	for _, i := range scope {
		size *= float64(t.h.Dims[i])
	}
	return size
}

// of returns the entries of table k.
func (t *tape) of(k int) float64 {
	if k < len(t.h.Edges) {
		return t.size(t.h.Edges[k])
	}
	return t.steps[k-len(t.h.Edges)].Size
}

func (t *tape) number(table int, n scaled.Number) {
	t.numbers = append(t.numbers, n)
	t.tables = append(t.tables, table)
}

func (t *tape) power(table int, p scaled.Number) {
	t.base = t.base.Mul(p)
	t.shift[table] = p.Exp
}

// seeds returns ∂Z/∂n for every number n of the tape: the product of all others, without division.
func (t *tape) seeds() []scaled.Number {
	out := make([]scaled.Number, len(t.numbers))
	p := t.base
	for i, n := range t.numbers {
		out[i] = p
		p = p.Mul(n)
	}
	p = scaled.One
	for i := len(out) - 1; i >= 0; i-- {
		out[i] = out[i].Mul(p)
		p = p.Mul(t.numbers[i])
	}
	return out
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
func (t *tape) plan() btn.Cost {
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
				live += t.of(k)
				if k < len(t.h.Edges) {
					leaves += t.of(k)
					plan.Flops += 2 * t.of(k) * float64(len(t.reads[k]))
				}
			}
		}
		plan.Bytes = max(plan.Bytes, 8*live)
		live -= leaves + s.Size
	}
	plan.Flops, plan.Bytes = min(plan.Flops, maxPlan), min(plan.Bytes, maxPlan)
	return plan
}

// maxPlan stands for figures beyond float64, which JSON could not hold.
const maxPlan = 0x1p1023
