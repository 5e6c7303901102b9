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

// DieWithParent makes the kernel kill the child when this process ends in any way. It must be called before the child starts.
func DieWithParent(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} }

// waitStopped waits until every thread of a process that was sent SIGSTOP has stopped, at most a second. The signal reaches threads on
// other processors some time after kill returns.
func waitStopped(pid int) {
	for end := time.Now().Add(time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		isRunning := len(tasks) == 0
		for _, task := range tasks {
			stat, err := os.ReadFile(task)
			if err != nil {
				continue // the thread has ended
			}

			// The file has "pid (name) state …". The name may contain anything, but the last parenthesis ends it. State T is stopped.
			nameEnd := bytes.LastIndexByte(stat, ')')
			isStopped := nameEnd >= 0 && nameEnd+2 < len(stat) && stat[nameEnd+2] == 'T'
			if !isStopped {
				isRunning = true
			}
		}
		if !isRunning {
			return
		}
	}
}
