package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFiguresAreThoseOfTheirNumbers: the figures in docs are what the CSV files beside them give.
func TestFiguresAreThoseOfTheirNumbers(t *testing.T) {
	copied := func(from, pattern string) string {
		dir := t.TempDir()
		files, err := filepath.Glob(filepath.Join(from, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", from, err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			write(t, dir, filepath.Base(file), string(raw))
		}
		return dir
	}
	same := func(drawn, kept string) {
		t.Helper()
		files, _ := filepath.Glob(filepath.Join(drawn, "*.svg"))
		if len(files) == 0 {
			t.Errorf("nothing was drawn in place of %s", kept)
		}
		for _, file := range files {
			got, _ := os.ReadFile(file)
			want, err := os.ReadFile(filepath.Join(kept, filepath.Base(file)))
			if err != nil || string(got) != string(want) {
				t.Errorf("%s is not what its numbers give: make figures (%v)", filepath.Base(file), err)
			}
		}
	}
	evaluation := copied("../../../docs/evaluation", "*.csv")
	if code, _, stderr := command(t, "evaluate", "all", "--redraw", "--out", evaluation); code != 0 {
		t.Fatal(stderr)
	}
	same(evaluation, "../../../docs/evaluation")
	benchmarks := copied("../../../docs/benchmarks", "exact.csv")
	if code, _, stderr := command(t, "bench", "--redraw", filepath.Join(benchmarks, "exact.csv")); code != 0 {
		t.Fatal(stderr)
	}
	same(benchmarks, "../../../docs/benchmarks")
	if code, _, stderr := command(t, "evaluate", "time", "--redraw", "--out", t.TempDir()); code == 0 ||
		!strings.Contains(stderr, "no results of time") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}
