// Package pace lets long loops look at their context for cancellation, so rarely that it costs nothing.
package pace

import (
	"context"
)

// every is the number of operations between two looks: well below a millisecond.
const every = 1 << 14

// Pace counts the operations of a loop and looks at a context once in 2^14 of them. A nil *Pace has no context and never ends.
// It serves one goroutine.
type Pace struct {
	ctx   context.Context
	give  func() // is called before every look; may be nil
	count int64  // operations since the last look
	err   error
}

// New returns a pace that has not looked at ctx yet.
func New(ctx context.Context) *Pace {
	p := &Pace{ctx: ctx, count: every}
	if _, gives := ctx.(*giving); !gives {
		p.give, _ = ctx.Value(key{}).(func())
	}
	return p
}

// Over counts n operations, n ≥ 0, and reports whether the context was seen to have ended. The first call looks at it, and once it
// has ended every call says so.
func (p *Pace) Over(n int64) bool {
	if p == nil {
		return false
	}
	if p.err != nil {
		return true
	}
	if p.count += n; p.count < every {
		return false
	}
	p.count = 0
	if p.give != nil {
		p.give()
	}
	p.err = p.ctx.Err()
	return p.err != nil
}

// Err returns the error of the context as Over saw it, nil before that.
func (p *Pace) Err() error {
	if p == nil {
		return nil
	}
	return p.err
}
