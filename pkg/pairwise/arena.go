package pairwise

// Buffers, used again and again within the memory that the plan names.

import (
	"math/bits"
	"runtime"
)

const (
	smallBuffer = 1 << 12 // entries up to which buffers are rounded up to powers of two and kept by class
	manyDropped = 1 << 25 // entries of large buffers given up, 256 MiB, after which they are collected before more is taken
)

// arena keeps large buffers for the next table as long as they and the live ones stay within limit.
type arena struct {
	limit   int // entries that live and kept buffers may have together
	live    int // entries in use
	peak    int // most of them
	held    int // entries of live and kept large buffers
	dropped int // entries given up since the last collection
	small   [16][][]float64
	large   [][]float64
}

// get returns n entries of any content.
func (a *arena) get(n int) []float64 {
	a.live += n
	a.peak = max(a.peak, a.live)
	if n <= smallBuffer {
		class := bits.Len(uint(max(n, 1) - 1))
		if l := len(a.small[class]); l > 0 {
			b := a.small[class][l-1]
			a.small[class] = a.small[class][:l-1]
			return b[:n]
		}
		return make([]float64, n, 1<<class)
	}
	best := -1
	for i, b := range a.large {
		if cap(b) >= n && cap(b)-n <= n/8 && (best < 0 || cap(b) < cap(a.large[best])) {
			best = i
		}
	}
	if best >= 0 {
		return a.take(best)[:n]
	}
	for len(a.large) > 0 && a.held+n > a.limit {
		b := a.take(0) // the oldest
		a.held -= cap(b)
		a.dropped += cap(b)
	}
	if a.dropped >= manyDropped {
		a.dropped = 0
		runtime.GC()
	}
	a.held += n
	return make([]float64, n)
}

func (a *arena) take(i int) []float64 {
	b := a.large[i]
	last := len(a.large) - 1
	copy(a.large[i:], a.large[i+1:])
	a.large[last] = nil
	a.large = a.large[:last]
	return b
}

// put takes back a buffer from get.
func (a *arena) put(b []float64) {
	a.live -= len(b)
	if cap(b) <= smallBuffer {
		class := bits.Len(uint(cap(b) - 1))
		a.small[class] = append(a.small[class], b)
		return
	}
	a.large = append(a.large, b)
}
