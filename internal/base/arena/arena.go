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

	dropped int                        // entries of large buffers dropped since the last garbage collection
	small   [bits.UintSize][][]float64 // unused buffers of up to smallBuffer entries, by log2 of their capacity
	large   [][]float64                // unused larger buffers, the oldest first
}

// Get returns a buffer of n entries, which may have any values. It uses a kept buffer if one fits. If it makes a large one, it first drops
// kept buffers, the oldest first, until Limit allows it.
func (a *Arena) Get(n int) []float64 {
	a.Live += n
	a.Peak = max(a.Peak, a.Live)
	if n <= smallBuffer {
		return a.getSmall(n)
	}

	// The smallest kept buffer that has room, and at most an eighth too much: more would be memory that nothing uses.
	best := -1
	for i, b := range a.large {
		fits := cap(b) >= n && cap(b)-n <= n/8
		if fits && (best < 0 || cap(b) < cap(a.large[best])) {
			best = i
		}
	}
	if best >= 0 {
		return a.removeLarge(best)[:n]
	}

	for len(a.large) > 0 && a.Held+n > a.Limit {
		oldest := a.removeLarge(0)
		a.Held -= cap(oldest)
		a.dropped += cap(oldest)
	}
	if a.dropped >= manyDropped {
		a.dropped = 0
		runtime.GC() // dropped buffers are garbage until the collector has found them
	}
	b := make([]float64, n)
	a.Held += cap(b)
	return b
}

// getSmall returns a kept buffer of n ≤ smallBuffer entries, or a new one whose capacity is n rounded up to a power of two.
func (a *Arena) getSmall(n int) []float64 {
	log2Capacity := bits.Len(uint(max(n, 1) - 1))
	unused := a.small[log2Capacity]
	if len(unused) == 0 {
		return make([]float64, n, 1<<log2Capacity)
	}
	b := unused[len(unused)-1]
	a.small[log2Capacity] = unused[:len(unused)-1]
	return b[:n]
}

// removeLarge takes the buffer at position i out of those that are kept.
func (a *Arena) removeLarge(i int) []float64 {
	b := a.large[i]
	last := len(a.large) - 1
	copy(a.large[i:], a.large[i+1:])
	a.large[last] = nil
	a.large = a.large[:last]
	return b
}

// Put gives a buffer from Get back, which keeps it for the next ones.
func (a *Arena) Put(b []float64) {
	a.Live -= len(b)
	if cap(b) <= smallBuffer {
		log2Capacity := bits.Len(uint(cap(b) - 1)) // exact: getSmall makes capacities that are powers of two
		a.small[log2Capacity] = append(a.small[log2Capacity], b)
		return
	}
	a.large = append(a.large, b)
}
