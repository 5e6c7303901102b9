package main

import (
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestShowAModel: variables with values and parents as in the file, and the price that plan predicts.
func TestShowAModel(t *testing.T) {
	code, stdout, stderr := command(t, "show", asia)
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	_, planned, _ := command(t, "plan", asia)
	flops := regexp.MustCompile(`, ([0-9.e+]+) flops`).FindStringSubmatch(planned)
	for _, want := range []string{
		"a Bayesian network\nvariables   8, largest domain 2\nfactors     8, largest arity 3", "ln Z        exact, " + flops[1] + " flops, ",
		"\ntub       no yes           asia\n", "\nxray      normal abnormal  either\n", "\nsmoke     no yes           none\n",
		"\ndysp      no yes           bronc either\n",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
}

// TestShowAVariable: its table has the published probabilities of dyspnoea; of a factor graph every factor over it is shown.
func TestShowAVariable(t *testing.T) {
	_, stdout, _ := command(t, "show", asia, "dysp")
	for _, want := range []string{
		"parents     bronc either\nchildren    none", "no     no      0.9      0.1", "no     yes     0.3      0.7",
		"yes    no      0.2      0.8", "yes    yes     0.1      0.9",
	} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	model := write(t, t.TempDir(), "pair.uai", "MARKOV\n2\n2 3\n2\n2 0 1\n1 1\n6\n1 2 3 4 5 6\n3\n7 8 9\n")
	code, stdout, _ := command(t, "show", model, "1")
	for _, want := range []string{"neighbours  0\n", "\n1  0  4\n", "\n2  9\n"} {
		if code != 0 || !strings.Contains(stdout, want) {
			t.Errorf("exit code %d, no %q in\n%s", code, want, stdout)
		}
	}
	if code, _, stderr := command(t, "show", asia, "dyspnoea"); code != 3 || !strings.Contains(stderr, `no variable "dyspnoea"`) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestShowALargeModel: one screen, all variables as JSON, and no table that does not fit.
func TestShowALargeModel(t *testing.T) {
	alarm, symmetric := "../../examples/alarm.uai", "../../examples/curie-weiss.json"
	_, stdout, _ := command(t, "show", alarm)
	if n := strings.Count(stdout, "\n"); n > 30 || !strings.Contains(stdout, "… and 17 more variables") {
		t.Errorf("%d lines\n%s", n, stdout)
	}
	_, stdout, _ = command(t, "show", alarm, "--json")
	var all shownModel
	if err := json.Unmarshal([]byte(stdout), &all); err != nil || len(all.List) != 37 || len(all.List[12].Parents) != 3 {
		t.Errorf("%v: %s", err, stdout)
	}
	_, stdout, _ = command(t, "show", symmetric, "7")
	if !strings.Contains(stdout, "factor 0 over 200 variables: symmetric\n") || !strings.Contains(stdout, "neighbours  199 variables\n") {
		t.Error(stdout)
	}
}

// TestShowACrowdedModel: of 3,000 variables in one factor the neighbours are not printed as JSON, of 200 they are.
func TestShowACrowdedModel(t *testing.T) {
	for n, neighbours := range map[string]int{"200": 199, "3000": 0} {
		model := filepath.Join(t.TempDir(), "potts.json")
		if code, _, stderr := command(t, "generate", "potts", "-n", n, "-q", "2", "-o", model); code != 0 {
			t.Fatal(stderr)
		}
		_, stdout, stderr := command(t, "show", model, "--json")
		var all shownModel
		if err := json.Unmarshal([]byte(stdout), &all); err != nil || len(all.List[1].Together) != neighbours {
			t.Errorf("%s variables: %v, %s", n, err, stderr)
		}
	}
}

// TestShowWithoutTime: an unknown price is called so, and the variables are shown all the same.
func TestShowWithoutTime(t *testing.T) {
	code, stdout, stderr := command(t, "show", asia, "--within", "1ns")
	if code != 0 || !strings.Contains(stdout, "ln Z        not priced in the time") || !strings.Contains(stdout, "\ntub ") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	if code, _, stderr := command(t, "show", asia, "--within", "0"); code != 2 || !strings.Contains(stderr, "--within") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestShowARegisteredModel: as its file, under its name.
func TestShowARegisteredModel(t *testing.T) {
	url, _ := up(t)
	if code, _, stderr := command(t, "model", "put", asia, "--name", "clinic", "--nats", url); code != 0 {
		t.Fatal(stderr)
	}
	_, file, _ := command(t, "show", asia, "dysp")
	code, stdout, stderr := command(t, "show", "clinic", "dysp", "--nats", url)
	if code != 0 || stdout != file {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	if _, stdout, _ := command(t, "show", "clinic", "--nats", url); !strings.HasPrefix(stdout, "model       clinic@1, a Bayesian network\n") {
		t.Error(stdout)
	}
}
