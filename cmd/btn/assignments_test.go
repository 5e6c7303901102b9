package main

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// TestAssignments: by commands and in files of queries, for people and as JSON.
func TestAssignments(t *testing.T) {
	folder := t.TempDir()
	model := write(t, folder, "named.json", rainWet)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"explain", model},
			"best        probability 0.5 (ln weight 1.0986122887), no other is as good\nrain         1\nwet          0\n"},
		{[]string{"explain", model, "--best", "3"}, "next best   2, a line each with what differs from the best; no further one is possible\n" +
			"   2  probability 0.333333 (ln weight 0.6931471806)  rain=0, wet=1\n"},
		{[]string{"explain", model, "--best", "2"}, "next best   1, a line each with what differs from the best\n   2  probability 0.333333 "},
		{[]string{"explain", model, "--map", "wet"}, "best        probability 0.666667 (ln weight 1.3862943611), the best\nwet          0\n"},
		{[]string{"sample", model, "2", "--seed", "4"}, "samples     2, seed 4, a line each\nrain  wet\n"},
	} {
		code, stdout, stderr := command(t, append(c.args, "--redis", "off")...)
		if code != 0 || !strings.Contains(stdout, c.want) {
			t.Errorf("%v: exit code %d, no %q in\n%s%s", c.args, code, c.want, stdout, stderr)
		}
	}

	queries := write(t, folder, "queries", `{"mpe": true, "samples": 3, "seed": 5}
{"evidence": {"rain": 0}, "map": ["wet", 0], "samples": 50, "seed": 9}
{"evidence": {"rain": 1, "wet": 1}, "mpe": true, "samples": 1}`)
	code, stdout, stderr := command(t, "infer", model, "--redis", "off", "--queries", queries, "--json")
	results := decodeResults(t, stdout)
	if code != 0 || len(results) != 3 {
		t.Fatalf("exit code %d, %d results: %s", code, len(results), stderr)
	}
	if r := results[0]; r.MPE == nil || !slices.Equal(r.MPE.Assignment, []int{1, 0}) || !r.MPE.Unique ||
		math.Abs(r.MPE.LnWeight-math.Log(3)) > 1e-14 || r.Map != nil || len(r.Samples.Assignments) != 3 || r.Samples.Seed != 5 {
		t.Errorf("%+v", r)
	}
	if r := results[1]; r.MPE != nil || r.Map == nil || !slices.Equal(r.Map.Variables, []int{1, 0}) || !r.Map.Exact ||
		!slices.Equal(r.Map.Assignment, []int{1, 0}) || r.Map.LnBound != nil || len(r.Samples.Assignments) != 50 || r.Samples.Seed != 9 {
		t.Errorf("%+v", r)
	}
	wet := 0
	for _, x := range results[1].Samples.Assignments {
		if x[0] != 0 {
			t.Fatalf("sample %v, and rain is 0", x)
		}
		wet += x[1]
	}
	if wet < 20 || wet > 45 { // two thirds of 50 are expected
		t.Errorf("%d of 50 samples are wet", wet)
	}
	if r := results[2]; !r.Zero || r.MPE != nil || r.Samples != nil {
		t.Errorf("%+v", r)
	}

	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"explain", model, "--map", "wett"}, "wet"},
		{[]string{"explain", model, "--map", "0,rain"}, "twice"},
		{[]string{"explain", model, "--best", "2", "--map", "wet"}, "--best: it lists assignments of all variables"},
		{[]string{"explain", model, "--best", "1001"}, "at most 1000 are listed"},
		{[]string{"sample", model, "--", "-1"}, "is at least 1, not -1"},
		{[]string{"sample", model, "100000000"}, "samples"},
		{[]string{"explain", model, "--format", "uai"}, "unknown flag --format"},
		{[]string{"explain", model, "--method", "truncated"}, "exactly only"},
	} {
		code, stdout, stderr := command(t, append([]string{c.args[0], "--redis", "off"}, c.args[1:]...)...)
		if code == 0 || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("%v: exit code %d, no %q in\n%s%s", c.args, code, c.says, stdout, stderr)
		}
	}
}
