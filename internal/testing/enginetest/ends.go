package enginetest

// A context that ends at a look, so that tests of interrupted work need no clock.

import (
	"context"
	"sync/atomic"
)

// EndsAfter is a context that ends with err once it has been looked at so often.
func EndsAfter(looks int, err error) context.Context {
	c := &countdown{Context: context.Background(), err: err}
	c.left.Store(int64(looks))
	return c
}

type countdown struct {
	context.Context
	left atomic.Int64
	err  error
}

func (c *countdown) Err() error {
	if c.left.Add(-1) < 0 {
		return c.err
	}
	return nil
}
