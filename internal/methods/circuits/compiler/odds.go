package compiler

// Looks that may be in vain: how often they were not.

import "math/bits"

// oddsTried is the number of tries at a size before their share counts.
// Measured with splitsShare.
const oddsTried = 64

// odds are the numbers of tries and of finds among them, by the logarithm of a component's size.
type odds [32]struct{ tried, found int64 }

// count counts a try.
func (o *odds) count(size int32, found bool) {
	count := &o[bits.Len32(uint32(size))]
	count.tried++
	if found {
		count.found++
	}
}

// poor reports whether less than one of share tries at a size finds anything.
func (o *odds) poor(size int32, share int64) bool {
	count := o[bits.Len32(uint32(size))]
	return count.tried > oddsTried && count.found*share < count.tried
}
