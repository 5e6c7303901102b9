//go:build unix

// Peak memory of an ended process where the kernel tells.

package bench

import (
	"os"
	"runtime"
	"syscall"
)

// peakResidentSet returns bytes; macOS counts in bytes, the others in KiB.
func peakResidentSet(state *os.ProcessState) int64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0
	}
	if runtime.GOOS == "darwin" || runtime.GOOS == "ios" {
		return int64(usage.Maxrss)
	}
	return int64(usage.Maxrss) << 10
}
