package pairwise

// Exact sums of any number of slices.

import (
	"github.com/basetensor/basetensor/pkg/scaled"
)

// accumulator adds numbers in a fixed tree of exact sums: batch terms at a time, the sums of
// batches alike. With at most batch terms the sum is rounded once, and once more per level beyond
// that.
type accumulator struct {
	level [][]scaled.Number // by level: the sums that wait to be added
}

// batch is the number of numbers added at a time.
const batch = 1 << 16

// add takes a number in.
func (a *accumulator) add(x scaled.Number) {
	for l := 0; ; l++ {
		if l == len(a.level) {
			a.level = append(a.level, nil)
		}
		a.level[l] = append(a.level[l], x)
		if len(a.level[l]) < batch {
			return
		}
		x = scaled.Sum(a.level[l])
		a.level[l] = a.level[l][:0]
	}
}

// total is the sum of all numbers so far.
func (a *accumulator) total() scaled.Number {
	var all []scaled.Number
	for _, l := range a.level {
		all = append(all, l...)
	}
	return scaled.Sum(all)
}
