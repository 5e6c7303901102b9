//go:build unix

package testserver

import "syscall"

// PauseSignal and ResumeSignal stop a process and let it go on.
const PauseSignal, ResumeSignal = syscall.SIGSTOP, syscall.SIGCONT
