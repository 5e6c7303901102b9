package main

import (
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

// TestPlanPricesTheObjective: densities take a share of the budget to learn, the plain objective its sweeps.
func TestPlanPricesTheObjective(t *testing.T) {
	for objective, price := range map[string]string{"variance": "up to 4.5e+10 flops to learn", "frobenius": "up to 5.69e+06 flops to learn"} {
		_, stdout, stderr := command(t, "plan", "../../examples/asia.uai", "--method", "symmetry-cp", "--set", "learned.objective="+objective)
		if !strings.Contains(stdout, price) {
			t.Errorf("%s: %s%s", objective, stdout, stderr)
		}
	}
}
