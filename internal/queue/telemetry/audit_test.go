package telemetry_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/queue/telemetry"
)

// The audit log is one line of JSON an act, appended, also after the file was moved away; without a file it is in the log.
func TestAudit(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.log")
	audit, err := telemetry.OpenAudit(path, nil)
	if err != nil {
		t.Fatal(err)
	}
	audit.Note("ann", telemetry.ActPut, "model \"x\"\nsecond line", nil)
	audit.Note("bob", telemetry.ActRemove, "alarm", errors.New("nats://user:secret@host: it is gone"))
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != 2 || strings.Contains(string(text), "secret") {
		t.Fatalf("want two lines without a password:\n%s", text)
	}
	for i, who := range []string{"ann", "bob"} {
		var act telemetry.Act
		if err := json.Unmarshal([]byte(lines[i]), &act); err != nil || act.Who != who || act.Time.IsZero() || act.What == "" ||
			(act.Error != "") != (who == "bob") {
			t.Errorf("line %d: %+v %v", i, act, err)
		}
	}
	if err := os.Rename(path, path+".1"); err != nil {
		t.Fatal(err)
	}
	audit.Note("ann", telemetry.ActForget, "acme", nil)
	if text, err = os.ReadFile(path); err != nil || strings.Count(string(text), "\n") != 1 {
		t.Errorf("after the file was moved: %q %v", text, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("others may read it: %v %v", info.Mode(), err)
	}
	if _, err := telemetry.OpenAudit(t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "--audit") {
		t.Errorf("a folder is taken for a file: %v", err)
	}
	var out bytes.Buffer
	logged, err := telemetry.OpenAudit("", slog.New(slog.NewTextHandler(&out, nil)))
	if err != nil {
		t.Fatal(err)
	}
	logged.Note("ann", telemetry.ActCancel, "job", nil)
	for _, part := range []string{"level=INFO", "audit=true", "who=ann", "action=cancel", "what=job"} {
		if !strings.Contains(out.String(), part) {
			t.Errorf("no %s in %s", part, &out)
		}
	}
}
