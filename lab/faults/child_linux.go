package faults

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the child when this process dies, however it dies.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
