package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/basetensor/basetensor/pkg/query"
)

// TestNumbersThatMoveNothing are drawn, too: their bars have no length to be divided by.
func TestNumbersThatMoveNothing(t *testing.T) {
	var b strings.Builder
	s := query.SensitivityResult{P: 0.5, Tornado: []query.Swing{{Low: 0.5, High: 0.5}}}
	writeTornado(nil, &b, &query.Result{Answers: query.Answers{Sensitivity: &s}})
	if !strings.Contains(b.String(), "0.500000 █") {
		t.Error(b.String())
	}
}

// TestBarsAreAsLongAsProbabilities: in eighths of a letter, and only the bar of 0 is empty.
func TestBarsAreAsLongAsProbabilities(t *testing.T) {
	for k := range 1001 {
		p := float64(k) / 1000
		text := drawBar(p)
		eighths := 0
		for _, r := range text {
			eighths += 1 + strings.IndexRune("▏▎▍▌▋▊▉█", r)/len("█")
		}
		if math.Abs(float64(eighths)-p*longestBar*8) > 0.5+1e-9 && eighths > 1 ||
			utf8.RuneCountInString(text) > longestBar || (text == "") != (p == 0) {
			t.Errorf("%v: %q, %d eighths", p, text, eighths)
		}
	}
	if drawBar(1e-300) != "▏" || drawBar(1+1e-12) != strings.Repeat("█", longestBar) {
		t.Errorf("%q, %q", drawBar(1e-300), drawBar(1+1e-12))
	}
}

// TestAnswersByName: first the answer, aligned; the machinery when asked for; necessary warnings in any case.
func TestAnswersByName(t *testing.T) {
	r := query.Result{Status: "ok", Method: query.MethodTruncated, LogZ: number(-1), Log10Z: number(-0.4), Uncertainty: number(0.25),
		MarginalUncertainty: number(0.03), Ended: "complete", Warnings: []string{"careful"},
		Answers: query.Answers{Marginals: []query.Posterior{{Variable: 1, P: []float64{0.5, 0, 0.5}}, {Variable: 0, P: make([]float64, 20)}}}}
	r.Marginals[1].P[7] = 1
	n := query.Names{Variables: []string{"", "a\nb"}, States: [][]string{nil, {"low", "", "high"}}}
	r.Name(n)
	got := printed(t, printer{names: n}, r)
	want := "Z           0.367879 (ln -1.0000000000)\n" +
		"trust       an estimate: ln Z is within ±0.75, Z within a factor of 2.12, probabilities within ±0.09, " +
		"in 95 of 100 such answers; the budget is spent (--budget)\n" +
		"warning     careful\n" +
		"\n" +
		"a�b  low   0.500000 ███████████████\n" +
		"     1     0.000000\n" +
		"     high  0.500000 ███████████████\n" +
		"0    7     1.000000 ██████████████████████████████\n"
	if !strings.Contains(got, want) || !strings.HasSuffix(got, "     and 12 less probable values\n") || strings.Contains(got, "method") {
		t.Errorf("got\n%s", got)
	}
	if got := printed(t, printer{names: n, verbose: true}, r); !strings.Contains(got, want) ||
		!strings.Contains(got, "\nmethod      truncated") ||
		strings.Index(got, "method") < strings.Index(got, "less probable") {
		t.Errorf("verbose:\n%s", got)
	}
}

// TestNoPosteriorIsLeftOutWithoutAWord: under any flags posteriors are shown, or the answer says how to ask for them.
func TestNoPosteriorIsLeftOutWithoutAWord(t *testing.T) {
	const note = "posteriors  of 8 variables were not asked for: --mar prints all, --target V,V some\n"
	for args, all := range map[string]bool{
		"--method exact": true, "--budget 50s": true, "--deadline 50s": true, "--event dysp=yes": true, "--method circuit": true,
		"--method regions": false, "--method auto --set auto.exact=no": false,
	} {
		code, stdout, stderr := command(t, append([]string{"infer", asia, "--redis", "off"}, strings.Fields(args)...)...)
		if code != 0 || strings.Contains(stdout, "lung    no        0.945000") != all || strings.Contains(stdout, note) == all {
			t.Errorf("%s: exit code %d\n%s%s", args, code, stdout, stderr)
		}
	}
	if _, stdout, _ := command(t, "explain", asia, "--redis", "off"); strings.Contains(stdout, "posteriors") {
		t.Errorf("something else is asked for:\n%s", stdout)
	}
}

// TestLargeModelsShowWhatTheEvidenceMoved: a chain of 60 variables shows the neighbours of the observed variable, with the numbers of
// --target; without evidence there is a note.
func TestLargeModelsShowWhatTheEvidenceMoved(t *testing.T) {
	var b strings.Builder
	b.WriteString("network n { }\n")
	for v := range 60 {
		fmt.Fprintf(&b, "variable v%d { type discrete [ 2 ] { no, yes }; }\n", v)
	}
	b.WriteString("probability ( v0 ) { table 0.5, 0.5; }\n")
	for v := 1; v < 60; v++ {
		fmt.Fprintf(&b, "probability ( v%d | v%d ) { (no) 0.9, 0.1; (yes) 0.1, 0.9; }\n", v, v-1)
	}
	model := write(t, t.TempDir(), "chain.bif", b.String())
	code, stdout, stderr := command(t, "infer", model, "--redis", "off", "--evid", "v0=yes")
	if code != 0 || !strings.Contains(stdout,
		"\nposteriors  the evidence moved these 12 of 60 variables most: --mar prints all, "+
			"--target V,V others\n\nv1   no   0.100000 ███\n     yes  0.900000") ||
		strings.Contains(stdout, "\nv0 ") || strings.Contains(stdout, "\nv13 ") ||
		strings.Index(stdout, "\nv11 ") > strings.Index(stdout, "\nv12 ") || strings.Contains(stdout, "\n\nmodel") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	const note = "\nposteriors  of 60 variables are not shown, with --evid those that it moves most are: --mar prints all, --target V,V some\n"
	if _, stdout, _ := command(t, "infer", model, "--redis", "off"); !strings.Contains(stdout, note) {
		t.Errorf("without evidence:\n%s", stdout)
	}
	if _, stdout, _ := command(t, "infer", model, "--redis", "off", "--evid", "v0=yes", "--evid", "none"); !strings.Contains(stdout, note) ||
		!strings.Contains(stdout, "moved these 12 of 60") {
		t.Errorf("with and without evidence:\n%s", stdout)
	}
	_, stdout, _ = command(t, "infer", model, "--redis", "off", "--evid", "v0=yes", "--json")
	if results := decodeResults(t, stdout); len(results) != 1 || results[0].Marginals != nil {
		t.Errorf("--json:\n%s", stdout)
	}
}

// TestPosteriorsOfSmallModels are shown without being asked for; --json and other questions leave the output as it is.
func TestPosteriorsOfSmallModels(t *testing.T) {
	const lung = "lung    no        0.945000 ████████████████████████████▍\n        yes       0.055000 █▋\n"
	code, stdout, stderr := command(t, "infer", asia, "--redis", "off")
	if code != 0 || !strings.Contains(stdout, lung) || !strings.Contains(stdout, "trust       exact") || strings.Contains(stdout, "flops") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = command(t, "infer", asia, "--redis", "off", "--joint", "lung,xray", "--verbose")
	if code != 0 || strings.Contains(stdout, "█") || !strings.Contains(stdout, "joint       lung     xray \n              no   normal 0.") ||
		!strings.Contains(stdout, "flops") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if _, stdout, _ := command(t, "infer", asia, "--redis", "off", "--json"); strings.Contains(stdout, `"marginals":`) {
		t.Errorf("%s", stdout)
	}
	_, stdout, _ = command(t, "infer", asia, "--redis", "off", "--json", "--target", "lung",
		"--queries", write(t, t.TempDir(), "queries", `{"mpe": true}`))
	r := decodeResults(t, stdout)[0]
	if r.MPE == nil || len(r.Marginals) != 1 || math.Abs(r.Posteriors()["lung"]["yes"]-0.055) > 1e-12 || len(r.MPE.States) != 8 ||
		r.MPE.States[slices.Index(r.MPE.Names, "xray")] != "normal" {
		t.Errorf("%+v, %+v", r.Marginals, r.MPE)
	}
}

// TestMuninShowsWhatTheEvidenceMoved: 1,041 variables, whose exact marginals take half a second.
func TestMuninShowsWhatTheEvidenceMoved(t *testing.T) {
	data := os.Getenv("BTN_DATA")
	if data == "" {
		t.Skip("BTN_DATA names no folder of reference data")
	}
	model := filepath.Join(data, "bn/munin.bif.gz")
	code, stdout, stderr := command(t, "infer", model, "--redis", "off", "--evid", "DIFFN_SENS_SEV=MILD")
	if code != 0 || !strings.Contains(stdout, "these 12 of 1041 variables") ||
		!strings.Contains(stdout, "\nDIFFN_SEV             MILD   certain\n") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

// TestValuesThatAreSure: an observed variable has its value alone; so has one with a single possible value, if the answer is exact.
func TestValuesThatAreSure(t *testing.T) {
	posteriors := []query.Posterior{
		{Variable: 0, Name: "Fault", States: []string{"none", "Tuberculosis"}, P: []float64{0, 1}},
		{Variable: 1, Name: "a name of more than twenty-eight letters", States: []string{"no", "yes"}, P: []float64{1, 0}},
		{Variable: 2, Name: "x", States: []string{"no", "yes"}, P: []float64{0.5, 0.5}},
	}
	for exact, fault := range map[bool]string{
		true:  "Fault                                     Tuberculosis  certain\n",
		false: "Fault                                     none          0.000000\n",
	} {
		var b strings.Builder
		writeBars(&b, posteriors, map[int]bool{1: true}, exact)
		for _, want := range []string{
			fault, "a name of more than twenty-eight letters  no            observed\n",
			"x                                         no            0.500000 ███████████████\n",
		} {
			if !strings.Contains(b.String(), want) {
				t.Errorf("exact %v: no %q in\n%s", exact, want, b.String())
			}
		}
	}
}
