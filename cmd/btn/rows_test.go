package main

import (
	"strings"
	"testing"
)

// rainFiles is one network in three formats. The row of wet where it rains is written on a line of its own, with the numbers given.
func rainFiles(numbers string) map[string]string {
	plain := strings.ReplaceAll(numbers, ",", "")
	return map[string]string{
		"rain.bif": "network n {}\nvariable rain { type discrete [ 2 ] { no, yes }; }\nvariable wet { type discrete [ 2 ] { no, yes }; }\n" +
			"probability ( rain ) { table 0.75, 0.25; }\nprobability ( wet | rain ) {\n  (no) 0.9, 0.1;\n  (yes) " + numbers + ";\n}\n",
		"rain.dsc": "belief network\n" +
			"node rain { type : discrete [2] = { \"no\", \"yes\" }; }\nnode wet { type : discrete [2] = { \"no\", \"yes\" }; }\n" +
			"probability(rain) { 0.75, 0.25; }\nprobability(wet | rain) {\n  (0) : 0.9, 0.1;\n  (1) : " + numbers + ";\n}\n",
		"rain.uai": "BAYES\n2\n2 2\n2\n1 0\n2 0 1\n2 0.75 0.25 4\n0.9 0.1\n" + plain + "\n",
	}
}

// TestWarningOfARow: in files of three formats a row that sums to 0.8 is named by its parents' state and its own line, and every command
// that computes or shows numbers says that it is kept; so it does of an answer with --do. A row that rounding explains was divided.
func TestWarningOfARow(t *testing.T) {
	folder := t.TempDir()
	lines := map[string]string{"rain.bif": "line 7", "rain.dsc": "line 7", "rain.uai": "line 9"}
	for numbers, done := range map[string]string{
		"0.2, 0.6": "sums to 0.8, which rounding does not explain: it is kept as it is", "0.33, 0.66": "sums to 0.99: it was divided by its sum",
	} {
		for name, text := range rainFiles(numbers) {
			model := write(t, folder, name, text)
			do, cases := "rain=yes", write(t, folder, "cases.csv", "wet\nyes\n")
			want := `: the row of "rain" = "yes" (` + lines[name] + ") " + done
			if name == "rain.uai" {
				do, cases = "0=1", write(t, folder, "positions.csv", "1\n1\n")
				want = ": the row of x_0 = 1 (" + lines[name] + ") " + done
			}
			for _, args := range [][]string{
				{"infer", model}, {"infer", model, "--do", do}, {"infer", model, "--json", "--do", do}, {"infer", model, "--format", "uai"},
				{"show", model}, {"show", model, "1"}, {"plan", model}, {"cases", model, cases}, {"cases", model, cases, "--do", do},
				{"sample", model, "3", "--format", "csv"}, {"explain", model}, {"ask", model, "0"},
			} {
				code, stdout, stderr := command(t, args...)
				text := strings.ReplaceAll(stdout+stderr, `\"`, `"`)
				if code != 0 || strings.Count(text, want) != 1 {
					t.Errorf("%v: exit code %d, no %q in\n%s", args, code, want, text)
				}
			}
		}
	}
}

// TestShowANetworkWithAWrongRow: a file that calls itself a Bayesian network is shown as one, with nodes, parents and conditional tables,
// though a row does not sum to 1, and in whichever order its scopes have the variables.
func TestShowANetworkWithAWrongRow(t *testing.T) {
	folder := t.TempDir()
	model := write(t, folder, "rain.bif", rainFiles("0.2, 0.6")["rain.bif"])
	if _, stdout, _ := command(t, "show", model); !strings.Contains(stdout, "rain.bif, a Bayesian network\n") ||
		!strings.Contains(stdout, "variable  values  parents\n") || !strings.Contains(stdout, "\nwet       no yes  rain\n") {
		t.Error(stdout)
	}
	child := write(t, folder, "child.uai", "BAYES\n2\n2 3\n2\n1 0\n2 1 0\n2 0.5 0.5\n6 0.1 0.6 0.3 0.2 0.5 0.2\n")
	for _, c := range []struct{ model, variable, want string }{
		{model, "wet", "parents     rain\nchildren    none\n\nrain  wet=no  wet=yes\nno    0.9     0.1\nyes   0.2     0.6\n"},
		{child, "1", "parents     0\nchildren    none\n\n0  1=0  1=1  1=2\n0  0.1  0.3  0.5\n1  0.6  0.2  0.2\n"},
	} {
		if _, stdout, _ := command(t, "show", c.model, c.variable); !strings.HasSuffix(stdout, c.want) {
			t.Errorf("no\n%s in\n%s", c.want, stdout)
		}
	}
}

// TestProbabilityOfEvidenceOfARoundedNetwork: once rounded rows are divided by their sums, Z is P(evidence), and called so.
func TestProbabilityOfEvidenceOfARoundedNetwork(t *testing.T) {
	model := write(t, t.TempDir(), "rain.bif", rainFiles("0.33, 0.66")["rain.bif"])
	const want = "P(evidence) 0.241667 " // 0.75·0.1 + 0.25·0.66/0.99
	if _, stdout, _ := command(t, "infer", model, "--evid", "wet=yes"); !strings.Contains(stdout, want) {
		t.Errorf("no %q in\n%s", want, stdout)
	}
}
