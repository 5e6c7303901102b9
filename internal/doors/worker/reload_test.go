//go:build unix

package worker

import (
	"net/http"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/basetensor/basetensor/pkg/query"
)

// SIGHUP has a worker read its settings again: the level of the log changes while it runs, of others it says that they take a
// restart, and a file that cannot be read changes nothing.
func TestSettingsAreReadAgain(t *testing.T) {
	s := newSite(t, unchanged)
	s.setUp()
	file := s.settings(query.StageContract, map[string]string{"log-level": "info", "threads": "1"})
	p := s.start(query.StageContract, file)
	p.until("it is ready", func() bool { status, _ := p.ready(); return status == http.StatusOK })
	hup := func(change func(text string) string, said ...string) {
		t.Helper()
		text, err := os.ReadFile(file)
		if err == nil {
			err = os.WriteFile(file, []byte(change(string(text))), 0o600)
		}
		if err == nil {
			err = syscall.Kill(os.Getpid(), syscall.SIGHUP)
		}
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range said {
			p.until("it says "+part, func() bool { return strings.Contains(p.log.String(), part) })
		}
	}
	hup(func(text string) string { return strings.Replace(text, `"info"`, `"debug"`, 1) }, "log-level=debug before=info")
	hup(func(text string) string { return strings.Replace(text, `"threads":"1"`, `"threads":"2"`, 1) },
		`msg="settings have changed that take a restart"`, "settings=threads\n")
	hup(func(text string) string { return strings.Replace(text, `"nats-inbox":"`, `"nats-inbox":"other`, 1) },
		`settings="nats-inbox, threads"`)
	hup(func(text string) string { return "{" + text }, "the old ones stay")
	if status, body := p.ready(); status != http.StatusOK {
		t.Errorf("it is not ready any more: %s", body)
	}
	p.stop()
	if code := p.ended(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
