package stage

import (
	"testing"
	"time"
)

// TestPlanningLeavesTimeForTheFirstEstimate: planning of large networks ends earlier, or does not begin.
func TestPlanningLeavesTimeForTheFirstEstimate(t *testing.T) {
	for _, c := range []struct {
		deadline time.Duration
		tables   int
		want     time.Duration
	}{
		{2400 * time.Millisecond, 100, 1200 * time.Millisecond},
		{2400 * time.Millisecond, 24_000, 1200 * time.Millisecond},
		{2400 * time.Millisecond, 90_000, 600 * time.Millisecond},
		{2400 * time.Millisecond, 150_000, -600 * time.Millisecond},
		{30 * time.Second, 150_000, 15 * time.Second},
	} {
		if got := PlanningTime(c.deadline, c.tables); got != c.want {
			t.Errorf("%v, %d tables: %v, want %v", c.deadline, c.tables, got, c.want)
		}
	}
}
