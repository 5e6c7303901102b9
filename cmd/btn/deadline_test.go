package main

import (
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
)

// TestDeadlineCountsFromTheBeginning: the time of reading is taken off, in steps, so that plans are found again.
func TestDeadlineCountsFromTheBeginning(t *testing.T) {
	r := &workFlags{}
	if left, err := r.remaining(time.Now().Add(-time.Hour)); left != 0 || err != nil {
		t.Errorf("no deadline: %v, %v", left, err)
	}
	r.Deadline = 16 * time.Hour
	for _, c := range []struct{ gone, want time.Duration }{
		{time.Minute, 15 * time.Hour},
		{59 * time.Minute, 15 * time.Hour},
		{5*time.Hour + time.Minute, 10 * time.Hour},
	} {
		if left, err := r.remaining(time.Now().Add(-c.gone)); left != c.want || err != nil {
			t.Errorf("after %v: %v, %v", c.gone, left, err)
		}
	}
	if left, err := r.remaining(time.Now().Add(-15*time.Hour - 30*time.Minute)); err != nil || left <= 0 ||
		left > 30*time.Minute {
		t.Errorf("at the end: %v, %v", left, err)
	}
	if _, err := r.remaining(time.Now().Add(-16 * time.Hour)); fault.CodeOf(err) != fault.Deadline {
		t.Errorf("after the end: %v", err)
	}
	budget := 5 * time.Hour
	r = &workFlags{Budget: &budget}
	// A late beginning counts sixteen times, waiting for a processor as long as it was: up to twice the budget.
	for _, c := range []struct{ gone, used, want time.Duration }{
		{time.Minute, time.Minute, 6 * time.Hour}, {time.Minute, 2 * time.Minute, 6 * time.Hour}, {time.Minute, 0, 6 * time.Hour},
		{30 * time.Minute, 30 * time.Minute, 8*time.Hour - startsFor*usualStart}, {7 * time.Hour, 7 * time.Hour, 10 * time.Hour},
		{16 * time.Minute, 10 * time.Minute, 8 * time.Hour}, {16 * time.Minute, time.Minute, 10 * time.Hour},
	} {
		if end := r.jobEnd(c.gone, c.used); end != c.want {
			t.Errorf("after %v, with %v of a processor: until %v, want %v", c.gone, c.used, end, c.want)
		}
	}
	if left, err := r.remaining(time.Now().Add(-10 * time.Hour)); err != nil || left < leastDeadline {
		t.Errorf("twice a budget is gone: %v, %v", left, err)
	}
	// A first value takes longer for a large model, and on a busy machine; twice a budget has room for the end of the command then.
	r.firstValueTime = time.Second
	for _, c := range []struct {
		slow float64
		want time.Duration
	}{{1, 2 * time.Second}, {2, 10*time.Hour + 750*time.Millisecond}} {
		if got := r.leastTime(c.slow); got != c.want {
			t.Errorf("slowness %v: %v, want %v", c.slow, got, c.want)
		}
	}
	budget = time.Millisecond
	if got := r.leastTime(100); got != 5*time.Second {
		t.Errorf("a small budget on a very busy machine: %v", got)
	}
	if d := r.deadline(); d != time.Second {
		t.Errorf("a budget that is over before the command has started: %v", d)
	}
}
