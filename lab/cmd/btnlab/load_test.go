package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/lab/load"
)

// write makes a file with the text and returns its path.
func write(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// command runs btnlab and returns its output.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(t.Context(), args, &out, &err)
	return code, out.String(), err.String()
}

func TestLoadOnTheEmbeddedStack(t *testing.T) {
	folder := t.TempDir()
	model, page := write(t, folder, "pair.uai",
		"MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 2 3 0\n"), filepath.Join(folder, "load.html")
	code, stdout, stderr := command(t, "load", model+"=2", "--rate", "30", "--duration", "500ms",
		"--warm-up", "100ms", "--verify", "all", "--json", "--html", page, "--tenant", "a=1;b=2")
	if code != 0 {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	var r load.Report
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatal(err)
	}
	if r.Answered != r.Offered || r.Missing != 0 || r.Verified.Wrong != 0 || r.Verified.Jobs < r.Offered ||
		len(r.Tenants) != 2 || r.Models[0] != "pair.uai" {
		t.Errorf("%s", stdout)
	}
	if html, err := os.ReadFile(page); err != nil || !strings.Contains(string(html), "<svg") {
		t.Errorf("%v: %d bytes", err, len(html))
	}
}

func TestSimulateFromAFile(t *testing.T) {
	measured := write(t, t.TempDir(), "m.json",
		`{"reparam_ms":[1],"learn_ms":[1],"contract_ms":[10],"aggregate_ms":[1],"chunks":[1],"hop_ms":0,"message_ms":0,"server_share":0}`)
	code, stdout, stderr := command(t, "simulate", measured, "--workers", "1,100", "--jobs", "2000",
		"--components", "64", "--json")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if code != 0 || len(lines) != 2 {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	var one, hundred prediction
	if json.Unmarshal([]byte(lines[0]), &one) != nil || json.Unmarshal([]byte(lines[1]), &hundred) != nil {
		t.Fatal(stdout)
	}
	if one.First != "contract-worker" || one.Makespan != 643 || hundred.First == "contract-worker" ||
		hundred.Makespan != 13 || one.Bound < 99 || one.Bound > 101 {
		t.Errorf("%s", stdout)
	}
}

func TestLoadAndSimulateFlags(t *testing.T) {
	for want, args := range map[string][]string{
		"must be above 0":       {"load"},
		"not \"some\"":          {"load", "--rate", "1", "--verify", "some"},
		"must not be none":      {"load", "--rate", "1", "--verify", "none", "--record", "x"},
		"must be at least 1":    {"simulate", "x", "--workers", "0"},
		"no such file":          {"simulate", "no-such-file"},
		"no-such-model.uai: no": {"load", "no-such-model.uai", "--rate", "1"},
	} {
		if code, _, stderr := command(t, args...); code == 0 || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit code %d, %s", args, code, stderr)
		}
	}
}
