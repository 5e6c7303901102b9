package main

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

func number(x float64) *float64 { return &x }

func printed(t *testing.T, p printer, r query.Result) string {
	t.Helper()
	var b bytes.Buffer
	p.out, p.model = &b, "m.uai"
	if err := p.print(&r); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestResultsForPeople(t *testing.T) {
	file := "m.uai.evid"
	exact := query.Result{Status: "ok", Exact: true, Method: query.MethodExact, LogZ: number(-1e-16),
		Log10Z: number(-4e-17), EvidenceFile: &file,
		Plan: &query.Cost{
			Width: 3, Log2Table: 5, Flops: 100, Bytes: 2048,
		}, Answers: query.Answers{Marginals: []query.Posterior{{P: []float64{0.25, 0.75}}}}, Cache: "hit",
		TimingsMS: map[string]float64{"total": 3, "learn-worker": 1}}
	estimate := query.Result{Status: "ok", Method: query.MethodSymmetryCP, Components: 4, LogZ: number(12.5),
		Log10Z: number(5.4), Residual: number(0.5), LnExplained: number(-0.7),
		CancellationDigits: number(1.25), Certificate: &query.Certificate{LnBound: 20, LnUpper: 20.5},
		Warnings: []string{"careful"}}
	for name, c := range map[string]struct {
		r    query.Result
		want []string
	}{
		"exact": {
			exact,
			[]string{
				"Z           1 (ln 0.0000000000, log10 0.0000000000)\n", "evidence    m.uai.evid\n",
				"width 3, largest table 2^5.0 entries, 100 flops, 2 KiB", "trust       exact",
				"x_0          0.250000 0.750000\n", "time        3.0 ms (learn 1.0)",
			},
		},
		"estimate": {
			estimate,
			[]string{
				"Z           268337 (ln 12.5000000000, log10 5.4000000000)\n", "4 components",
				"an estimate of unknown quality; residual 0.5", "1.2 digits cancelled", "no lower bound",
				"warning     careful",
			},
		},
		"zero": {query.Result{
			Status: "ok",
			Exact:  true,
			Zero:   true,
			Method: query.MethodExact,
		}, []string{"Z           0: the evidence or the model is impossible"}},
		"failed": {query.Result{
			Status: "error",
			Error:  &query.ErrorInfo{Code: fault.OverBudget, Message: "needs 9 bytes", Stage: "learn-worker"},
		},
			[]string{"failed      over_budget: needs 9 bytes (learn-worker)"}},
	} {
		got := printed(t, printer{}, c.r)
		for _, want := range c.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: no %q in\n%s", name, want, got)
			}
		}
	}
}

func TestSolutionFiles(t *testing.T) {
	r := query.Result{Status: "ok", LogZ: number(2.302585), Log10Z: number(1)}
	if got := printed(t, printer{uai: true}, r); got != "PR\n1\n" {
		t.Errorf("PR: %q", got)
	}
	r.Marginals = []query.Posterior{{P: []float64{0.25, 0.75}}}
	if got := printed(t, printer{uai: true}, r); !strings.HasPrefix(got, "MAR\n1 2 0.25 0.75") {
		t.Errorf("MAR: %q", got)
	}
	if got := printed(t, printer{uai: true}, query.Result{Status: "ok", Zero: true}); got != "PR\n-inf\n" {
		t.Errorf("zero: %q", got)
	}
	if got := printed(t, printer{uai: true}, query.Result{Status: "error"}); got != "" {
		t.Errorf("failed: %q", got)
	}
}

func TestJSONIsOneLinePerResult(t *testing.T) {
	got := printed(t, printer{json: true}, query.Result{Status: "ok", Warnings: []string{}})
	if strings.Count(got, "\n") != 1 || !json.Valid([]byte(got)) || !strings.Contains(got, `"log_z":null`) {
		t.Errorf("got %q", got)
	}
}

func TestUsageErrorsAreTwo(t *testing.T) {
	for _, args := range [][]string{
		{"fly"}, {"infer"}, {"infer", "m.uai", "--nope"}, {"infer", "m.uai", "--set", "truncated.bond=-1"},
		{"infer", "m.uai", "--memory", "lots"},
		{"infer", "m.uai", "--method", "magic"}, {"infer", "m.uai", "--json", "--format", "uai"},
		{"infer", "m.uai", "--deadline", "-1s"},
		{"infer", "m.uai", "--method", "symmetry-cp", "--set", "learned.components=0"}, {"watch"},
		{"plan", "m.uai", "--method", "symmetry-cp", "--set", "learned.maps=none"}, {"sample", "m.uai", "0"},
		{"explain", "m.uai", "--format", "uai"},
	} {
		var stdout, stderr bytes.Buffer
		if code := run(context.Background(), args, &stdout, &stderr); code != 2 || stderr.Len() == 0 {
			t.Errorf("btn %v: exit code %d, %q", args, code, stderr.String())
		}
	}
	for _, args := range [][]string{{"--help"}, {}} {
		var stdout, stderr bytes.Buffer
		if code := run(context.Background(), args, &stdout, &stderr); code != 0 ||
			!strings.Contains(stdout.String(), "infer") || !strings.Contains(stdout.String(), "Exit codes") {
			t.Errorf("btn %v: exit code %d\n%s", args, code, stdout.String())
		}
	}
}
