// Package pace lets long loops look at their context for cancellation, so rarely that it costs nothing.
package pace

import (
	"context"
)

// checkInterval is the number of operations between two checks of the context: well below a millisecond.
const checkInterval = 1 << 14

// Pace counts the operations of a loop and checks a context once in 2^14 of them. A nil *Pace has no context and never ends.
// It serves one goroutine.
type Pace struct {
	ctx     context.Context
	giveWay func() // is called before every check; may be nil
	count   int64  // operations since the last check
	err     error  // of the context at the last check
}

// New returns a pace that has not checked ctx yet, so that its first Over does. If ctx was derived from one of WithGiveWay, checks give
// way.
func New(ctx context.Context) *Pace {
	p := &Pace{ctx: ctx, count: checkInterval}
	if _, yields := ctx.(*yieldingContext); !yields { // such a context gives way in Err itself
		p.giveWay, _ = ctx.Value(giveWayKey{}).(func())
	}
	return p
}

// Over counts n ≥ 0 operations, and reports whether the context had ended at the last check. It checks the context in the first call, and
// then once in 2^14 operations. Once the context has ended every call returns true.
func (p *Pace) Over(n int64) bool {
	if p == nil {
		return false
	}
	if p.err != nil {
		return true
	}
	if p.count += n; p.count < checkInterval {
		return false
	}
	p.count = 0
	if p.giveWay != nil {
		p.giveWay()
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
