package main

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/doors/cases"
	"github.com/basetensor/basetensor/pkg/query"
)

// rainWet is P(rain, wet) ∝ 1 2 / 3 0, with names.
const rainWet = `{"basetensor_model": 1, "variables": [{"domain": 2, "name": "rain"}, {"domain": 2, "name": "wet"}],
 "factors": [{"scope": [0, 1], "dense": {"values": [1, 2, 3, 0]}}]}`

func decodeResults(t *testing.T, text string) []query.Result {
	t.Helper()
	var results []query.Result
	for d := json.NewDecoder(strings.NewReader(text)); d.More(); {
		var r query.Result
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
	}
	return results
}

func TestFileOfQueries(t *testing.T) {
	folder := t.TempDir()
	model := write(t, folder, "named.json", rainWet)
	queries := write(t, folder, "queries", `{}
{"evidence": {"rain": 0}, "marginals": true, "event": null}

{"evidence": {"0": 1}, "event": {"wet": 0}, "joint": ["wet"]}
{"evidence": {"1": [0.5, 0]}, "joint": [1, "rain"]}
{"event": {"rain": 1, "wet": 1}}
{"evidence": {"0": 0}, "targets": ["wet"]}`)
	code, stdout, stderr := command(t, "infer", model, "--redis", "off", "--queries", queries, "--json")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	results := decodeResults(t, stdout)
	if len(results) != 8 {
		t.Fatalf("%d results:\n%s", len(results), stdout)
	}
	for i, want := range []struct {
		z     float64
		label string
		ratio float64
	}{{6, ":1", 0}, {3, ":2", 0}, {3, ":4", 0}, {3, ":4 event", 1}, {2, ":5", 0}, {6, ":6", 0},
		{0, ":6 event", 0}} {
		r := results[i]
		if r.Query != i || !strings.HasSuffix(*r.EvidenceFile, queries+want.label) ||
			(r.Ratio != nil && r.Ratio.Ln != nil) != (want.ratio > 0) || r.Zero != (want.z == 0) ||
			want.z > 0 && math.Abs(*r.LogZ-math.Log(want.z)) > 1e-12 || want.ratio > 0 &&
			math.Abs(*r.Ratio.Ln-math.Log(want.ratio)) > 1e-12 {
			t.Errorf("result %d: %+v, want %+v", i, r, want)
		}
	}
	if r := results[1]; r.Marginals == nil || math.Abs(r.Marginals[1].P[1]-2./3) > 1e-12 ||
		results[0].Marginals != nil {
		t.Errorf("%+v", r)
	}
	if j := results[4].Joint; j == nil || j.Variables[0] != 1 || math.Abs(j.P[1]-0.75) > 1e-12 ||
		results[2].Joint == nil || results[3].Joint != nil {
		t.Errorf("%+v", j)
	}
	if r := results[7]; len(r.Marginals) != 1 || math.Abs(r.Marginals[0].P[1]-2./3) > 1e-12 || r.Marginals[0].Variable != 1 {
		t.Errorf("targets: %+v", r)
	}
	code, stdout, stderr = command(t, "infer", model, "--redis", "off", "--target", "wet")
	if code != 0 || !strings.Contains(stdout, "wet  0  0.666667 ") || strings.Contains(stdout, "rain") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = command(t, "infer", model, "--redis", "off", "--queries", queries, "--mar")
	for _, want := range []string{
		"P(wet=0 | rain=1) = 1 (ln 0.0000000000)\n", "P(rain=1, wet=1) = 0: the event is impossible under the evidence\n",
		"evidence    " + queries + ":5: wet=0.5/0\n",
	} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, no %q in\n%s%s", code, want, stdout, stderr)
		}
	}
}

// Answers about values and about the next observations have names beside positions; so has a conflict.
func TestQuestionsInAFileByName(t *testing.T) {
	folder := t.TempDir()
	model := write(t, folder, "engine.json", `{"basetensor_model": 1, "bayes": true,
		"variables": [{"name": "cold", "states": ["no", "yes"]}, {"name": "starts", "states": ["yes", "no"]}],
		"factors": [{"scope": [0], "dense": {"values": [0.75, 0.25]}}, {"scope": [0, 1], "dense": {"values": [1, 0, 0.5, 0.5]}}]}`)
	queries := write(t, folder, "queries", `{"sensitivity": {"variable": "starts", "value": "no", "range": 0.2, "top": 1}}
{"information": {"target": "cold"}}
{"evidence": {"cold": "no", "starts": "no"}, "conflict": true}`)
	code, stdout, stderr := command(t, "infer", model, "--redis", "off", "--queries", queries, "--json")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	results := decodeResults(t, stdout)

	s := results[0].Sensitivity
	if s == nil || math.Abs(s.P-0.125) > 1e-12 || s.Range != 0.2 || len(s.Tornado) != 1 {
		t.Fatalf("%+v", s)
	}
	// P(starts = yes | cold = no) from 0.8 to 1: 0.75·0.2 + 0.25·0.5 at most.
	if n := s.Tornado[0]; math.Abs(n.Low-0.125) > 1e-12 || math.Abs(n.High-0.275) > 1e-12 {
		t.Errorf("%+v", n)
	}
	if n := s.Tornado[0]; s.Name != "starts" || s.State != "no" || !slices.Equal(n.Names, []string{"cold", "starts"}) ||
		!slices.Equal(n.States, []string{"no", "yes"}) || *n.Of != n.Variables[1] {
		t.Errorf("%+v", s)
	}

	i := results[1].Information
	before := -0.75*math.Log(0.75) - 0.25*math.Log(0.25)
	after := -0.875 * (6./7*math.Log(6./7) + 1./7*math.Log(1./7))
	if i == nil || math.Abs(i.Entropy-before) > 1e-12 || len(i.Candidates) != 1 ||
		math.Abs(i.Candidates[0].ExpectedEntropy-after) > 1e-12 {
		t.Errorf("%+v", i)
	}
	if i.Name != "cold" || i.Candidates[0].Name != "starts" {
		t.Errorf("%+v", i)
	}

	last := results[len(results)-1]
	if !last.Zero || cases.DescribeConflict(last.Conflict) != "cold=no with starts=no" {
		t.Errorf("%+v", last.Conflict)
	}
}

func TestFilesOfQueriesThatAreWrong(t *testing.T) {
	folder := t.TempDir()
	model := write(t, folder, "named.json", rainWet)
	for text, want := range map[string]string{
		"":                                     "there is no query",
		"{}\n{\"evidense\": {}}":               `:2: unknown field "evidense"`,
		"{} {}":                                "something follows the end of the JSON value",
		`{"evidence": {"2": 0}}`:               "evidence: variable 2, the model has 2",
		`{"evidence": {"0": 2}}`:               `variable "rain" has no value 2, its values are 0 to 1`,
		`{"evidence": {"0": "x"}}`:             `variable "rain" has no value "x": its values have no names`,
		`{"evidence": {"0": null}}`:            `variable "0": a value, a list`,
		`{"evidence": [1]}`:                    "the model is none: VARIABLE=VALUE is needed",
		`{"targets": ["snow"]}`:                `targets: no variable "snow"`,
		`{"targets": [0, "rain"]}`:             `targets: variable "rain" twice`,
		`{"evidence": {"snow": 0}}`:            `no variable "snow"`,
		`{"evidence": {"rian": 0}}`:            `no variable "rian": did you mean "rain"?`,
		`{"evidence": {"0": 0, "rain": 1}}`:    `variable "rain" observed at "0" and at "1"`,
		`{"evidence": {"0": 0, "0": 1}}`:       `variable "rain" observed at "0" and at "1"`,
		`{"evidence": {"0": [1, 2, 3]}}`:       "3 weights",
		`{"evidence": {"0": 0}, "event": {}}`:  "event: it says nothing",
		`{"event": {"1": 0}, "evidence": null`: "it ends in the middle",
		`{"joint": [7]}`:                       "joint: variable 7",
		`{"joint": [0, "rain"]}`:               `joint: variable "rain" twice`,
	} {
		code, _, stderr := command(t, "infer", model, "--redis", "off", "--queries", write(t, folder, "q", text))
		if code != 3 || !strings.Contains(stderr, want) {
			t.Errorf("%q: exit code %d, %q, want %q", text, code, stderr, want)
		}
	}
	for _, more := range [][]string{{"--evid", "x"}, {"--event", "x"}, {"--format", "uai"}} {
		if code, _, stderr := command(t, append([]string{"infer", model, "--queries", "q"}, more...)...); code != 2 ||
			!strings.Contains(stderr, "exclude") {
			t.Errorf("%v: exit code %d, %q", more, code, stderr)
		}
	}
}
