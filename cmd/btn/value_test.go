package main

import (
	"bytes"
	"math"
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
	"github.com/basetensor/basetensor/pkg/wire"
)

// TestMagnitudes: e^ln in six digits, also where float64 ends; a probability below 1 does not look like 1.
func TestMagnitudes(t *testing.T) {
	for ln, want := range map[float64]string{
		0: "1", math.Log(0.25): "0.25", math.Log(268337): "268337", -1e-16: "1", math.Log1p(-1e-9): "1 - 1e-09", math.Log(1e-20): "1e-20",
		2000: "3.88118e+868", -2000: "2.57654e-869", 1000 * math.Ln10 * (1 - 1e-12): "1.00000e+1000",
	} {
		if got := formatExp(ln); got != want {
			t.Errorf("%v: %q, want %q", ln, got, want)
		}
	}
	// by multiplication: e^2000 = (e^500)^4
	e := new(big.Float).SetPrec(200).SetFloat64(math.Exp(500))
	square := new(big.Float).Mul(e, e)
	if want := new(big.Float).Mul(square, square).Text('e', 5); want != formatExp(2000) {
		t.Errorf("%s, want %s", formatExp(2000), want)
	}
}

// TestImpossibleEvidence: P = 0 is an answer. A command that leaves nothing else to say ends with 1. Each says which observations
// contradict each other.
func TestImpossibleEvidence(t *testing.T) {
	model := write(t, t.TempDir(), "model.json", states+" ")
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"infer", model}, 0},
		{[]string{"infer", model, "--target", "rain"}, 0},
		{[]string{"explain", model}, 1},
		{[]string{"explain", model, "--best", "2"}, 1},
		{[]string{"explain", model, "--map", "rain"}, 1},
		{[]string{"sample", model, "3"}, 1},
	} {
		for _, flags := range [][]string{nil, {"--json"}} {
			args := append(append(c.args, "--redis", "off", "--evid", "rain=yes,wet=yes"), flags...)
			code, stdout, stderr := command(t, args...)
			said := strings.Contains(stdout, "impossible  rain=yes with wet=yes\n") || strings.Contains(stdout, `"conflict":{"observations":[{`)
			if code != c.want || !said || (stderr == "") != (c.want == 0) {
				t.Errorf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
			}
		}
	}
	code, stdout, stderr := command(t, "sample", model, "3", "--redis", "off", "--evid", "rain=yes,wet=yes", "--format", "csv")
	if code != 1 || stdout != "" || stderr != "btn: no sample: the evidence is impossible\n" {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	const three = `{"basetensor_model": 1,
		"variables": [{"domain": 2, "name": "rain"}, {"domain": 2, "name": "wet"}, {"domain": 2, "name": "far"}],
		"factors": [{"scope": [0, 1], "dense": {"values": [1, 2, 3, 0]}}, {"scope": [1, 2], "dense": {"values": [1, 2, 3, 1]}}]}`
	model = write(t, t.TempDir(), "three.json", three)
	for _, args := range [][]string{{"ask", model, "far"}, {"sensitivity", model, "far=1"}} {
		code, stdout, stderr := command(t, append(args, "--redis", "off", "--evid", "rain=1,wet=1")...)
		if code != 1 || !strings.Contains(stdout, "impossible  rain=1 with wet=1\n") || !strings.Contains(stderr, "the evidence is impossible") {
			t.Errorf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
}

// answers returns the lines of an answer without those on the model and the job, and on method and time.
func answers(text string) string {
	var kept []string
	for line := range strings.Lines(text) {
		switch name, _, _ := strings.Cut(line, " "); name {
		case "model", "job", "method", "run", "cache", "time":
		default:
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "")
}

// TestWatchPrintsWhatOthersPrint: the answer to a job is printed as infer prints it, with names and evidence, also if the request has no
// name for the evidence. Before the answer a line says in which stage the job is.
func TestWatchPrintsWhatOthersPrint(t *testing.T) {
	url, _ := up(t)
	ok := func(args ...string) (stdout, stderr string) {
		t.Helper()
		code, stdout, stderr := command(t, append(args, "--nats", url)...)
		if code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, stderr)
		}
		return stdout, stderr
	}
	for _, flags := range [][]string{{"--mar"}, {"--target", "lung,tub"}, {"--mar", "--event", "lung=yes"}, {"--joint", "lung,bronc"}} {
		flags = append(flags, "--evid", "dysp=yes,smoke=no")
		want, _ := ok(append([]string{"infer", asia}, flags...)...)
		job, _ := ok(append([]string{"submit", asia}, flags...)...)
		got, _ := ok("watch", strings.TrimSpace(job))
		if answers(got) != answers(want) || !strings.Contains(want, "evidence    dysp=yes,smoke=no\nP(") {
			t.Errorf("%v: watch prints\n%s\ninfer\n%s", flags, got, want)
		}
	}

	text, err := os.ReadFile(asia)
	if err != nil {
		t.Fatal(err)
	}
	m, err := formats.Read(bytes.NewReader(text), "", asia, uai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	request, err := wire.NewRequest(m)
	if err != nil {
		t.Fatal(err)
	}
	remote, err := client.Connect(url, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer remote.Close()
	request.Job = "unnamed"
	request.Queries = []query.Query{{Evid: "smoke=no,dysp=yes", MPE: true}, {}, {Evid: `{"xray": [0.25, 0.5]}`}}
	if _, err := remote.Submit(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	got, _ := ok("watch", "unnamed")
	for _, want := range []string{
		"job         unnamed\nevidence    smoke=no,dysp=yes\nP(evidence) 0.159567 (ln ", "\nevidence    none\nZ           1 (ln ",
		"\nevidence    {\"xray\": [0.25, 0.5]}\nP(evidence) ", "\nsmoke        no\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// TestUnitsOfLogarithms: bits are nats over ln 2.
func TestUnitsOfLogarithms(t *testing.T) {
	for _, args := range [][]string{{"infer", asia}, {"explain", asia}} {
		code, stdout, stderr := command(t, append(args, "--redis", "off", "--evid", "xray=abnormal", "--bits")...)
		if code != 0 || !strings.Contains(stdout, "P(evidence) 0.11029 (log2 -3.1806") || strings.Contains(stdout, "(ln ") {
			t.Errorf("%v: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
	r := query.Result{Status: "ok", LogZ: number(math.Ln2), Log10Z: number(0.3), Uncertainty: number(math.Ln2), Ended: "deadline",
		Bounds: &query.Bounds{Lower: number(0), Upper: number(2 * math.Ln2), Level: 1, How: "how"}}
	got := printed(t, printer{bits: true, queries: []query.Query{{}}}, r)
	for _, want := range []string{
		"Z           2 (log2 1.0000000000, ",
		"log2 Z is within ±3, Z within a factor of 8, in 95 of 100 such answers; it was cut short by the deadline\n",
		"bounds      log2 Z from 0.0000000000 to 2.0000000000: how\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
}

// TestRankingsAreAsLongAsAsked: by ask --top, and the others are counted.
func TestRankingsAreAsLongAsAsked(t *testing.T) {
	code, stdout, stderr := command(t, "ask", asia, "lung", "--redis", "off", "--top", "2")
	if code != 0 || !strings.Contains(stdout, "            and 5 that say less: --top 7 lists all\n") ||
		strings.Count(stdout[strings.Index(stdout, "entropy left"):], "\n") != 4 {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, _ := command(t, "ask", asia, "lung", "--redis", "off"); code != 0 || strings.Contains(stdout, "--top") {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
	if code, _, stderr := command(t, "ask", asia, "lung", "--top", "0"); code != 2 || !strings.Contains(stderr, "at least 1") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// TestNewsOfStages: a line per stage, with the number of its tasks.
func TestNewsOfStages(t *testing.T) {
	var out strings.Builder
	news := (&watchCmd{Job: "monday"}).stagePrinter(&out)
	for _, p := range []wire.Progress{
		{Stage: query.StageLearn}, {Stage: query.StageContract, Done: 1, Total: 3}, {Stage: query.StageContract, Done: 2, Total: 3},
	} {
		news(p)
	}
	if want := "btn: monday: learn-worker\nbtn: monday: contract-worker, 1 of 3 done\n"; out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
	stages := map[string]float64{query.StageContract: 7, query.StageLearn: 1}
	if got := describeTimings(3, stages); got != "3.0 ms (learn 1.0, contract 7.0), of stages the sum over their workers" {
		t.Error(got)
	}
	if got := describeTimings(9, stages); strings.Contains(got, "sum") {
		t.Error(got)
	}
}

// TestNoUnitIsTakenForTheServer: differences of ln Z are called that.
func TestNoUnitIsTakenForTheServer(t *testing.T) {
	r := query.Result{Status: "ok", LogZ: number(1), Log10Z: number(0.4), Uncertainty: number(0.001), Ended: "settled",
		Warnings: []string{"the estimates still move: by about 0.0059 nats, more than the accuracy asked for (1e-09)", "nats://a is there"}}
	got := printed(t, printer{queries: []query.Query{{}}}, r)
	for _, want := range []string{
		"ln Z is within ±0.003, Z within ±0.3 %, in 95 of 100 such answers\n",
		"warning     the estimates still move: by about 0.0059 in ln Z, more", "warning     nats://a is there\n",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, got)
		}
	}
	r = query.Result{Status: "error", Error: &query.ErrorInfo{Code: "failed_estimate", Message: "above 1 by more (0.3 nats)", Stage: "s"}}
	if got := printed(t, printer{}, r); !strings.Contains(got, "by more (0.3 in ln Z)") {
		t.Error(got)
	}
}

// TestProbabilitiesAreCalledThat: Z of a network is P(evidence), unless nothing is observed or a likelihood is above 1; Z of other models
// is none.
func TestProbabilitiesAreCalledThat(t *testing.T) {
	tables := "\n2\n2 2\n2\n1 0\n2 0 1\n2\n0.5 0.5\n4\n0.25 0.75 0.5 0.5\n"
	folder := t.TempDir()
	network, field := write(t, folder, "bayes.uai", "BAYES"+tables), write(t, folder, "markov.uai", "MARKOV"+tables)
	other := write(t, folder, "other.uai", "BAYES"+strings.Replace(tables, "0.75", "0.5", 1))
	for _, c := range []struct{ model, evidence, want string }{
		{network, "1=1", "P(evidence) 0.625 (ln "}, {network, "none", "Z           1 (ln "}, {network, `{"1": [1, 0.2]}`, "P(evidence) 0.5 (ln "},
		{network, `{"1": [2, 0]}`, "Z           0.75 (ln "}, {field, "1=1", "Z           0.625 (ln "}, {other, "1=1", "Z           0.5 (ln "},
	} {
		code, stdout, stderr := command(t, "infer", c.model, "--redis", "off", "--evid", c.evidence)
		if code != 0 || !strings.Contains(stdout, c.want) {
			t.Errorf("%s, %s: exit code %d, no %q in\n%s%s", c.model, c.evidence, code, c.want, stdout, stderr)
		}
	}
}

// TestSuppositionsAreSaid: variables that are set and posteriors that are believed stand with the evidence, and with the probability.
func TestSuppositionsAreSaid(t *testing.T) {
	for _, c := range []struct{ flag, text, line, probability string }{
		{"--do", "smoke=no", "do          smoke=no\n", "P(lung=yes | dysp=yes, do(smoke=no)) = 0.0238145 "},
		{"--believe", "smoke=0.3/0.7", "believe     smoke=0.3/0.7\n", "P(lung=yes | dysp=yes, beliefs) = "},
	} {
		code, stdout, stderr := command(t, "infer", "../../examples/asia.json", "--redis", "off", "--evid", "dysp=yes", "--event", "lung=yes",
			c.flag, c.text)
		if code != 0 || !strings.Contains(stdout, c.line) || !strings.Contains(stdout, c.probability) {
			t.Errorf("%s: exit code %d\n%s%s", c.flag, code, stdout, stderr)
		}
	}
}
