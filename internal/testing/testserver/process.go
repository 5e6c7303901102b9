// Package testserver runs a real redis-server and a real nats-server as child processes, for tests
// that an embedded one does not allow: faults, memory limits, restarts from disk.
//
// Servers listen on a free loopback port and end with the test. A server that cannot be had on this
// machine skips the test with the reason; `go run ./internal/testing/testserver/install` gets it.
package testserver

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"
)

// ErrUnavailable says that the program of a server is not on this machine. Errors that wrap it say what to do.
var ErrUnavailable = errors.New("testserver: server not available")

// A server that was started is checked maxChecks times, every 10 ms (less often on a busy machine), until it is ready. A check that times
// out after answerTimeout counts as timeoutChecks of them.
const (
	maxChecks     = 3000
	timeoutChecks = 300
	answerTimeout = 10 * time.Second
)

// process is a server as a child process, which can be stopped, killed, paused and started again on its port.
type process struct {
	name  string // for messages
	path  string // of the program
	args  []string
	env   []string     // variables beside those of this process
	log   string       // the file with its output
	check func() error // returns nil once the server is ready

	mu   sync.Mutex
	cmd  *exec.Cmd     // the child that was started last
	done chan struct{} // closed when cmd has ended
}

// start starts the server, with its output appended to the log, and waits until it is ready.
func (p *process) start() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	log, err := os.OpenFile(p.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	defer log.Close()
	p.cmd = exec.Command(p.path, p.args...)
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.Env = log, log, append(os.Environ(), p.env...)
	DieWithParent(p.cmd)
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("testserver: start %s: %w", p.name, err)
	}
	p.done = make(chan struct{})
	go func(cmd *exec.Cmd, done chan struct{}) {
		cmd.Wait()
		close(done)
	}(p.cmd, p.done)
	return p.waitReady()
}

// waitReady waits until the server is ready. It is an error if the server ends before, or if it is not ready in time and is killed.
func (p *process) waitReady() error {
	var checkError error
	for checks := 0; checks < maxChecks; checks++ {
		if checkError = p.check(); checkError == nil {
			return nil
		}
		if timeout := net.Error(nil); errors.As(checkError, &timeout) && timeout.Timeout() {
			checks += timeoutChecks
		}
		select {
		case <-p.done:
			return fmt.Errorf("testserver: %s ended at once (%v): %s", p.name, p.cmd.ProcessState, p.logEnd())
		case <-time.After(10 * time.Millisecond):
		}
	}
	p.cmd.Process.Kill()
	<-p.done
	return fmt.Errorf("testserver: %s does not answer: %w: %s", p.name, checkError, p.logEnd())
}

// logEnd returns the last 1000 bytes of the server's log.
func (p *process) logEnd() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-1000):])
}

// signal sends a signal to the process, if it was started.
func (p *process) signal(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil && p.cmd.Process != nil {
		p.cmd.Process.Signal(s)
	}
}

// signalAndWait sends a signal to the process, if it was started, and waits until it has ended.
func (p *process) signalAndWait(s syscall.Signal) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil && p.cmd.Process != nil {
		p.cmd.Process.Signal(s)
		<-p.done
	}
}

// Stop ends the server with SIGTERM, so that it shuts down in good order, and waits for it.
func (p *process) Stop() {
	p.signal(ResumeSignal) // a paused process does not see SIGTERM
	p.signalAndWait(syscall.SIGTERM)
}

// Kill ends the server with SIGKILL and waits for it.
func (p *process) Kill() { p.signalAndWait(syscall.SIGKILL) }

// Pause stops the server with SIGSTOP and waits until it has stopped: connections stay open and nothing answers.
func (p *process) Pause() {
	p.signal(PauseSignal)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil && p.cmd.Process != nil {
		waitStopped(p.cmd.Process.Pid)
	}
}

// Resume continues a paused server.
func (p *process) Resume() { p.signal(ResumeSignal) }

// Restart starts a stopped or killed server again, on its port and folder. A running one is stopped
// first.
func (p *process) Restart() error {
	p.Stop()
	return p.start()
}

// Log returns the output of the server so far.
func (p *process) Log() string {
	b, _ := os.ReadFile(p.log)
	return string(b)
}

// FreePort returns a loopback port that nothing listens on (see Unused), or fails the test.
func FreePort(t testing.TB) string {
	t.Helper()
	port, err := Unused()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// Unused returns a loopback port that nothing listens on and that it has not returned before. The port is below those that the system gives
// to dialling sockets: otherwise a client that dials until the server is there could get the server's port as its own.
func Unused() (string, error) {
	usedPorts.mu.Lock()
	defer usedPorts.mu.Unlock()
	var listenError error
	for range 1000 {
		port := strconv.Itoa(lowestPort + rand.IntN(highestPort-lowestPort))
		if usedPorts.ports[port] {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			listenError = err
			continue
		}
		usedPorts.ports[port] = true
		return port, l.Close()
	}
	return "", fmt.Errorf("testserver: no free port: %w", listenError)
}

// The range of ports from which Unused draws.
const (
	lowestPort  = 12000
	highestPort = 32000
)

// usedPorts has the ports that Unused has returned.
var usedPorts = struct {
	mu    sync.Mutex
	ports map[string]bool
}{ports: map[string]bool{}}

// attach ties a server to a test, where err is the error of its start. It skips the test if the server's program is not on this machine,
// and fails it for another error. Otherwise it kills the server at the end of the test, and shows the end of its log if the test failed.
func attach(t testing.TB, p *process, err error) {
	t.Helper()
	if errors.Is(err, ErrUnavailable) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s: %s", p.name, p.logEnd())
		}
	})
}

// absoluteConfig returns the absolute path of a configuration file, since its server runs in another folder. It is an error if there is no
// such file. An empty path stays empty.
func absoluteConfig(config string) (string, error) {
	if config == "" {
		return "", nil
	}
	path, err := filepath.Abs(config)
	if err != nil {
		return "", err
	}
	if _, err := os.Stat(path); err != nil {
		return "", fmt.Errorf("testserver: configuration: %w", err)
	}
	return path, nil
}
