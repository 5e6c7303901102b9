package acceptance

// The Python client in clients/python, by its own tests.

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const pythonDir = root + "clients/python"

// python returns a python3 of version 3.9 or later: Debian's, or the one on PATH.
func python(t *testing.T) string {
	t.Helper()
	if testing.Short() {
		t.Skip("runs python3: not with -short")
	}
	for _, name := range []string{"/usr/bin/python3", "python3"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		if exec.Command(path, "-c", "import sys; sys.exit(sys.version_info < (3, 9))").Run() == nil {
			return path
		}
	}
	t.Skip("no python3 of version 3.9 or later: install it to test clients/python")
	return ""
}

// pythonCommand is a run of python3 that finds the client.
func pythonCommand(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	path := python(t)
	src, err := filepath.Abs(pythonDir + "/src")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, path, args...)
	cmd.Env = append(os.Environ(), "PYTHONPATH="+src, "PYTHONDONTWRITEBYTECODE=1")
	return cmd
}

// TestPythonClient runs the client's tests, against a gateway of `btn up`, and with services that the client starts itself.
func TestPythonClient(t *testing.T) {
	t.Parallel()
	cmd := pythonCommand(t, "-m", "unittest", "discover", "-s", "tests")
	cmd.Dir = pythonDir
	btn, err := filepath.Abs(filepath.Join(bin, "btn"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Env = append(cmd.Env, "BTN_GATEWAY="+startUp(t).gateway, "BTN="+btn, "TMPDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	t.Logf("%s", out)
}
