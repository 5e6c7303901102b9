package main

import (
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/query"
)

// awkward is a network whose names need care in a CSV file: commas, formulas, words for a missing value, positions.
const awkward = `{"basetensor_model": 1, "bayes": true, "variables": [
 {"name": "sky, above", "states": ["clear, blue", "=grey"]}, {"name": "=wind", "states": ["NA", "low|high", "1"]},
 {"name": "rain", "states": ["no", "yes"]}],
 "factors": [{"scope": [0], "dense": {"values": [0.7, 0.3]}}, {"scope": [0, 1], "dense": {"values": [0.5, 0.3, 0.2, 0.1, 0.3, 0.6]}},
 {"scope": [0, 1, 2], "dense": {"values": [0.9, 0.1, 0.8, 0.2, 0.6, 0.4, 0.5, 0.5, 0.3, 0.7, 0.1, 0.9]}}]}`

// TestSamplesFitTheirModel: the tables fitted to samples are the model's, within five standard deviations of a share among the draws of
// its row; and the probability of the samples' cases is asked as of any other.
func TestSamplesFitTheirModel(t *testing.T) {
	folder := t.TempDir()
	model := write(t, folder, "names.json", awkward)
	const count = 20000
	code, stdout, stderr := command(t, "sample", model, "20000", "--seed", "7", "--redis", "off", "--format", "csv")
	if code != 0 || stderr != "" || strings.Count(stdout, "\n") != count+1 {
		t.Fatalf("exit code %d, %d lines: %s", code, strings.Count(stdout, "\n"), stderr)
	}
	samples := write(t, folder, "samples.csv", stdout)
	want := tablesOf(t, model)
	got, _ := fitTables(t, filepath.Join(folder, "fitted.json"), model, samples)
	const leastRow = 0.3 * 0.1 * count // draws of the rarest row of parents
	for f, table := range want.tables {
		for i, p := range table {
			if math.Abs(got[f][i]-p) > 5*math.Sqrt(p*(1-p)/leastRow) {
				t.Errorf("factor %d, number %d: %v, want %v", f, i, got[f][i], p)
			}
		}
	}
	few := write(t, folder, "few.csv", strings.Join(strings.SplitAfter(stdout, "\n")[:4], ""))
	code, stdout, stderr = command(t, "cases", model, few, "--redis", "off")
	if code != 0 || strings.Count(stdout, ",true,\n") != 3 {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

// TestSamplesByName: below a line with the variables, and weights before them.
func TestSamplesByName(t *testing.T) {
	s := &query.Samples{Assignments: [][]int{{0, 1}, {1, 0}}, Weights: []float64{0.25, 0.75}, Effective: number(1.6), Seed: 3}
	r := query.Result{Status: "ok", Answers: query.Answers{Samples: s}}
	for want, names := range map[string]query.Names{
		"weight    x_0  x_1\n0.250000  0    1\n0.750000  1    0\n":  {},
		"weight    rain  w\n0.250000  no    1\n0.750000  yes   0\n": {Variables: []string{"rain", "w"}, States: [][]string{{"no", "yes"}, nil}},
	} {
		r.Name(names)
		const head = "samples     2, seed 3, a line each behind its weight, together worth 1.6 of the same weight\n"
		if got := printed(t, printer{queries: []query.Query{{}}, names: names}, r); !strings.Contains(got, head+want) {
			t.Errorf("no %q in\n%s", head+want, got)
		}
		s.Names, s.States = nil, nil
	}
	for _, args := range [][]string{{"--json"}, {"--evid", "none", "--evid", "none"}} {
		if code, _, _ := command(t, append([]string{"sample", asia, "2", "--format", "csv"}, args...)...); code != 2 {
			t.Errorf("%v: exit code %d", args, code)
		}
	}
}
