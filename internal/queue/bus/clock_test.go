package bus_test

import (
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/embedded"
)

// A process whose clock is wrong knows the server's time.
func TestTheServersTime(t *testing.T) {
	ctx, b := open(t, embedded.Options{})
	defer func() { bus.Clock = time.Now }()
	for _, wrong := range []time.Duration{-25 * time.Hour, -time.Second, 0, 3 * time.Minute, 25 * time.Hour} {
		bus.Clock = func() time.Time { return time.Now().Add(wrong) }
		before := time.Now()
		must(t, b.Conn.Synchronize(ctx))
		took := time.Since(before)

		// It is off by as long as the question and its answer took, at most.
		if off := time.Until(b.Conn.Now()); off.Abs() > took {
			t.Errorf("with a clock that is off by %v: %v off, after a question of %v", wrong, off, took)
		}
		if age := b.Conn.Since(time.Now().Add(-time.Hour)) - time.Hour; age.Abs() > took {
			t.Errorf("with a clock that is off by %v: an age is off by %v", wrong, age)
		}
	}
}
