package pairwise

// Exact sums of any number of slices.

import (
	"github.com/basetensor/basetensor/pkg/scaled"
)

// accumulator adds numbers in a fixed tree of exact sums. Level 0 has the numbers themselves. When a level has batch numbers, their sum
// goes to the next level. With at most batch terms the total is rounded once, and once more for each further level.
type accumulator struct {
	levels [][]scaled.Number // by level: the numbers that are not added yet
}

// batch is the number of numbers added at a time.
const batch = 1 << 16

// add adds a number to the total. Level 0 holds the numbers that are not added up yet. When a level has batch numbers, it is emptied, and
// the sum of its numbers is added to the next level in the same way.
func (a *accumulator) add(x scaled.Number) {
	for l := 0; ; l++ {
		if l == len(a.levels) {
			a.levels = append(a.levels, nil)
		}
		a.levels[l] = append(a.levels[l], x)
		if isFull := len(a.levels[l]) == batch; !isFull {
			return
		}
		x = scaled.Sum(a.levels[l])
		a.levels[l] = a.levels[l][:0]
	}
}

// total returns the sum of all numbers so far.
func (a *accumulator) total() scaled.Number {
	var all []scaled.Number
	for _, l := range a.levels {
		all = append(all, l...)
	}
	return scaled.Sum(all)
}
