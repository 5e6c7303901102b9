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

// TestHeadStart: planning begins before the first value where a sweep takes less than its head start.
func TestHeadStart(t *testing.T) {
	for _, c := range []struct {
		left   time.Duration
		tables int
		want   time.Duration
	}{
		{time.Second, 100, 50 * time.Millisecond},
		{time.Second, 2_400, 50 * time.Millisecond},
		{time.Second, 2_600, 0},
		{time.Minute, 100_000, 3 * time.Second},
		{-time.Second, 1, 0},
	} {
		if got := HeadStart(c.left, c.tables); got != c.want {
			t.Errorf("%v, %d tables: %v, want %v", c.left, c.tables, got, c.want)
		}
	}
}
