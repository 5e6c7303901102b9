//go:build nightly

package deploy

import (
	"bytes"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/testing/testserver"
)

const unit = "../../deploy/basetensor.service"

// systemd reads every key of the unit, and finds it safer than the given exposure of 10.
func TestUnitVerifies(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("needs systemd-analyze (Debian: systemd)")
	}
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	verify := func(text string) string {
		path := filepath.Join(t.TempDir(), filepath.Base(unit))
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		said, _ := exec.Command(analyze, "verify", "--man=no", path).CombinedOutput() // it ends with 0 where it only warns
		if out, err := exec.Command(analyze, "security", "--offline=yes", "--no-pager", "--threshold=20", path).CombinedOutput(); err != nil {
			said = append(said, out...)
		}
		return string(said)
	}
	here := strings.Replace(string(text), "/usr/local/bin/btn", "/bin/true", 1) // a program that is there
	if said := verify(here); said != "" {
		t.Errorf("systemd-analyze: %s", said)
	}
	for _, key := range []string{"DynamicUser=", "TimeoutStopSec="} {
		if verify(strings.Replace(here, key, "X"+key, 1)) == "" {
			t.Errorf("a unit without %s is accepted", key)
		}
	}
}

// The unit's process is ready at its addresses, and SIGTERM ends it in time.
func TestUnitServes(t *testing.T) {
	needCommands(t)
	text, err := os.ReadFile(unit)
	if err != nil {
		t.Fatal(err)
	}
	settings := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if key, value, ok := strings.Cut(strings.TrimSpace(line), "="); ok && !strings.HasPrefix(line, "#") {
			settings[key] = value
		}
	}
	web, health := "127.0.0.1:"+testserver.FreePort(t), "127.0.0.1:"+testserver.FreePort(t)
	local := strings.NewReplacer("/var/lib/"+settings["StateDirectory"], t.TempDir(), "127.0.0.1:8080", web, "127.0.0.1:8081", health)
	args := strings.Fields(settings["ExecStart"])
	cmd := exec.Command(filepath.Join(bin, filepath.Base(args[0])), args[1:]...)
	cmd.Env = append(strings.Fields(local.Replace(settings["Environment"])), "BTN_PORT=0")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	t.Cleanup(func() { cmd.Process.Kill() })
	for _, address := range []string{health + "/readyz", web + "/healthz"} {
		r := &running{pod: pod{name: filepath.Base(unit)}, done: done}
		r.content(t, "http://"+address)
	}
	cmd.Process.Signal(syscall.SIGTERM)
	grace, err := time.ParseDuration(settings["TimeoutStopSec"] + "s")
	if err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-done:
		if err != nil {
			t.Errorf("%v\n%s", err, log.Bytes())
		}
	case <-time.After(grace):
		t.Errorf("it is still there when its grace ends")
	}
	if _, err := http.Get("http://" + web + "/healthz"); err == nil {
		t.Error("something answers at its address when it has ended")
	}
}
