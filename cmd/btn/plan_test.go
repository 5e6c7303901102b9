package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestPlanSaysWhatItHadNoTimeFor: a plan is an answer all the same.
func TestPlanSaysWhatItHadNoTimeFor(t *testing.T) {
	code, stdout, stderr := command(t, "plan", "../../examples/asia.uai", "--within", "1ns")
	if code != 0 || strings.Count(stdout, "not priced in the time that --within leaves") != 3 {
		t.Errorf("code %d: %s%s", code, stdout, stderr)
	}
	if code, stdout, _ = command(t, "plan", "../../examples/asia.uai"); code != 0 ||
		strings.Contains(stdout, "not priced") {
		t.Errorf("code %d: %s", code, stdout)
	}
	if code, _, stderr = command(t, "plan", "../../examples/asia.uai", "--within", "0s"); code == 0 ||
		!strings.Contains(stderr, "--within") {
		t.Errorf("code %d: %s", code, stderr)
	}
}

// TestPlanPricesTheObjective: both objectives take a share of the budget to learn.
func TestPlanPricesTheObjective(t *testing.T) {
	price := func(flags ...string) (flops float64) {
		_, stdout, stderr := command(t, append([]string{"plan", "../../examples/asia.uai", "--method", "symmetry-cp"}, flags...)...)
		_, line, _ := strings.Cut(stdout, "symmetry-cp ")
		if _, err := fmt.Sscanf(line, "up to %g flops to learn", &flops); err != nil {
			t.Fatalf("%q: %v, %s%s", flags, err, stdout, stderr)
		}
		return flops
	}
	for _, objective := range []string{"variance", "frobenius"} {
		named := "learned.objective=" + objective
		if one, two := price("--budget", "1s", "--set", named), price("--budget", "2s", "--set", named); one <= 0 || two != 2*one {
			t.Errorf("%s: %g flops for a second, %g for two", objective, one, two)
		}
	}
}

// TestPlansOfInterventions: a plan is for the network in which variables are set; a model without causes is refused.
func TestPlansOfInterventions(t *testing.T) {
	code, stdout, stderr := command(t, "plan", "../../examples/asia.json", "--do", "smoke=no")
	if code != 0 || !strings.Contains(stdout, "variables   9") { // one is the switch of smoke
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	code, _, stderr = command(t, "plan", "../../examples/grid8x8.uai", "--do", "0=1")
	if code != 3 || !strings.Contains(stderr, "no Bayesian network") {
		t.Errorf("exit code %d, %s", code, stderr)
	}
}

// TestPlanSaysWhy: the ways that were asked, the first that offers something, and the rule that divides a budget.
func TestPlanSaysWhy(t *testing.T) {
	dense := filepath.Join(t.TempDir(), "dense.uai")
	if code, _, stderr := command(t, "generate", "ising", "complete", "-n", "40", "--delta", "1", "--seed", "0", "-o", dense); code != 0 {
		t.Fatal(stderr)
	}
	for _, c := range []struct {
		args []string
		want []string // parts of the output, in this sequence
	}{
		{[]string{"../../examples/curie-weiss.json", "--why"}, []string{"choice      exact", "why         counts: ", " flops, "}},
		{[]string{"../../examples/alarm.uai", "--why"}, []string{"choice      exact", "counts: no: ", "structured: no: ", "junction tree: "}},
		{[]string{dense, "--why", "--set", "auto.exact=no", "--budget", "10s", "--within", "10m"}, []string{
			"why         truncated legs: ", "why         samples: ", "a trial leaves out ", "why         rule: ",
			"samples have 0.875 of the budget",
		}},
		{[]string{"../../examples/curie-weiss.json", "--why", "--json"}, []string{`"offers":[{"way":"counts","said":"`}},
	} {
		code, rest, stderr := command(t, append([]string{"plan"}, c.args...)...)
		for _, part := range c.want {
			_, after, found := strings.Cut(rest, part)
			if code != 0 || !found {
				t.Errorf("%v: code %d, no %q in %s%s", c.args, code, part, rest, stderr)
				break
			}
			rest = after
		}
	}
	if _, stdout, _ := command(t, "plan", "../../examples/alarm.uai"); strings.Contains(stdout, "why ") {
		t.Errorf("not asked why: %s", stdout)
	}
}
