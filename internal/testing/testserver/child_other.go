//go:build !linux

package testserver

import (
	"os/exec"
	"time"
)

func dieWithParent(*exec.Cmd) {}

func waitStopped(int) { time.Sleep(100 * time.Millisecond) }
