//go:build !unix

package testserver

import "syscall"

// PauseSignal and ResumeSignal stop a process and let it go on, which this system does not have: to send one is an error.
const PauseSignal, ResumeSignal = syscall.Signal(19), syscall.Signal(18)
