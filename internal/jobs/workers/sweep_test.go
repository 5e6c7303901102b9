package workers

import (
	"testing"

	"github.com/basetensor/basetensor/internal/queue/message"
)

// A job is summed by a sweeper if all partials of one cut are stored, whichever others are.
func TestCompleteCut(t *testing.T) {
	type chunk struct{ n, k int }
	for name, c := range map[string]struct {
		stored []chunk
		n      int // 0: no cut is complete
	}{
		"none":                            {nil, 0},
		"one of one":                      {[]chunk{{1, 0}}, 1},
		"one is missing":                  {[]chunk{{3, 0}, {3, 2}}, 0},
		"all of three":                    {[]chunk{{3, 0}, {3, 1}, {3, 2}}, 3},
		"two cuts, as many as the larger": {[]chunk{{3, 0}, {2, 1}, {3, 2}}, 0},
		"two cuts, the smaller one whole": {[]chunk{{2, 0}, {4, 0}, {4, 3}, {2, 1}}, 2},
	} {
		subjects := map[string]uint64{"partial.of.nothing": 1}
		for _, s := range c.stored {
			subjects[message.PartialSubject(3, "a", s.n, s.k)] = 1
		}
		filter, n, ok := completeCut(subjects)
		if ok != (c.n > 0) || n != c.n {
			t.Errorf("%s: %d chunks, %v, want %d", name, n, ok, c.n)
		}
		if text := message.PartialSubject(3, "a", n, 0); ok && filter != text[:len(text)-1]+"*" {
			t.Errorf("%s: the filter is %s", name, filter)
		}
	}
}
