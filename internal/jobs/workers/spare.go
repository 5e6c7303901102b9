package workers

import (
	"runtime/debug"
	"sync"
)

// spareBytes is the size per stage of a heap allocation that is never written to. A worker of small
// models lives in a few megabytes, and the garbage collector, which runs whenever the heap has
// doubled, would run ten times a second; that makes most of the tail of the latencies. With the
// spare heap it runs after that much more garbage. A process has one allocation, however often Run
// is called.
const spareBytes = 64 << 20

// spare is the allocation of this process, kept while anybody uses it.
var spare struct {
	mu    sync.Mutex
	users int
	heap  []byte
}

// SpareHeap keeps a spare heap for a number of stages until the function it returns is called. With
// a memory limit (GOMEMLIMIT) below 32 times its size there is none.
func SpareHeap(stages int) (free func()) {
	spare.mu.Lock()
	defer spare.mu.Unlock()

	spare.users++
	size := stages * spareBytes
	if len(spare.heap) < size && debug.SetMemoryLimit(-1) >= int64(32*size) {
		spare.heap = make([]byte, size)
	}

	return func() {
		spare.mu.Lock()
		defer spare.mu.Unlock()
		if spare.users--; spare.users == 0 {
			spare.heap = nil
		}
	}
}
