package main

import (
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/query"
)

const asia = "../../examples/asia.json"

// withoutTimes removes from results the parts that differ from run to run, and the names of the evidence.
func withoutTimes(results []query.Result) []query.Result {
	for i := range results {
		results[i].TimingsMS, results[i].EvidenceFile, results[i].Job = nil, nil, ""
	}
	return results
}

// TestNamesMeanPositions: evidence, events and joint marginals in any form give the same results as positions.
func TestNamesMeanPositions(t *testing.T) {
	folder := t.TempDir()
	ask := func(args ...string) []query.Result {
		code, stdout, stderr := command(t, append([]string{"infer", asia, "--redis", "off", "--json", "--mar"}, args...)...)
		if code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, stderr)
		}
		return withoutTimes(decodeResults(t, stdout))
	}
	want := ask("--evid", write(t, folder, "positions", "2 2 1 6 1"), "--joint", "3,4", "--event", write(t, folder, "event", "1 7 1"))
	if len(want) != 2 || want[0].Marginals == nil || want[0].Joint == nil || want[1].Ratio == nil {
		t.Fatalf("%+v", want)
	}
	object := `{"smoke": "yes", "xray": "abnormal"}`
	for _, args := range [][]string{
		{"--evid", "smoke=yes,xray=abnormal", "--joint", "lung,bronc", "--event", "dysp=yes"},
		{"--evid", "xray=abnormal,2=yes", "--joint", "3,bronc", "--event", "7=yes"},
		{"--evid", object, "--joint", "lung", "--joint", "bronc", "--event", `{"dysp": 1}`},
		{"--evid", write(t, folder, "e.json", object), "--joint", "lung,4", "--event", write(t, folder, "lines", "dysp=yes\n")},
		{"--queries", write(t, folder, "q", `{"evidence": `+object+`, "joint": ["lung", 4], "event": {"dysp": "yes"}}`)},
	} {
		if got := ask(args...); !reflect.DeepEqual(got, want) {
			t.Errorf("%v:\n%+v, want\n%+v", args, got, want)
		}
	}
	// a file that is called like an assignment is a file
	t.Chdir(folder)
	model := write(t, folder, "pair.uai", pair)
	if err := os.WriteFile("0=1", []byte("1 0 0"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, stdout, stderr := command(t, "infer", model, "--redis", "off", "--evid", "0=1"); code != 0 ||
		!strings.Contains(stdout, "Z           3 (ln 1.0986122887, log10 0.4771212547)") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

func TestNamesThatAreWrong(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--evid", "smok=yes"}, `btn: smok=yes: no variable "smok": did you mean "smoke"?`},
		{[]string{"--evid", "xray=yes"}, `variable "xray" has no value "yes": there are "normal" and "abnormal"`},
		{[]string{"--evid", "xray=1"}, `variable "xray" has no value "1": there are "normal" and "abnormal"`},
		{[]string{"--evid", "smoke"}, `smoke: no file has this name, and it is no evidence (smoke is a variable: ` +
			`there are "no" and "yes"): VARIABLE=VALUE,… is, as smoke=yes`},
		{[]string{"--event", "smok.evid"}, "smok.evid: no file has this name, and it is no evidence: VARIABLE=VALUE,… is, as asia=yes"},
		{[]string{"--event", `{"dyps": "yes"}`}, `no variable "dyps": did you mean "dysp"?`},
		{[]string{"--joint", "lungs"}, `--joint: no variable "lungs": did you mean "lung"?`},
		{[]string{"--joint", "lung,3"}, `variable "lung" twice`},
		{[]string{"--evid", "smoke=yes", "--event", "smoke=no"}, `variable "smoke" observed at "yes" and at "no"`},
	} {
		code, _, stderr := command(t, append([]string{"infer", asia, "--redis", "off"}, c.args...)...)
		if code != 3 || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit code %d, %q, want %q", c.args, code, stderr, c.want)
		}
	}
}

// TestErrorsOfQueriesHaveNames: an error about a query names flags, variables and values, not fields and positions, and limits say what to
// do instead.
func TestErrorsOfQueriesHaveNames(t *testing.T) {
	folder := t.TempDir()
	model := write(t, folder, "rain.bif", rainFiles("0.3, 0.7")["rain.bif"])
	queries := write(t, folder, "queries.jsonl", `{"believe": {"wet": [0.3, 0.3]}}`+"\n")
	data := write(t, folder, "cases.csv", "wet\nyes\n?\n")
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"infer", model, "--believe", "rain=0.5/0.6"}, `btn: --believe: the probabilities of "rain" sum to 1.1, not to 1`},
		{[]string{"infer", model, "--believe", "wet=0.5/0.5", "--evid", "wet=yes"}, `btn: --believe: "wet" is observed: `},
		{[]string{"infer", model, "--queries", queries}, `btn: --queries: query 1: believe: the probabilities of "wet" sum to 0.6, not to 1`},
		{[]string{"cases", model, data, "--believe", "rain=0.5/0.6"}, `btn: --believe: the probabilities of "rain" sum to 1.1, not to 1`},
		{[]string{"plan", model, "--joint", "wet,wet"}, `btn: --joint: variable "wet" twice`},
		{[]string{"ask", model, "wet", "--candidates", "wet"}, `btn: --candidates: the variable that is asked about is no candidate`},
		{[]string{"explain", model, "--best", "100000"}, `btn: --best: 100000 assignments: at most 1000 are listed, `},
		{[]string{"sample", model, "100000000"}, `btn: COUNT: 100000000 samples: at most 8388608 of 2 variables, `},
	} {
		if code, _, stderr := command(t, c.args...); code != 3 || !strings.HasPrefix(stderr, c.want) {
			t.Errorf("%v: exit code %d, %q, want %q", c.args[2:], code, stderr, c.want)
		}
	}
	code, stdout, stderr := command(t, "cases", model, data, "--believe", "wet=0.5/0.5")
	if code != 0 || !strings.Contains(stdout, `line 2: variable ""wet"" is observed, and its posterior is believed`) ||
		!strings.Contains(stdout, "\n2,0,true,\n") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}

// TestWhatWasMeant: the mistakes that people make with evidence, lists and the sequence of files are answered by how it is written.
func TestWhatWasMeant(t *testing.T) {
	folder := t.TempDir()
	data := write(t, folder, "cases.csv", "smoke\nyes\n")
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"infer", asia, "smoke=yes"}, 2, "btn: unexpected argument smoke=yes, did you mean --evid smoke=yes?"},
		{[]string{"infer", asia, "--target", "smoke", "lung"}, 2, "btn: unexpected argument lung: names in a list have commas between them"},
		{[]string{"infer", asia, "--evid", "smoke=yes lung=no"}, 3,
			`btn: smoke=yes lung=no: variable "smoke" has no value "yes lung=no": there are "no" and "yes"; between assignments there are commas`},
		{[]string{"cases", data, asia}, 3, "btn: " + data + `: line 1: "smoke" begins no format that is read`},
		{[]string{"sample", asia}, 2, "btn: sample: COUNT, the number of samples, is at least 1"},
	} {
		code, _, stderr := command(t, c.args...)
		if code != c.code || !strings.HasPrefix(stderr, c.want) {
			t.Errorf("%v: exit code %d, %q, want %q", c.args, code, stderr, c.want)
		}
		if c.args[0] == "cases" && !strings.HasSuffix(stderr, "; a file of cases comes behind the model\n") {
			t.Errorf("%v: %q", c.args, stderr)
		}
	}
}
