//go:build unix

// Package cputime measures the processor time of this process.
package cputime

import (
	"syscall"
	"time"
)

// OfProcess returns the processor time since the process began, user and system, of all threads; 0 where the system does not tell.
func OfProcess() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
