package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"context"
	"encoding/csv"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/doors/cases"
)

// states is P(rain, wet) ∝ 1 2 / 3 0, with names of the values.
const states = `{"basetensor_model": 1, "variables": [{"domain": 2, "name": "rain", "states": ["no", "yes"]},
 {"domain": 2, "name": "wet", "states": ["no", "yes"]}], "factors": [{"scope": [0, 1], "dense": {"values": [1, 2, 3, 0]}}]}`

// TestCasesThroughThePipeline: rows with every kind of cell, from a compressed file to standard output.
func TestCasesThroughThePipeline(t *testing.T) {
	folder := t.TempDir()
	model := write(t, folder, "model.json", states)
	var zipped bytes.Buffer
	w := gzip.NewWriter(&zipped)
	fmt.Fprint(w, "\ufeffpatient,wet,rain,note\r\na,,,x\r\n\"b,1\",yes,,x\r\nc,no,yes,x\r\nd,yes,yes,x\r\ne,maybe,,x\r\nf,1\r\n")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	input := write(t, folder, "cases.csv.gz", zipped.String())
	code, stdout, stderr := command(t, "cases", model, input, "--target", "rain",
		"--id", "patient", "--ignore", "note", "--redis", "off")
	if code != 0 || !strings.Contains(stderr, "6 rows in ") || !strings.Contains(stderr, "3 with an error") {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	rows, err := csv.NewReader(strings.NewReader(stdout)).ReadAll()
	if err != nil || len(rows) != 7 {
		t.Fatalf("%v: %s", err, stdout)
	}
	for i, want := range [][]any{
		{"row", "patient", "P(rain=no)", "P(rain=yes)", "ln_p_evidence", "exact", "error"},
		{"1", "a", 0.5, 0.5, 0.0, "true", ""},
		{"2", "b,1", 1.0, 0.0, math.Log(2. / 6), "true", ""},
		{"3", "c", 0.0, 1.0, math.Log(3. / 6), "true", ""},
		{"4", "d", "", "", "-inf", "true", "impossible: rain=yes with wet=yes"},
		{"5", "e", "", "", "", "", `line 6: variable "wet" has no value "maybe"`},
		{"6", "f", "", "", "", "", "line 7: 2 cells, the header has 4"},
	} {
		for k, cell := range want {
			number, isNumber := cell.(float64)
			got, err := strconv.ParseFloat(rows[i][k], 64)
			if isNumber && (err != nil || math.Abs(got-number) > 1e-12) || !isNumber && !strings.HasPrefix(rows[i][k], cell.(string)) {
				t.Errorf("row %d: %q, want %v", i, rows[i], want)
			}
		}
	}
	for _, c := range []struct {
		want, model string
		args        []string
	}{
		{"standard input can be read once", "-", []string{"-"}},
		{"--target: no variable \"rian\"", "", []string{input, "--target", "rian"}},
		{"no variable \"patient\"", "", []string{input}},
		{"cannot be resumed", "", []string{input, "-o", "x.gz"}},
	} {
		code, _, stderr := command(t, append([]string{"cases", cmp.Or(c.model, model)}, c.args...)...)
		if code == 0 || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: exit code %d, %s", c.args, code, stderr)
		}
	}
}

// TestKilledCasesGoOn kills the command three times in the middle, and lets it end the fourth time: the file equals the file of an
// undisturbed run.
func TestKilledCasesGoOn(t *testing.T) {
	folder := t.TempDir()
	rng := rand.New(rand.NewPCG(5, 6))
	var b strings.Builder
	b.WriteString("case,wet,rain\n")
	const rows = 20_000
	for i := range rows {
		fmt.Fprintf(&b, "%d,%s,%s\n", i, []string{"", "no", "yes"}[rng.IntN(3)], []string{"", "no", "yes", "what"}[rng.IntN(4)])
	}
	input := write(t, folder, "cases.csv", b.String())
	start := func(ctx context.Context, output string) *exec.Cmd {
		cmd := exec.CommandContext(ctx, os.Args[0])
		cmd.Env = append(os.Environ(), signalled+"="+strings.Join([]string{
			"cases", write(t, folder, "model.json", states), input, "--redis", "off", "--target", "rain", "--id", "case", "-o", output,
		}, "\n"))
		return cmd
	}
	ctx, end := context.WithTimeout(context.Background(), 5*time.Minute)
	defer end()
	whole, killed := filepath.Join(folder, "whole.csv"), filepath.Join(folder, "killed.csv")
	if out, err := start(ctx, whole).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	want, err := os.ReadFile(whole)
	if err != nil {
		t.Fatal(err)
	}
	size := func() int64 {
		if info, err := os.Stat(killed); err == nil {
			return info.Size()
		}
		return 0
	}
	for k := range 3 {
		cmd := start(ctx, killed)
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		for until := size() + int64(len(want))/6; size() < until && ctx.Err() == nil; {
			time.Sleep(time.Millisecond)
		}
		cmd.Process.Kill()
		cmd.Wait()
		if size() >= int64(len(want)) {
			t.Fatalf("kill %d came after the end", k)
		}
	}
	out, err := start(ctx, killed).CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("were there")) {
		t.Fatalf("%v: %s", err, out)
	}
	if got, err := os.ReadFile(killed); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%v: %d bytes, want %d", err, len(got), len(want))
	}
}

// TestProgressOfCasesInALog: without a terminal a line says how far the rows are, and the next one waits for its time.
func TestProgressOfCasesInALog(t *testing.T) {
	var log bytes.Buffer
	var read atomic.Int64
	read.Store(25)
	p := &sweepProgress{log: &log, size: 100, readBytes: &read, began: time.Now().Add(-20 * time.Second)}
	p.show(cases.Progress{Rows: 400, Failed: 2})
	p.shownAt = time.Now().Add(time.Hour)
	p.show(cases.Progress{Rows: 450})
	if got := log.String(); strings.Count(got, "\n") != 1 || !strings.HasPrefix(got, "btn: 25 % 400 rows in 2") ||
		!strings.HasSuffix(got, " a second; 2 with an error\n") {
		t.Errorf("%q", got)
	}
}
