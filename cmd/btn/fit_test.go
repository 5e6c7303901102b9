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

// TestFitSaysWhatCasesDoNot: without cases of rain, its rows stay or have the pseudocount alone, which a third observation shows; what no
// case observes, has or reaches is said in a line each, and so are columns that are passed over.
func TestFitSaysWhatCasesDoNot(t *testing.T) {
	folder := t.TempDir()
	const mud = "variable mud { type discrete [ 2 ] { no, yes }; }\n"
	text := strings.Replace(rainFiles("0.3, 0.7")["rain.bif"], "variable wet", mud+"variable wet", 1)
	text += "probability ( mud | rain ) {\n  (no) 0.8, 0.2;\n  (yes) 0.1, 0.9;\n}\n"
	model := write(t, folder, "rain.bif", text)
	data := write(t, folder, "dry.csv", ",rain,wet\n1,no,yes\n2,no,no\n3,no,no\n4,no,no\n")
	for _, c := range []struct {
		flags []string
		row   string // of wet, where it rains
		says  []string
	}{
		{nil, "(yes) 0.3, 0.7;", []string{
			"--pseudocount or --prior keeps it above 0", "they keep the numbers that the fit began with",
		}},
		{[]string{"--pseudocount", "1"}, "(yes) 0.5, 0.5;", []string{
			"only the counts that are added decide", "a pseudocount makes them uniform",
		}},
	} {
		output := filepath.Join(folder, "fitted.bif")
		code, _, stderr := command(t, append([]string{"fit", model, data, "-o", output}, c.flags...)...)
		fitted, err := os.ReadFile(output)
		if code != 0 || err != nil || !strings.Contains(string(fitted), c.row) {
			t.Errorf("%v: exit code %d, %v, no %q in %s", c.flags, code, err, c.row, fitted)
		}
		for _, want := range append(c.says, `left out: column 1 (without a name)`, `no case observes "mud": `, `no case has "rain" = "yes": `,
			`no case reaches 2 of 5 rows (first in the table of "mud" (line 10): the row of "rain" = "yes"); `) {
			if strings.Count(stderr, want) != 1 {
				t.Errorf("%v: no %q in\n%s", c.flags, want, stderr)
			}
		}
	}
}

// TestFitOfRoundedAndWrongRows: a fit divides rows that rounding explains as answers do, and names a row that it does not explain.
func TestFitOfRoundedAndWrongRows(t *testing.T) {
	folder := t.TempDir()
	data := write(t, folder, "cases.csv", "rain,wet\nno,yes\nyes,no\nyes,yes\nno,no\n")
	for numbers, c := range map[string]struct {
		code int
		says string
	}{
		"0.33, 0.66": {0, `the row of "rain" = "yes" (line 7) sums to 0.99: it was divided by its sum`},
		"0.2, 0.6":   {3, `the row of "rain" = "yes" (line 7) sums to 0.8, which rounding does not explain: only Bayesian networks whose rows`},
	} {
		model := write(t, folder, "rain.bif", rainFiles(numbers)["rain.bif"])
		code, _, stderr := command(t, "fit", model, data, "-o", filepath.Join(folder, "fitted.bif"))
		if code != c.code || !strings.Contains(stderr, c.says) {
			t.Errorf("%s: exit code %d, no %q in\n%s", numbers, code, c.says, stderr)
		}
	}
}
