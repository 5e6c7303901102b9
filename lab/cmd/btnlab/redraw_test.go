package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestFiguresAreThoseOfTheirNumbers: the figures and the tables in docs agree with the CSV files beside them, and all figures are shown.
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
	const page = "../../../docs/evaluation/README.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	// without its tables, so that none stays because nothing writes it
	marks := regexp.MustCompile(`(?s)(<!-- table: [^\n]* -->\n).*?<!-- end -->`)
	again := write(t, t.TempDir(), "evaluation.md", marks.ReplaceAllString(string(text), "$1<!-- end -->"))
	if code, _, stderr := command(t, "evaluate", "all", "--redraw", "--out", evaluation, "--page", again); code != 0 {
		t.Fatal(stderr)
	}
	same(evaluation, "../../../docs/evaluation")
	if written, err := os.ReadFile(again); err != nil || string(written) != string(text) {
		t.Errorf("tables of %s are not what its numbers give: make figures (%v)", page, err)
	}
	drawings, _ := filepath.Glob("../../../docs/evaluation/*.svg")
	for _, file := range drawings {
		experiment, _, _ := strings.Cut(filepath.Base(file), "-")
		if !strings.Contains(string(text), filepath.Base(file)) && !strings.Contains(string(text), experiment+"-*.svg") {
			t.Errorf("%s does not show %s", page, filepath.Base(file))
		}
		if _, err := os.Stat(filepath.Join(evaluation, filepath.Base(file))); err != nil {
			t.Errorf("nothing draws %s", filepath.Base(file))
		}
	}
	benchmarks := copied("../../../docs/benchmarks", "exact.csv")
	if code, _, stderr := command(t, "bench", "--redraw", filepath.Join(benchmarks, "exact.csv")); code != 0 {
		t.Fatal(stderr)
	}
	same(benchmarks, "../../../docs/benchmarks")
	explained := filepath.Join(copied("../../../docs/benchmarks", "explain.csv"), "explain.csv")
	code, out, stderr := command(t, "explain", "--redraw", "--out", explained)
	if code != 0 {
		t.Fatal(stderr)
	}
	same(filepath.Dir(explained), "../../../docs/benchmarks")
	if page, err := os.ReadFile("../../../docs/benchmarks/questions.md"); err != nil || !strings.Contains(string(page), firstLine(out)) {
		t.Errorf("docs/benchmarks/questions.md does not say %q (%v)", firstLine(out), err)
	}
	if code, _, stderr := command(t, "evaluate", "time", "--redraw", "--out", t.TempDir()); code == 0 ||
		!strings.Contains(stderr, "no results of time") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
