package gateway

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/basetensor/basetensor/internal/queue/telemetry"
)

// journal is a log that several goroutines write.
type journal struct {
	mu  sync.Mutex
	out bytes.Buffer
}

func (j *journal) Write(b []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.out.Write(b)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.out.String()
}

// Changes over HTTP are in the audit log, with their authors, also refused ones; reading is not. A job has a line in the log.
func TestChangesAreRecorded(t *testing.T) {
	file, log := filepath.Join(t.TempDir(), "audit"), &journal{}
	audit, err := telemetry.OpenAudit(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	withKeys := keys(t, "acme acme-key-0123456789\n* everybody-key-0123456789\n")
	s := start(t, true, func(c *Config) {
		withKeys(c)
		c.Audit, c.Log = audit, slog.New(slog.NewTextHandler(log, nil))
	})
	s.key = "everybody-key-0123456789"
	put := want[Model](s, http.StatusCreated, "POST", "/v1/models", rain)
	want[Model](s, http.StatusOK, "PUT", "/v1/models/weather", rain)
	want[Models](s, http.StatusOK, "GET", "/v1/models", "")
	want[Answer](s, http.StatusOK, "POST", "/v1/infer", `{"job": "one", "model_name": "weather"}`)
	want[Answer](s, http.StatusOK, "DELETE", "/v1/jobs/one", "")
	want[Model](s, http.StatusOK, "DELETE", "/v1/models/weather", "")
	s.key = "acme-key-0123456789"
	want[Failure](s, http.StatusForbidden, "DELETE", "/v1/models/"+put.Digest, "")
	s.waits(func() bool {
		text, err := os.ReadFile(file)
		return err == nil && strings.Count(string(text), "\n") == 5
	})
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for line := range strings.Lines(string(text)) {
		var act telemetry.Act
		if err := json.Unmarshal([]byte(line), &act); err != nil || act.Time.IsZero() || !strings.Contains(act.Who, "key sha256:") ||
			!strings.Contains(act.Who, "127.0.0.1") {
			t.Errorf("%s: %v", line, err)
		}
		whose := strings.HasPrefix(act.Who, "tenant acme")
		if whose != (act.Error != "") {
			t.Errorf("acme's alone was refused: %s", line)
		}
		said = append(said, act.Action+" "+strings.TrimSuffix(act.What, " "+put.Digest))
	}
	if have := strings.Join(said, ", "); have != "put "+put.Digest+", name weather@1, cancel one, remove weather, remove "+put.Digest {
		t.Errorf("recorded: %s", have)
	}
	for _, part := range []string{"msg=job job=one", "model=" + put.Digest, "outcome=ok", "method=exact", "ms="} {
		if !strings.Contains(log.String(), part) {
			t.Errorf("no %q in the log:\n%s", part, log)
		}
	}
	if n := strings.Count(log.String(), "msg=job "); n != 1 {
		t.Errorf("%d lines of one job", n)
	}
}
