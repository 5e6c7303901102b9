package console

import (
	"context"
	"time"
)

// Patience bounds the time that a step may take to end on request before the command goes on without it.
const Patience = 150 * time.Millisecond

// Promptly runs a step of a command. When ctx ends the step has Patience to end, too; then it is
// left behind, in a process that is about to end, and the error is the context's.
func Promptly[T any](ctx context.Context, step func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := step()
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
	}

	select {
	case o := <-done:
		return o.value, o.err
	case <-time.After(Patience):
		var none T
		return none, ctx.Err()
	}
}
