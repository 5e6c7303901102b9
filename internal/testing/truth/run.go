package truth

// Running one case under a watchdog.

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/basetensor/basetensor/pkg/query"
)

// Outcome is the result of a case.
type Outcome struct {
	Results []query.Result
	Err     error  // of the whole request
	Panic   string // with its stack
	Hung    bool   // the call had not returned Grace after its context ended
	Took    time.Duration
}

// Limits bound one case.
type Limits struct {
	Timeout time.Duration // of the context of a case that names none
	Grace   time.Duration // from the end of the context to the return of the call
}

// DefaultLimits leave a loaded machine room; a case takes milliseconds.
var DefaultLimits = Limits{Timeout: 20 * time.Second, Grace: 10 * time.Second}

// Run answers a case. It returns also where the call does not: the goroutine is then lost.
func Run(c *Case, l Limits) Outcome {
	return watch(l, c.Timeout, func(ctx context.Context) ([]query.Result, error) { return answer(ctx, c) })
}

// watch runs a call with a time limit, and notes its return, a panic, or that it hangs beyond the
// grace.
func watch(l Limits, timeout time.Duration, call func(context.Context) ([]query.Result, error)) Outcome {
	if timeout == 0 {
		timeout = l.Timeout
	}
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	start, done := time.Now(), make(chan Outcome, 1)
	go func() {
		var o Outcome
		defer func() {
			if p := recover(); p != nil {
				o.Panic = fmt.Sprintf("%v\n%s", p, debug.Stack())
			}
			o.Took = time.Since(start)
			done <- o
		}()
		o.Results, o.Err = call(ctx)
	}()
	select {
	case o := <-done:
		return o
	case <-ctx.Done():
	}

	select {
	case o := <-done:
		return o
	case <-time.After(l.Grace):
		return Outcome{Hung: true, Took: time.Since(start)}
	}
}

// isFormat reports whether err is of a format and not of the inference.
func isFormat(err error) bool {
	var f formatError
	return errors.As(err, &f)
}
