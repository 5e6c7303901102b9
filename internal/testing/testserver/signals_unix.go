//go:build unix

package testserver

import "syscall"

// Signals that stop a process and let it go on.
const pause, resume = syscall.SIGSTOP, syscall.SIGCONT
