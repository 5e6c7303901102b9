package faults

// Workers as child processes, which are started again when they end, as a supervisor does.

import (
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/query"
)

// roles are the workers, by the names of their commands.
var roles = []string{query.StageReparam, query.StageLearn, query.StageContract, query.StageAggregate}

// restartAfter is the pause of the supervisor.
const restartAfter = 100 * time.Millisecond

// worker is a place for a process: when that ends another one takes it.
type worker struct {
	role  string
	index int
	log   string // file
	nats  *gate
	redis *gate
	http  string // address of its metrics

	mu      sync.Mutex
	command []string // program and arguments
	env     []string
	cmd     *exec.Cmd
	ended   bool                            // not started again
	down    chan struct{}                   // closed when the supervisor has ended
	dying   func(held map[string]time.Time) // action on the jobs of the process when it is gone; may be nil
	exits   []string
}

func (w *worker) String() string { return fmt.Sprintf("%s %d", w.role, w.index) }

// start starts the process and its supervisor.
func (w *worker) start() error {
	w.down = make(chan struct{})
	if err := w.launch(); err != nil {
		close(w.down)
		return err
	}
	go func() {
		defer close(w.down)
		for {
			w.mu.Lock()
			cmd := w.cmd
			w.mu.Unlock()
			err := cmd.Wait()
			w.mu.Lock()
			dying := w.dying
			w.dying = nil
			w.mu.Unlock()
			if dying != nil {
				w.nats.cut() // the server's messages to a dead worker are held up, too
				dying(w.nats.holds(true))
			}
			w.nats.holds(true)
			w.mu.Lock()
			w.exits = append(w.exits, fmt.Sprint(err))
			over := w.ended
			w.mu.Unlock()
			if over {
				return
			}
			time.Sleep(restartAfter)
			if err := w.launch(); err != nil {
				return
			}
		}
	}()
	return nil
}

func (w *worker) launch() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ended {
		return os.ErrProcessDone
	}
	log, err := os.OpenFile(w.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	w.cmd = exec.Command(w.command[0], w.command[1:]...)
	w.cmd.Env = append(os.Environ(), w.env...)
	w.cmd.Stdout, w.cmd.Stderr = log, log
	testserver.DieWithParent(w.cmd)
	if err := w.cmd.Start(); err != nil {
		return fmt.Errorf("faults: start %s: %w", w, err)
	}
	return nil
}

// signal sends a signal to the process there is.
func (w *worker) signal(s syscall.Signal) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.cmd != nil && w.cmd.Process != nil {
		w.cmd.Process.Signal(s)
	}
}

// kill ends the process there is at once, and calls then with the jobs of the messages that it had, or was sent meanwhile.
func (w *worker) kill(then func(held map[string]time.Time)) {
	w.mu.Lock()
	w.dying = then
	w.mu.Unlock()
	w.signal(syscall.SIGKILL)
}

// pid returns the id of the present process.
func (w *worker) pid() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.cmd.Process.Pid
}

// ends returns the ends of all processes that had the place, except the present one.
func (w *worker) ends() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.exits)
}

// replace has another program take the place when the present process has ended in good order, and returns when it has.
func (w *worker) replace(command ...string) {
	w.mu.Lock()
	old := w.cmd
	w.command = command
	w.cmd.Process.Signal(syscall.SIGTERM)
	w.mu.Unlock()
	for {
		w.mu.Lock()
		gone := w.cmd != old || w.ended
		w.mu.Unlock()
		if gone {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// end ends the process for good.
func (w *worker) end() {
	w.mu.Lock()
	w.ended = true
	w.mu.Unlock()
	w.signal(syscall.SIGKILL)
	if w.down != nil {
		<-w.down
	}
	w.nats.close()
	if w.redis != nil {
		w.redis.close()
	}
}
