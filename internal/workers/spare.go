package workers

import (
	"runtime/debug"
	"sync"
)

// spareBytes of heap per stage that nothing is written to. A worker of small models lives in a few megabytes, and the collector,
// which runs whenever the heap has doubled, would run ten times a second: that is most of the tail of the latencies. With the
// spare heap it runs after as much garbage more. The process has one, however often Run is called.
const spareBytes = 64 << 20

var spare struct {
	mu    sync.Mutex
	users int
	heap  []byte
}

// SpareHeap has the process keep a spare heap for some stages until the function it returns is called. Where memory is limited
// to little more (GOMEMLIMIT) there is none.
func SpareHeap(stages int) (free func()) {
	spare.mu.Lock()
	defer spare.mu.Unlock()
	spare.users++
	if size := stages * spareBytes; len(spare.heap) < size && debug.SetMemoryLimit(-1) >= int64(32*size) {
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
