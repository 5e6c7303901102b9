package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// update writes the golden files of the package anew.
var update = flag.Bool("update", false, "write the golden files")

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

// TestPlanSaysWhy: the offers and the rule that decided, of ten models. 'go test ./cmd/btn -run TestPlanSaysWhy -update' writes them anew.
func TestPlanSaysWhy(t *testing.T) {
	dense := filepath.Join(t.TempDir(), "dense.uai")
	if code, _, stderr := command(t, "generate", "ising", "complete", "-n", "40", "--delta", "1", "--seed", "0", "-o", dense); code != 0 {
		t.Fatal(stderr)
	}
	estimates := []string{"--set", "auto.exact=no", "--budget", "10s", "--within", "10m"}
	said := ""
	for _, c := range []struct {
		model string
		args  []string
	}{
		{"curie-weiss.json", nil}, {"alarm.uai", nil}, {"doors.cnf", nil}, {"grid8x8.uai", estimates}, {"latent-chain.uai", nil},
		{"latent-signs.uai", nil}, {"exactly-k.json", nil}, {"heating.bif", nil}, {"menu.cfn", nil}, {dense, estimates},
	} {
		path := c.model
		if path != dense {
			path = filepath.Join("../../examples", c.model)
		}
		code, stdout, stderr := command(t, append([]string{"plan", path, "--why"}, c.args...)...)
		if code != 0 {
			t.Fatalf("%s: exit code %d, %s", c.model, code, stderr)
		}
		said += strings.TrimSpace("btn plan "+filepath.Base(c.model)+" --why "+strings.Join(c.args, " ")) + "\n"
		for line := range strings.Lines(stdout) {
			if strings.HasPrefix(line, "choice") || strings.HasPrefix(line, "why") {
				said += "  " + line
			}
		}
	}
	const golden = "testdata/why.txt"
	if *update {
		if err := os.WriteFile(golden, []byte(said), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil || said != string(want) {
		t.Errorf("the reasons changed (%v), now:\n%s", err, said)
	}
	_, stdout, _ := command(t, "plan", "../../examples/curie-weiss.json", "--why", "--json")
	if !strings.Contains(stdout, `"offers":[{"way":"counts","said":"`) {
		t.Errorf("as JSON: %s", stdout)
	}
	if _, stdout, _ := command(t, "plan", "../../examples/alarm.uai"); strings.Contains(stdout, "why ") {
		t.Errorf("not asked why: %s", stdout)
	}
}
