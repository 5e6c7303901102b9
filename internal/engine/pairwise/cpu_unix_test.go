//go:build unix

package pairwise_test

import (
	"syscall"
	"time"
)

// cpuTime is the CPU time of the process, all threads together: on a shared
// machine the wall clock says little.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
