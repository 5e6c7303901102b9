package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// interrupting ends a context once a text is written.
type interrupting struct {
	bytes.Buffer
	after string
	end   func()
}

func (w *interrupting) Write(b []byte) (int, error) {
	n, err := w.Buffer.Write(b)
	if strings.Contains(w.String(), w.after) {
		w.end()
	}
	return n, err
}

// TestFitGoesOn: a fit that is interrupted leaves its last iteration beside the output; the same command goes on from there, and ends with
// the same bytes. A command with another seed is refused.
func TestFitGoesOn(t *testing.T) {
	fit := func(ctx context.Context, out *interrupting, output string, flags ...string) (code int, said string) {
		t.Helper()
		var stderr bytes.Buffer
		arguments := append([]string{
			"fit", "../../examples/asia.json", "../../examples/asia-cases.csv", "--redis", "off", "-o", output,
		}, flags...)
		code = run(ctx, arguments, out, &stderr)
		return code, stderr.String()
	}
	folder := t.TempDir()
	whole, output := filepath.Join(folder, "whole.json"), filepath.Join(folder, "output.json")
	never := &interrupting{after: "never", end: func() {}}
	if code, said := fit(t.Context(), never, whole, "--seed", "1"); code != 0 {
		t.Fatalf("exit code %d: %s", code, said)
	}

	ctx, end := context.WithCancel(t.Context())
	defer end()
	code, said := fit(ctx, &interrupting{after: "iteration     3", end: end}, output, "--seed", "1")
	if code != 130 || !strings.Contains(said, output+".run has the last iteration") {
		t.Fatalf("interrupted: exit code %d, %s", code, said)
	}
	if code, said := fit(t.Context(), never, output, "--seed", "2"); code != 3 || !strings.Contains(said, "remove it to begin anew") {
		t.Errorf("another seed: exit code %d, %s", code, said)
	}
	again := &interrupting{after: "never", end: func() {}}
	code, said = fit(t.Context(), again, output, "--seed", "1")
	if code != 0 || !strings.Contains(again.String(), "resumed     start 1 at iteration 4") ||
		strings.Contains(again.String(), "iteration     3") {
		t.Errorf("exit code %d, %s%s", code, again.String(), said)
	}
	want, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(output); err != nil || !bytes.Equal(got, want) {
		t.Errorf("another model than without an interruption, %v", err)
	}
	if left, err := filepath.Glob(folder + "/*.run"); len(left) > 0 || err != nil {
		t.Errorf("files of unfinished runs are left: %q, %v", left, err)
	}
}
