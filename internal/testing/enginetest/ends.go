package enginetest

// A context that ends after a number of checks, so that tests of interrupted work need no clock.

import (
	"context"
	"sync/atomic"
)

// ContextEndingAfter returns a context whose method Err returns nil for the first checks calls, and err from then on. It has no Done
// channel.
func ContextEndingAfter(checks int, err error) context.Context {
	c := &countdown{Context: context.Background(), err: err}
	c.left.Store(int64(checks))
	return c
}

// countdown is a context whose error is nil while calls of Err are left.
type countdown struct {
	context.Context
	left atomic.Int64
	err  error
}

// Err counts a call, and returns nil while calls are left.
func (c *countdown) Err() error {
	if c.left.Add(-1) < 0 {
		return c.err
	}
	return nil
}
