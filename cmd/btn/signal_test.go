package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// signalled is set in the process that the test below starts: it is btn then.
const signalled = "BTN_TEST_COMMAND"

func TestMain(m *testing.M) {
	if line := os.Getenv(signalled); line != "" {
		os.Args = append([]string{"btn"}, strings.Split(line, "\n")...)
		main()
		return
	}
	os.Exit(m.Run())
}

// TestPlanObeysSIGTERM: in the middle of planning a large grid, which takes a minute and more without the signal.
func TestPlanObeysSIGTERM(t *testing.T) {
	if testing.Short() {
		t.Skip("writes and reads a model of 5 MB")
	}
	model := filepath.Join(t.TempDir(), "grid.uai")
	if code := run(context.Background(), []string{
		"generate", "ising", "grid", "--rows", "150", "--columns", "150", "-o", model,
	}, io.Discard, os.Stderr); code != 0 {
		t.Fatalf("generate: exit code %d", code)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), signalled+"="+strings.Join([]string{
		"plan", "--within", "1h", "--log-level", "debug", model,
	}, "\n"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	// It has read the model, and plans, once it has used as much of a processor as that takes, twice
	// over.
	for used := time.Duration(0); used < time.Second; used = cpuTime(t, cmd.Process.Pid) {
		select {
		case err := <-ended:
			t.Fatalf("it ended by itself: %v\n%s", err, out.String())
		case <-time.After(50 * time.Millisecond):
		}
	}
	before := cpuTime(t, cmd.Process.Pid)
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-ended:
	case <-time.After(time.Minute):
		cmd.Process.Kill()
		t.Fatal("no exit within a minute of SIGTERM")
	}
	after := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
	if code := cmd.ProcessState.ExitCode(); code != 130 || !strings.Contains(out.String(), "interrupted") {
		t.Errorf("exit code %d\n%s", code, out.String())
	}
	// of processors, the collector's too: a loaded machine gives them later
	if spent := after - before; spent > 2*time.Second {
		t.Errorf("it used %v of processor time after the signal", spent)
	}
}
