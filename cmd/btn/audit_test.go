package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/queue/telemetry"
)

// Commands that change something record it in the file of --audit.
func TestCommandsAreRecorded(t *testing.T) {
	url, _ := up(t)
	folder := t.TempDir()
	file := filepath.Join(folder, "audit")
	model := write(t, folder, "pair.uai", pair)
	for _, args := range [][]string{
		{"model", "put", model, "--name", "pair", "--by", "me"},
		{"model", "rm", "pair"},
		{"model", "rm", "nobody"},
		{"forget", "acme"},
	} {
		code, _, stderr := command(t, append(args, "--nats", url, "--audit", file)...)
		if (code != 0) != (args[len(args)-1] == "nobody") {
			t.Fatalf("%v: exit code %d: %s", args, code, stderr)
		}
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"put " + model, "name pair ", "remove pair", "remove nobody", "forget acme"}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if len(lines) != len(want) {
		t.Fatalf("%d lines, want %d:\n%s", len(lines), len(want), text)
	}
	for i, line := range lines {
		var act telemetry.Act
		if err := json.Unmarshal([]byte(line), &act); err != nil || !strings.HasPrefix(act.Action+" "+act.What, want[i]) ||
			!strings.Contains(act.Who, "NATS user none") || (act.Error != "") != strings.Contains(want[i], "nobody") {
			t.Errorf("%s: want %s (%v)", line, want[i], err)
		}
	}
}
