package console

import (
	"context"
	"time"
)

// Patience bounds the time that a step may take to end on request before the command goes on without it.
const Patience = 150 * time.Millisecond

// RunPromptly runs a step of a command and returns its result. If ctx ends, the step gets Patience to end too. After that
// it is left running, as the process is about to end, and the error is the context's.
func RunPromptly[T any](ctx context.Context, step func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	results := make(chan outcome, 1)
	go func() {
		value, err := step()
		results <- outcome{value, err}
	}()

	// Until ctx ends, and then for Patience.
	select {
	case o := <-results:
		return o.value, o.err
	case <-ctx.Done():
	}
	select {
	case o := <-results:
		return o.value, o.err
	case <-time.After(Patience):
		var zero T
		return zero, ctx.Err()
	}
}
