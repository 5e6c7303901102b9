// Package acceptance tests the system as its users meet it: the built commands, on the embedded
// stack and on real servers.
package acceptance

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/commands"
	"github.com/basetensor/basetensor/pkg/query"
)

// bin is the folder of the built commands.
var bin string

func TestMain(m *testing.M) {
	var err error
	if bin, err = os.MkdirTemp("", "basetensor-acceptance-"); err != nil {
		panic(err)
	}
	code := m.Run()
	os.RemoveAll(bin)
	os.Exit(code)
}

// built puts the commands of both modules into bin, once.
var built = sync.OnceValue(func() error { return commands.Install(bin, root) })

// needBinaries builds the commands, or skips with -short.
func needBinaries(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("builds and runs the commands: not with -short")
	}
	if err := built(); err != nil {
		t.Fatal(err)
	}
}

// command runs a built command and returns its standard output and exit code.
func command(t *testing.T, name string, args ...string) (stdout string, code int) {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, name), args...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s %v: %v", name, args, err)
	}
	if log.Len() > 0 {
		t.Logf("%s %v: %s", name, args, log.String())
	}
	return out.String(), cmd.ProcessState.ExitCode()
}

// results parses the output of --json, one object per line.
func results(t *testing.T, out string) []query.Result {
	t.Helper()
	var list []query.Result
	for line := range strings.Lines(out) {
		var r query.Result
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		list = append(list, r)
	}
	if len(list) == 0 {
		t.Fatal("no result was printed")
	}
	return list
}
