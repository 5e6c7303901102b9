// One measured process.

package bench

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/doors/config"
)

// ending of a process.
type processEnding int

const (
	endedAlone   processEnding = iota // exited, with any code
	endedTimeout                      // killed after the timeout
	endedKilled                       // ended by a signal that was not ours, most often for want of memory
	endedUnborn                       // never started
)

// process holds the output and cost of one run.
type process struct {
	Stdout []byte
	Stderr string // its last words
	Ending processEnding
	Reason string // of endings other than endedAlone, and the exit code
	Wall   time.Duration
	CPU    time.Duration // user and system, all threads
	Peak   int64         // largest resident set in bytes, 0 where the system does not say
}

// runProcess runs args and waits. The environment is this process's without the program's own variables, so that the
// arguments alone decide the run. Temporary files go to a folder that is
// removed afterwards: a killed process leaves them lying.
//
// On Linux the peak is never below this process's own: between fork and exec the child has its
// memory.
func runProcess(ctx context.Context, args []string, timeout time.Duration) process {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}

	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.WaitDelay = 5 * time.Second
	scratch, err := os.MkdirTemp("", "btn-bench-")
	if err != nil {
		return process{Ending: endedUnborn, Reason: err.Error()}
	}
	defer os.RemoveAll(scratch)
	cmd.Env = append(ownVariablesRemoved(os.Environ()), "TMPDIR="+scratch, "TMP="+scratch, "TEMP="+scratch)
	var stdout bytes.Buffer
	stderr := tail{limit: 4096}
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	start := time.Now()
	err = cmd.Run()
	p := process{Stdout: stdout.Bytes(), Stderr: strings.TrimSpace(string(stderr.last)), Wall: time.Since(start)}
	state := cmd.ProcessState
	switch {
	case state == nil:
		p.Ending, p.Reason = endedUnborn, err.Error()
		return p
	case state.Exited():
		p.Ending, p.Reason = endedAlone, state.String()
	case errors.Is(ctx.Err(), context.DeadlineExceeded):
		p.Ending, p.Reason = endedTimeout, "killed after "+timeout.String()
	default:
		p.Ending, p.Reason = endedKilled, state.String()
	}

	p.CPU = state.UserTime() + state.SystemTime()
	p.Peak = peakResidentSet(state)
	return p
}

// clocksApart bounds the CPU time by which a killed process may seem to stay below the limit that killed it.
const clocksApart = 250 * time.Millisecond

// spent tells a process that was killed when it had taken its CPU time from one that was killed for another reason. The kernel's two
// clocks may be a little apart.
func (p *process) spent(limit time.Duration) {
	if limit > 0 && p.Ending == endedKilled && p.CPU >= limit-max(limit/50, clocksApart) {
		p.Ending, p.Reason = endedTimeout, "killed after "+limit.String()+" of CPU time"
	}
}

func ownVariablesRemoved(environment []string) []string {
	kept := make([]string, 0, len(environment))
	for _, e := range environment {
		if !strings.HasPrefix(e, config.EnvPrefix+"_") {
			kept = append(kept, e)
		}
	}
	return kept
}

// tail keeps the last bytes written to it.
type tail struct {
	last  []byte
	limit int
}

func (t *tail) Write(b []byte) (int, error) {
	t.last = append(t.last, b...)
	if over := len(t.last) - t.limit; over > 0 {
		t.last = append(t.last[:0], t.last[over:]...)
	}
	return len(b), nil
}
