package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/query"
)

// write makes a file with the text and returns its path.
func write(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// pair is P(x_0, x_1) ∝ 1 2 / 3 0.
const pair = "MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 2 3 0\n"

// command runs btn and returns its output.
func command(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, err bytes.Buffer
	code = run(context.Background(), args, &out, &err)
	return code, out.String(), err.String()
}

func TestProbabilityOfAnEvent(t *testing.T) {
	folder := t.TempDir()
	model, zero, one := write(t, folder, "pair.uai", pair), write(t, folder, "zero", "1 0 0"), write(t, folder,
		"one", "1 0 1")
	last := write(t, folder, "last", "1 1 1")
	code, stdout, stderr := command(t, "infer", model, "--redis", "off", "--json", "--mar", "--evid", zero,
		"--evid", "none", "--evid", one, "--event", last)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	var results []query.Result
	for d := json.NewDecoder(strings.NewReader(stdout)); d.More(); {
		var r query.Result
		if err := d.Decode(&r); err != nil {
			t.Fatal(err)
		}
		results = append(results, r)
	}
	if len(results) != 6 {
		t.Fatalf("%d results:\n%s", len(results), stdout)
	}
	// P(x_1 = 1 | x_0 = 0) = 2/3, P(x_1 = 1) = 2/6, P(x_1 = 1 | x_0 = 1) = 0
	for q, want := range map[int]float64{3: math.Log(2. / 3), 4: math.Log(1. / 3)} {
		if r := results[q]; r.Ratio == nil || math.Abs(*r.Ratio.Ln-want) > 1e-12 || r.Marginals != nil ||
			!strings.HasSuffix(*r.EvidenceFile, last) {
			t.Errorf("query %d: %+v, want ln %v", q, r, want)
		}
	}
	if r := results[5].Ratio; results[0].Ratio != nil || results[0].Marginals == nil || r == nil || r.Ln != nil || *r.P != 0 ||
		!results[5].Zero {
		t.Errorf("%s", stdout)
	}
	code, stdout, stderr = command(t, "infer", model, "--redis", "off", "--evid", one, "--evid",
		"none", "--event", last)
	for _, want := range []string{
		"P(x_1=1 | x_0=1) = 0: the event is impossible under the evidence\n",
		"P(x_1=1) = 0.333333 (ln -1.0986122887)\n", "run ",
	} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, no %q in\n%s%s", code, want, stdout, stderr)
		}
	}
}

func TestEventsThatCannotBeAsked(t *testing.T) {
	folder := t.TempDir()
	model, zero, one := write(t, folder, "pair.uai", pair), write(t, folder, "zero", "1 0 0"), write(t, folder,
		"one", "1 0 1")
	for name, c := range map[string]struct {
		args []string
		want []string
	}{
		"contradiction": {
			[]string{"--evid", zero, "--event", one},
			[]string{zero, one, "contradict", "variable 0 observed at 0 and at 1"},
		},
		"missing": {[]string{"--event", filepath.Join(folder, "nowhere")}, []string{"nowhere"}},
		"range":   {[]string{"--event", write(t, folder, "range", "1 7 0")}, []string{"range"}},
		"empty":   {[]string{"--event", write(t, folder, "empty", "0")}, []string{"empty", "says nothing"}},
	} {
		code, _, stderr := command(t, append([]string{"infer", model, "--redis", "off"}, c.args...)...)
		for _, want := range c.want {
			if code == 0 || !strings.Contains(stderr, want) {
				t.Errorf("%s: exit code %d, no %q in %q", name, code, want, stderr)
			}
		}
	}
	for _, other := range []string{"--event=" + one, "--gradients"} {
		if code, _, stderr := command(t, "infer", model, other, "--format", "uai"); code != 2 ||
			!strings.Contains(stderr, "exclude each other") {
			t.Errorf("%s: exit code %d, %q", other, code, stderr)
		}
	}
}

func TestJointMarginalsOfTheCommand(t *testing.T) {
	folder := t.TempDir()
	model := write(t, folder, "pair.uai", pair)
	code, stdout, stderr := command(t, "infer", model, "--redis", "off", "--joint", "1,0")
	want := "joint       x_1 x_0 \n" +
		"              0   0 0.166667\n" +
		"              0   1 0.500000\n" +
		"              1   0 0.333333\n" +
		"              1   1 0.000000\n"
	if code != 0 || !strings.Contains(stdout, want) {
		t.Errorf("exit code %d, no\n%s in\n%s%s", code, want, stdout, stderr)
	}
	code, stdout, _ = command(t, "infer", model, "--redis", "off", "--joint", "1", "--json")
	if code != 0 || !strings.Contains(stdout,
		`"joint":{"variables":[1],"shape":[2],"p":[0.6666666666666666,0.333333333333333`) {
		t.Errorf("exit code %d: %s", code, stdout)
	}
	var many strings.Builder
	joint := query.Joint{Variables: []int{3, 5}, Shape: []int{5, 13}, P: make([]float64, 65)}
	writeJoint(nil, &many, &query.Result{Answers: query.Answers{Joint: &joint}})
	if many.String() != "joint       65 cells of 2 variables: --json prints them\n" {
		t.Errorf("%q", many.String())
	}
	for set, want := range map[string]string{"0,2": "variable 2, the model has 2", "1,1": `variable "1" twice`, "x": `no variable "x"`} {
		if code, _, stderr := command(t, "infer", model, "--redis", "off", "--joint", set); code == 0 ||
			!strings.Contains(stderr, want) {
			t.Errorf("--joint %s: exit code %d, %q", set, code, stderr)
		}
	}
	if code, stdout, _ := command(t, "infer", model, "--redis", "off", "--joint", "0", "--method",
		"symmetry-cp"); code == 0 || !strings.Contains(stdout, "unsupported: ") ||
		!strings.Contains(stdout, "exactly only") {
		t.Errorf("symmetry-cp: exit code %d, %q", code, stdout)
	}
	for _, args := range [][]string{{"--joint", "0", "--format", "uai"}} {
		if code, _, stderr := command(t, append([]string{"infer", model}, args...)...); code != 2 {
			t.Errorf("%v: exit code %d, %q", args, code, stderr)
		}
	}
}

// TestWhatToAskNext: P(rain, wet) ∝ 1 2 / 3 0, by hand.
func TestWhatToAskNext(t *testing.T) {
	folder := t.TempDir()
	model := write(t, folder, "model.json", states)
	utility := write(t, folder, "utility.json", `{"umbrella": {"no": -1, "yes": 2}, "none": [0, -6]}`)
	code, stdout, stderr := command(t, "ask", model, "rain", "--redis", "off", "--utility", utility)
	for _, want := range []string{
		"ask next    entropy of rain: 0.693147 (natural logarithms; --bits: bits)\n",
		"            best now: umbrella, worth 0.5\n",
		"            variable  information  entropy left  gain in utility\n",
		// wet: rain is no, 2/6; dry: rain is yes with 3/4, 4/6. Then none, worth 0, and umbrella, worth 5/4.
		fmt.Sprintf("            wet          %f      %f         0.333333\n", math.Log(2)-h(0.25)*4/6, h(0.25)*4/6),
	} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, no %q in\n%s%s", code, want, stdout, stderr)
		}
	}
	queries := write(t, folder, "queries", `{"information": {"target": "rain", "candidates": ["wet"], "utility": [[1, 0], {"yes": 4}]}}`)
	code, stdout, stderr = command(t, "infer", model, "--redis", "off", "--queries", queries, "--json")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	r := decodeResults(t, stdout)[0]
	if i := r.Information; i == nil || *i.Action != 1 || math.Abs(*i.ExpectedUtility-2) > 1e-12 || len(i.Candidates) != 1 ||
		math.Abs(*i.Candidates[0].UtilityGain-1./3) > 1e-12 {
		t.Errorf("%s", stdout)
	}
	for want, args := range map[string][]string{
		"rain is observed already, at yes":                               {"rain", "--evid", "rain=yes"},
		`candidates: no variable "we": did you mean "wet"?`:              {"rain", "--candidates", "we"},
		"--candidates: the variable that is asked about is no candidate": {"rain", "--candidates", "rain"},
	} {
		if code, _, stderr := command(t, append([]string{"ask", "--redis", "off", model}, args...)...); code != 3 ||
			!strings.Contains(stderr, want) {
			t.Errorf("%q: exit code %d, %s", args, code, stderr)
		}
	}
}

// TestImpossibleEvidenceNamesAConflict: also in JSON, and not where that is turned off.
func TestImpossibleEvidenceNamesAConflict(t *testing.T) {
	model := write(t, t.TempDir(), "model.json", states)
	code, stdout, stderr := command(t, "infer", model, "--redis", "off", "--evid", "rain=yes,wet=yes")
	if code != 0 || !strings.Contains(stdout, "impossible  rain=yes with wet=yes\n") {
		t.Errorf("exit code %d:\n%s%s", code, stdout, stderr)
	}
	for _, flags := range [][]string{{"--json"}, {"--json", "--no-conflict"}} {
		code, stdout, stderr := command(t, append([]string{"infer", model, "--redis", "off", "--evid", "rain=yes,wet=yes"}, flags...)...)
		if code != 0 {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		c := decodeResults(t, stdout)[0].Conflict
		if off := len(flags) == 2; off != (c == nil) || !off && (len(c.Observations) != 2 || !c.Smallest) {
			t.Errorf("%v: %s", flags, stdout)
		}
	}
}

// h is the entropy of p and 1−p in nats.
func h(p float64) float64 { return -p*math.Log(p) - (1-p)*math.Log(1-p) }
