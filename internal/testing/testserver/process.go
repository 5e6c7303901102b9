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

// ErrUnavailable: the server's program is not on this machine. The error gives the remedy.
var ErrUnavailable = errors.New("testserver: server not available")

// startLooks is how often a server that runs is asked whether it is there, every 10 ms or, on a
// machine that is busy, more seldom. An answer that does not come within answerTimeout counts for
// lateLooks.
const (
	startLooks    = 3000
	lateLooks     = 300
	answerTimeout = 10 * time.Second
)

// process is a child that can be stopped, killed, paused and started again on its port.
type process struct {
	name   string
	path   string
	args   []string
	env    []string
	log    string
	answer func() error // nil once the server answers

	mu   sync.Mutex
	cmd  *exec.Cmd
	done chan struct{} // closed when cmd has ended
}

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
	return p.await()
}

// await returns when the server answers, has ended, or does not answer in time.
func (p *process) await() error {
	var last error
	for looks := 0; looks < startLooks; looks++ {
		if last = p.answer(); last == nil {
			return nil
		}
		if timeout := net.Error(nil); errors.As(last, &timeout) && timeout.Timeout() {
			looks += lateLooks
		}
		select {
		case <-p.done:
			return fmt.Errorf("testserver: %s ended at once (%v): %s", p.name, p.cmd.ProcessState, p.tail())
		case <-time.After(10 * time.Millisecond):
		}
	}
	p.cmd.Process.Kill()
	<-p.done
	return fmt.Errorf("testserver: %s does not answer: %w: %s", p.name, last, p.tail())
}

// tail returns the end of the server's log.
func (p *process) tail() string {
	b, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return string(b[max(0, len(b)-1000):])
}

// signal sends a signal; with wait it returns when the process has ended. A process that has ended
// is left alone.
func (p *process) signal(s syscall.Signal, wait bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd == nil || p.cmd.Process == nil {
		return
	}
	p.cmd.Process.Signal(s)
	if wait {
		<-p.done
	}
}

// Stop ends the server in good order and waits for it.
func (p *process) Stop() {
	p.signal(ResumeSignal, false) // a paused process does not see SIGTERM
	p.signal(syscall.SIGTERM, true)
}

// Kill ends the server with SIGKILL and waits for it.
func (p *process) Kill() { p.signal(syscall.SIGKILL, true) }

// Pause stops the server with SIGSTOP: connections stay open and nothing answers.
func (p *process) Pause() {
	p.signal(PauseSignal, false)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.cmd != nil && p.cmd.Process != nil {
		waitStopped(p.cmd.Process.Pid)
	}
}

// Resume continues a paused server.
func (p *process) Resume() { p.signal(ResumeSignal, false) }

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

// FreePort returns a loopback port that nothing listens on, for a server that a test starts at once.
func FreePort(t testing.TB) string {
	t.Helper()
	port, err := Unused()
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// Unused returns a loopback port that nothing listens on and that it has not returned before. It
// is below those that the system gives to dialling sockets: a dialler that tries again until a
// server is there could be given the server's own port.
func Unused() (string, error) {
	given.mu.Lock()
	defer given.mu.Unlock()
	var last error
	for range 1000 {
		port := strconv.Itoa(lowestPort + rand.IntN(highestPort-lowestPort))
		if given.ports[port] {
			continue
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", port))
		if err != nil {
			last = err
			continue
		}
		given.ports[port] = true
		return port, l.Close()
	}
	return "", fmt.Errorf("testserver: no free port: %w", last)
}

const (
	lowestPort  = 12000
	highestPort = 32000
)

// given are the ports that Unused has returned.
var given = struct {
	mu    sync.Mutex
	ports map[string]bool
}{ports: map[string]bool{}}

// attach ties a started server to a test: it skips, fails, or is killed at the end and shows its log
// if the test failed.
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
			t.Logf("%s: %s", p.name, p.tail())
		}
	})
}

// absolute returns the path of a configuration file as its server needs it, in another folder.
func absolute(config string) (string, error) {
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
