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
)

// The process takes no more than --memory, with a model whose tables take 3 GiB of 3.5: where there is less, it is sliced.
func TestTheProcessKeepsToItsMemory(t *testing.T) {
	if os.Getenv("BTN_MEMORY_TEST") == "" {
		t.Skip("takes half a minute of two cores and 3.5 GiB: BTN_MEMORY_TEST=1 runs it")
	}
	model := filepath.Join(t.TempDir(), "model.uai")
	if code := run(context.Background(), []string{
		"generate", "ising", "grid", "--rows", "27", "--columns", "27", "-o", model,
	}, io.Discard, os.Stderr); code != 0 {
		t.Fatalf("generate: exit code %d", code)
	}
	const memory = 7 << 29
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), signalled+"="+strings.Join([]string{
		"infer", "--memory", "3.5GiB", "--method", "exact", "--json", model,
	}, "\n"))
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Run(); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	peak := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss << 10
	t.Logf("peak %.2f GiB; %s", float64(peak)/(1<<30), out.String())
	if peak > memory {
		t.Errorf("%d bytes resident of %d", peak, int64(memory))
	}
	if peak < 3<<30 {
		t.Errorf("%d bytes resident: the model shows nothing", peak)
	}
}
