//go:build !linux

package testserver

import (
	"os/exec"
	"time"
)

// DieWithParent does nothing, since this system has no such function.
func DieWithParent(*exec.Cmd) {}

// waitStopped waits long enough for a process that was sent SIGSTOP to have stopped.
func waitStopped(int) { time.Sleep(100 * time.Millisecond) }
