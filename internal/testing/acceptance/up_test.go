package acceptance

// `btn up` as users start it, for clients of every kind.

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// upstack is a running `btn up`.
type upstack struct{ nats, gateway string }

// startUp starts one on free ports, without Redis, which ends with the test.
func startUp(t *testing.T) (s upstack) {
	t.Helper()
	needBinaries(t)
	cmd := exec.Command(filepath.Join(bin, "btn"), "up", "--port", "0", "--gateway", "127.0.0.1:0", "--redis", "off")
	log, err := os.Create(filepath.Join(t.TempDir(), "up.log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = log
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Signal(os.Interrupt)
		cmd.Wait()
		log.Close()
		if text, err := os.ReadFile(log.Name()); err == nil && t.Failed() {
			t.Logf("btn up: %s", text)
		}
	})
	for lines := bufio.NewScanner(out); lines.Scan(); {
		switch what, rest, _ := strings.Cut(lines.Text(), " "); what {
		case "nats":
			s.nats = strings.TrimSpace(rest)
		case "gateway":
			s.gateway = strings.TrimSpace(rest)
		case "ready;":
			go func() { // nothing more is to be read, and nothing may be in the way
				for lines.Scan() {
				}
			}()
			return s
		}
	}
	t.Fatalf("btn up ended: %v", cmd.Wait())
	return s
}
