package main

import (
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/query"
)

// TestDeadlinesOfRequests: a budget is a time limit where no deadline is given, a bond is none, and
// a deadline below a millisecond is one.
func TestDeadlinesOfRequests(t *testing.T) {
	second := time.Second
	long := 48 * time.Hour
	for name, c := range map[string]struct {
		flags workFlags
		want  int64
	}{
		"none":                  {workFlags{}, 0},
		"deadline":              {workFlags{Deadline: 1500 * time.Millisecond}, 1500},
		"below a millisecond":   {workFlags{Deadline: time.Nanosecond}, 1},
		"budget":                {workFlags{Budget: &second}, 1200},
		"deadline before":       {workFlags{Budget: &second, Deadline: 500 * time.Millisecond}, 500},
		"deadline after":        {workFlags{Budget: &second, Deadline: time.Minute}, 60000},
		"budget and a bond":     {workFlags{Budget: &second, set: query.Settings{Bond: 8}}, 0},
		"budget of two days":    {workFlags{Budget: &long}, 0},
		"a little over a milli": {workFlags{Deadline: time.Millisecond + 1}, 2},
	} {
		if got := milliseconds(c.flags.deadline()); got != c.want {
			t.Errorf("%s: %d ms, want %d", name, got, c.want)
		}
	}
}
