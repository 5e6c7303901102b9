package main

import (
	"fmt"
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
