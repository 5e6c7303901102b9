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

// Outcome is what the product did with a case.
type Outcome struct {
	Results []query.Result // one for each query
	Err     error          // of the whole request
	Panic   string         // the value of a panic and its stack; empty: none
	Hung    bool           // the call did not return within Limits.Grace after its context ended
	Took    time.Duration
}

// Limits bound one case.
type Limits struct {
	Timeout time.Duration // of the context of a case that names none
	Grace   time.Duration // from the end of the context to the return of the call
}

// DefaultLimits are ample for a loaded machine: a case takes milliseconds.
var DefaultLimits = Limits{Timeout: 20 * time.Second, Grace: 10 * time.Second}

// Run answers a case and returns the outcome. If the call hangs, it returns as well, and the goroutine of the call is lost.
func Run(c *Case, l Limits) Outcome {
	return watch(l, c.Timeout, func(ctx context.Context) ([]query.Result, error) { return answer(ctx, c) })
}

// watch runs a call in a goroutine with a context of this timeout (that of the limits if it is 0). It returns the results, the error or the
// panic of the call, or says that it hangs if it does not return within the grace period after the timeout.
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

// isFormatError reports whether err is of writing or reading a format, and not of the inference.
func isFormatError(err error) bool {
	var f formatError
	return errors.As(err, &f)
}
