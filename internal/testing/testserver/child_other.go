//go:build !linux

package testserver

import (
	"os/exec"
	"time"
)

// DieWithParent does nothing here.
func DieWithParent(*exec.Cmd) {}

func waitStopped(int) { time.Sleep(100 * time.Millisecond) }
