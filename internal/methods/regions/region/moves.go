package region

// The budget of planning.

import (
	"context"
	"errors"

	"github.com/basetensor/basetensor/pkg/fault"
)

// moves is the budget of planning. A move is work of some nanoseconds.
type moves struct {
	ctx              context.Context
	remaining, total int64
	checked          int64 // the moves that remained when the context was looked at for the last time
}

// newMoves returns a budget of n moves. The first spend looks at the context.
func newMoves(ctx context.Context, n int64) *moves {
	return &moves{ctx: ctx, remaining: n, total: n, checked: n + checkEvery}
}

// checkEvery is the number of moves after which spend looks at the context again.
const checkEvery = 1 << 20

// ErrMoves ends the planning of a family that takes too many moves. Larger sizes of the same kind take more.
var ErrMoves = errors.New("moves to plan")

// deduct subtracts n moves from the budget. If none is left, the next spend returns the error. It does nothing if m is nil.
func (m *moves) deduct(n int) {
	if m != nil {
		m.remaining -= int64(n)
	}
}

// spend subtracts n moves from the budget. Every checkEvery moves it looks at the context.
// Errors: fault.OverBudget with ErrMoves if the budget is overdrawn; the context's.
func (m *moves) spend(n int) error {
	m.remaining -= int64(n)
	if m.remaining < 0 {
		return fault.New(fault.OverBudget, "region: the family takes more than %d %w", m.total, ErrMoves)
	}
	if m.checked-m.remaining >= checkEvery { // checked is what remained when the context was looked at last
		m.checked = m.remaining
		return m.ctx.Err()
	}
	return nil
}

// used returns the number of moves spent.
func (m *moves) used() int64 { return m.total - m.remaining }
