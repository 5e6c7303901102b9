package main

import (
	"testing"
	"time"
)

// TestDeadlinesOfRequests: a budget is a time limit where no deadline is given, a bond is none, and
// a deadline below a millisecond is one.
func TestDeadlinesOfRequests(t *testing.T) {
	second := time.Second
	long := 48 * time.Hour
	for name, c := range map[string]struct {
		flags requestFlags
		want  int64
	}{
		"none":                  {requestFlags{}, 0},
		"deadline":              {requestFlags{Deadline: 1500 * time.Millisecond}, 1500},
		"below a millisecond":   {requestFlags{Deadline: time.Nanosecond}, 1},
		"budget":                {requestFlags{Budget: &second}, 1200},
		"deadline before":       {requestFlags{Budget: &second, Deadline: 500 * time.Millisecond}, 500},
		"deadline after":        {requestFlags{Budget: &second, Deadline: time.Minute}, 60000},
		"budget and a bond":     {requestFlags{Budget: &second, Bond: 8}, 0},
		"budget of two days":    {requestFlags{Budget: &long}, 0},
		"a little over a milli": {requestFlags{Deadline: time.Millisecond + 1}, 2},
	} {
		if got := milliseconds(c.flags.deadline()); got != c.want {
			t.Errorf("%s: %d ms, want %d", name, got, c.want)
		}
	}
}
