package main

import (
	"math"
	"slices"
	"strings"
	"testing"
)

// TestAssignments: by flags and in files of queries, for people and as JSON.
func TestAssignments(t *testing.T) {
	folder := t.TempDir()
	model := write(t, folder, "named.json", rainWet)
	code, stdout, stderr := command(t, "infer", model, "--redis", "off", "--mpe", "--map", "wet", "--samples", "2", "--seed", "4")
	for _, want := range []string{
		"mpe         ln weight 1.0986122887 nats, no other is as good\n            P(mpe | evidence) 0.5\n",
		"map         ln weight 1.3862943611 nats, the best\n",
		"samples     2, seed 4, a line each, ",
	} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, no %q in\n%s%s", code, want, stdout, stderr)
		}
	}

	queries := write(t, folder, "queries", `{"mpe": true}
{"evidence": {"rain": 0}, "map": ["wet", 0], "samples": 50, "seed": 9}
{"evidence": {"rain": 1, "wet": 1}, "mpe": true, "samples": 1}`)
	code, stdout, stderr = command(t, "infer", model, "--redis", "off", "--queries", queries, "--samples", "3", "--seed", "5", "--json")
	results := decodeResults(t, stdout)
	if code != 0 || len(results) != 3 {
		t.Fatalf("exit code %d, %d results: %s", code, len(results), stderr)
	}
	if r := results[0]; r.MPE == nil || !slices.Equal(r.MPE.Assignment, []int{1, 0}) || !r.MPE.Unique ||
		math.Abs(r.MPE.LnWeight-math.Log(3)) > 1e-14 || r.Map != nil || len(r.Samples) != 3 || *r.Seed != 5 {
		t.Errorf("%+v", r)
	}
	if r := results[1]; r.MPE != nil || r.Map == nil || !slices.Equal(r.Map.Variables, []int{1, 0}) || !r.Map.Exact ||
		!slices.Equal(r.Map.Assignment, []int{1, 0}) || r.Map.LnBound != nil || len(r.Samples) != 50 || *r.Seed != 9 {
		t.Errorf("%+v", r)
	}
	wet := 0
	for _, x := range results[1].Samples {
		if x[0] != 0 {
			t.Fatalf("sample %v, and rain is 0", x)
		}
		wet += x[1]
	}
	if wet < 20 || wet > 45 { // two thirds of 50 are expected
		t.Errorf("%d of 50 samples are wet", wet)
	}
	if r := results[2]; !r.Zero || r.MPE != nil || r.Samples != nil || r.Seed != nil {
		t.Errorf("%+v", r)
	}

	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--map", "wett"}, "wet"},
		{[]string{"--map", "0,rain"}, "twice"},
		{[]string{"--samples", "-1"}, "--samples"},
		{[]string{"--samples", "100000000"}, "samples"},
		{[]string{"--mpe", "--format", "uai"}, "--format uai"},
		{[]string{"--mpe", "--method", "truncated"}, "exactly only"},
	} {
		code, stdout, stderr := command(t, append([]string{"infer", model, "--redis", "off"}, c.args...)...)
		if code == 0 || !strings.Contains(stdout+stderr, c.says) {
			t.Errorf("%v: exit code %d, no %q in\n%s%s", c.args, code, c.says, stdout, stderr)
		}
	}
}
