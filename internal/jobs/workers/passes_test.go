package workers

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/fault"
)

// The sweeper ends a job for errors of the job itself, and for no passing trouble.
func TestWhatPasses(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{hop.ErrLater, true},
		{fmt.Errorf("sum: %w", hop.ErrLater), true},
		{fault.New(fault.Infrastructure, "no server"), true},
		{context.DeadlineExceeded, true},
		{fault.New(fault.Infrastructure, "plan: %w", bus.ErrNotFound), false},
		{fault.New(fault.Unsupported, "%w", ErrNumericKinds), false},
		{errors.New("a fault of ours"), false},
	} {
		if got := passes(c.err); got != c.want {
			t.Errorf("%v: %v, want %v", c.err, got, c.want)
		}
	}
}
