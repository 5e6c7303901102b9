package region

// The budget of planning.

import (
	"context"

	"github.com/basetensor/basetensor/pkg/fault"
)

// moves counts down what planning may still do, some nanoseconds each, and looks at the context now
// and then.
type moves struct {
	ctx      context.Context
	left, of int64
	looked   int64 // what was left then
}

func newMoves(ctx context.Context, n int64) *moves {
	return &moves{ctx: ctx, left: n, of: n, looked: n + lookEvery}
}

const lookEvery = 1 << 20

// take takes n moves off the budget, if there is one: who spends next hears of it.
func (m *moves) take(n int) {
	if m != nil {
		m.left -= int64(n)
	}
}

// spend takes n moves off the budget: fault.OverBudget when none is left, and the context's error,
// looked at now and then.
func (m *moves) spend(n int) error {
	m.left -= int64(n)
	if m.left < 0 {
		return fault.New(fault.OverBudget, "region: the family takes more than %d moves to plan", m.of)
	}
	if m.looked-m.left >= lookEvery {
		m.looked = m.left
		return m.ctx.Err()
	}
	return nil
}

// used is how many moves were spent.
func (m *moves) used() int64 { return m.of - m.left }
