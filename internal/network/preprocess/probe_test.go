package preprocess

import (
	"slices"
	"testing"
)

// TestConsequences: what one index's values have in common is forgotten before the next index.
func TestConsequences(t *testing.T) {
	d := &domains{isAlive: [][]bool{{true, true}, {true, true}, {false, true}}, aliveCount: []int{2, 2, 1}}
	var c consequences
	for range 2 {
		c.reserve(3)
		c.addRemoval(position{2, 0}, true)
		c.updateFollowers(d, 0)
		c.addRemoval(position{2, 0}, false)
		c.updateFollowers(d, 1)
		if !slices.Equal(c.removed, []position{{2, 0}}) || c.removalCount[2][0] != 2 || !slices.Equal(c.followers, []int{2}) ||
			!slices.Equal(c.followerValue[2], []int{1, 1}) {
			t.Errorf("%+v", c)
		}
		c.reset()
	}
	c.addRemoval(position{2, 0}, true)
	d.aliveCount[2] = 2
	if c.updateFollowers(d, 0); len(c.followers) > 0 {
		t.Errorf("an index with two values left follows: %v", c.followers)
	}
}
