// Package arena keeps the buffers of a contraction for use again and again, within the memory that its plan names.
package arena

import (
	"math/bits"
	"runtime"
)

const (
	smallBuffer = 1 << 14 // entries up to which buffers are rounded up to powers of two and kept by class
	manyDropped = 1 << 25 // entries of large buffers given up, 256 MiB, after which they are collected before more is taken
)

// Arena keeps large buffers for the next table as long as they and the live ones stay within Limit, so that the
// process needs the memory of the plan, without garbage that the collector has not yet found. It is for one
// goroutine.
type Arena struct {
	Limit int // entries that live and kept buffers may have together
	Live  int // entries in use, including those that the caller adds for its own tables
	Peak  int // most of Live
	Held  int // entries of live and kept large buffers

	dropped int // entries given up since the last collection
	small   [bits.UintSize][][]float64
	large   [][]float64
}

// Get returns n entries of any content.
func (a *Arena) Get(n int) []float64 {
	a.Live += n
	a.Peak = max(a.Peak, a.Live)
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
	for len(a.large) > 0 && a.Held+n > a.Limit {
		b := a.take(0) // the oldest
		a.Held -= cap(b)
		a.dropped += cap(b)
	}
	if a.dropped >= manyDropped {
		a.dropped = 0
		runtime.GC()
	}
	b := make([]float64, n)
	a.Held += cap(b)
	return b
}

func (a *Arena) take(i int) []float64 {
	b := a.large[i]
	last := len(a.large) - 1
	copy(a.large[i:], a.large[i+1:])
	a.large[last] = nil
	a.large = a.large[:last]
	return b
}

// Put takes back a buffer from Get.
func (a *Arena) Put(b []float64) {
	a.Live -= len(b)
	if cap(b) <= smallBuffer {
		class := bits.Len(uint(cap(b) - 1))
		a.small[class] = append(a.small[class], b)
		return
	}
	a.large = append(a.large, b)
}
