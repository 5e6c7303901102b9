package preprocess

import (
	"slices"
	"testing"
)

// TestConsequences: what one index's values have in common is forgotten before the next index.
func TestConsequences(t *testing.T) {
	d := &domains{alive: [][]bool{{true, true}, {true, true}, {false, true}}, sizes: []int{2, 2, 1}}
	var c consequences
	for range 2 {
		c.begin(3)
		c.add(position{2, 0}, true)
		c.narrow(d, 0)
		c.add(position{2, 0}, false)
		c.narrow(d, 1)
		if !slices.Equal(c.order, []position{{2, 0}}) || c.removals[2][0] != 2 || !slices.Equal(c.followers, []int{2}) ||
			!slices.Equal(c.only[2], []int{1, 1}) {
			t.Errorf("%+v", c)
		}
		c.end()
	}
	c.add(position{2, 0}, true)
	d.sizes[2] = 2
	if c.narrow(d, 0); len(c.followers) > 0 {
		t.Errorf("an index with two values left follows: %v", c.followers)
	}
}
