package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestEvaluateWritesItsFiles(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "out")
	var out, progress bytes.Buffer
	if code := run(t.Context(), []string{
		"evaluate", "strength", "--short", "--seeds=1", "--method=bp", "--out", dir,
	}, &out, &progress); code != 0 {
		t.Fatalf("exit code %d: %s", code, progress.String())
	}
	if !strings.Contains(out.String(), "grid: median |Δ ln Z|") ||
		!strings.Contains(progress.String(), "10/10 grid 6 attractive") {
		t.Errorf("printed %q and %q", out.String(), progress.String())
	}
	for _, name := range []string{
		"strength.csv", "strength.txt", "strength-grid-lnz.svg", "strength-random-marginals.svg",
	} {
		if f, err := os.Stat(filepath.Join(dir, name)); err != nil || f.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, args := range [][]string{{"evaluate", "nothing"}, {"evaluate", "strength", "--method=nothing"}} {
		if code := run(t.Context(), args, &out, &progress); code != 3 {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
}

// TestEvaluateAll runs every experiment small.
func TestEvaluateAll(t *testing.T) {
	dir := t.TempDir()
	var out, progress bytes.Buffer
	if code := run(t.Context(), []string{
		"evaluate", "all", "--short", "--seeds=1", "--method=bp", "--model=grid*", "--out", dir,
	}, &out, &progress); code != 0 {
		t.Fatalf("exit code %d: %s", code, progress.String())
	}
	for _, name := range []string{"strength", "components", "time", "calibration"} {
		if f, err := os.Stat(filepath.Join(dir, name+".csv")); err != nil || f.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
}
