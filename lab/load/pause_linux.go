package load

import (
	"syscall"
	"time"
)

// pause sleeps for less than some milliseconds. The runtime's own timers are late by up to one where
// nothing else runs, and a job's latency counts from the time it was due.
func pause(d time.Duration) {
	t := syscall.NsecToTimespec(int64(d))
	syscall.Nanosleep(&t, nil)
}
