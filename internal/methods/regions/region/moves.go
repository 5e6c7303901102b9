package region

// The budget of planning.

import (
	"context"
	"errors"

	"github.com/basetensor/basetensor/pkg/fault"
)

// moves counts down the remaining moves of planning, some nanoseconds each, and looks at the
// context now and then.
type moves struct {
	ctx      context.Context
	left, of int64
	looked   int64 // the rest at the last look
}

func newMoves(ctx context.Context, n int64) *moves {
	return &moves{ctx: ctx, left: n, of: n, looked: n + lookEvery}
}

const lookEvery = 1 << 20

// ErrMoves ends the planning of a family that takes too many moves: larger sizes of its kind take more.
var ErrMoves = errors.New("moves to plan")

// take takes n moves off the budget, if there is one: the next to spend sees the end.
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
		return fault.New(fault.OverBudget, "region: the family takes more than %d %w", m.of, ErrMoves)
	}
	if m.looked-m.left >= lookEvery {
		m.looked = m.left
		return m.ctx.Err()
	}
	return nil
}

// used is the number of moves spent.
func (m *moves) used() int64 { return m.of - m.left }
