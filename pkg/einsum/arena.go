package einsum

// Buffers of a contraction, used again and again.

import "math/bits"

// smallBuffer is the size up to which buffers are rounded up to powers of two and kept by class.
const smallBuffer = 1 << 14

// keepLarge is how many larger buffers are kept for the next table; the rest goes to the garbage collector.
const keepLarge = 2

type arena struct {
	small [16][][]float64
	large [][]float64
}

// get returns n entries of any content.
func (a *arena) get(n int) []float64 {
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
		if cap(b) >= n && cap(b) <= 2*n && (best < 0 || cap(b) < cap(a.large[best])) {
			best = i
		}
	}
	if best < 0 {
		return make([]float64, n)
	}
	b := a.large[best]
	a.large = append(a.large[:best], a.large[best+1:]...)
	return b[:n]
}

// put takes back a buffer from get.
func (a *arena) put(b []float64) {
	if cap(b) <= smallBuffer {
		class := bits.Len(uint(cap(b) - 1))
		a.small[class] = append(a.small[class], b)
		return
	}
	a.large = append(a.large, b)
	if len(a.large) > keepLarge { // the oldest goes
		a.large[0] = nil
		a.large = a.large[1:]
	}
}
