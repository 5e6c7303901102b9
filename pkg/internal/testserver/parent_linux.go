package testserver

import (
	"os/exec"
	"syscall"
)

// dieWithParent has the kernel kill the child when the test process dies, however it dies.
func dieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }
