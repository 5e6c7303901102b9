package console

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
)

// TestPromptlyLeavesBehindWhatDoesNotEnd: a step that looks at its context is waited for, one that
// does not is not.
func TestPromptlyLeavesBehindWhatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // Patience is over only where nothing else can go on
		if v, err := RunPromptly(t.Context(), func() (int, error) { return 3, nil }); v != 3 || err != nil {
			t.Errorf("%d, %v", v, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		v, err := RunPromptly(ctx, func() (int, error) {
			cancel()
			<-ctx.Done()
			return 4, nil
		})
		if v != 4 || err != nil {
			t.Errorf("a step that ends: %d, %v", v, err)
		}
		never := make(chan bool)
		defer close(never)
		if v, err := RunPromptly(ctx, func() (int, error) {
			<-never
			return 5, nil
		}); v != 0 || !errors.Is(err, context.Canceled) {
			t.Errorf("a step that does not end: %d, %v", v, err)
		}
	})
}
