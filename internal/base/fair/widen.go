package fair

import (
	"os"
	"runtime"
	"sync/atomic"
)

// more is the number of goroutines that may compute without looking at their context, beside short
// work on every processor, before short work waits for the runtime's own turns of 10 ms.
const more = 4

// count is the number of processors that the runtime found, once Widen has raised it; else 0.
var count atomic.Int64

// Widen lets more goroutines run at a time than there are processors: between them the operating
// system decides, which prefers those that run seldom. GOMAXPROCS in the environment wins.
func Widen() {
	if os.Getenv("GOMAXPROCS") == "" && count.CompareAndSwap(0, int64(Count())) {
		runtime.GOMAXPROCS(int(count.Load()) + more)
	}
}

// Count is the number of processors.
func Count() int {
	if n := count.Load(); n > 0 {
		return int(n)
	}
	return min(runtime.NumCPU(), runtime.GOMAXPROCS(0))
}
