//go:build !unix

package testserver

import "syscall"

// Signals that stop a process and let it go on, which this system does not have: to send one is an error.
const pause, resume = syscall.Signal(19), syscall.Signal(18)
