package fair

import (
	"os"
	"runtime"
	"sync/atomic"
)

// extraGoroutines is how many goroutines Widen lets run beyond one on each processor. So many may compute without looking at their context
// before short work waits for the runtime's own turns of 10 ms.
const extraGoroutines = 4

// originalCount is the number of processors that the runtime found before Widen raised it; 0 if Widen has not.
var originalCount atomic.Int64

// Widen raises GOMAXPROCS, so that more goroutines run at a time than there are processors. The operating system decides between them, and
// prefers those that run seldom. It does nothing if the environment sets GOMAXPROCS, or if it was called before.
func Widen() {
	if os.Getenv("GOMAXPROCS") == "" && originalCount.CompareAndSwap(0, int64(Count())) {
		runtime.GOMAXPROCS(int(originalCount.Load()) + extraGoroutines)
	}
}

// Count returns the number of processors, also after Widen.
func Count() int {
	if n := originalCount.Load(); n > 0 {
		return int(n)
	}
	return min(runtime.NumCPU(), runtime.GOMAXPROCS(0))
}
