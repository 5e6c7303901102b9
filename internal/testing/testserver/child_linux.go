package testserver

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// DieWithParent has the kernel kill the child when this process dies, however it dies.
func DieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// waitStopped waits, for a second at most, until every thread of a process that was sent SIGSTOP has
// stopped: the signal reaches threads on other processors some time after kill returns.
func waitStopped(pid int) {
	for until := time.Now().Add(time.Second); time.Now().Before(until); time.Sleep(time.Millisecond) {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		running := len(tasks) == 0
		for _, task := range tasks {
			stat, err := os.ReadFile(task)
			if err != nil {
				continue // the thread has ended
			}
			// "pid (name) state …": the name may hold anything, the last parenthesis ends it.
			if i := bytes.LastIndexByte(stat, ')'); i < 0 || i+2 >= len(stat) || stat[i+2] != 'T' {
				running = true
			}
		}
		if !running {
			return
		}
	}
}
