package main

import (
	"math"
	"strings"
	"testing"
)

// TestBayesThatIsNone: a BAYES file, and a native one with bayes, whose tables do not sum to 1 are
// answered, with a warning that names factor and row; by every method, in the text and in the JSON.
func TestBayesThatIsNone(t *testing.T) {
	folder := t.TempDir()
	const tables = "\n2\n2 2\n2\n1 0\n2 0 1\n2\n0.5 0.5\n4\n0.2 0.8 0.5 0.4\n"
	wrong, markov := write(t, folder, "wrong.uai", "BAYES"+tables), write(t, folder, "markov.uai", "MARKOV"+tables)
	right := write(t, folder, "right.uai", strings.Replace("BAYES"+tables, "0.4", "0.5", 1))
	native := write(t, folder, "wrong.json",
		`{"basetensor_model": 1, "bayes": true, "variables": [{"domain": 2}, {"domain": 2}], "factors":
		[{"scope": [0], "dense": {"values": [0.5, 0.5]}}, {"scope": [0, 1], "dense": {"values": [0.2, 0.8, 0.5, 0.4]}}]}`)
	for model, want := range map[string]string{
		wrong: "factor 1: the row of x_0 = 1 (line 10) sums to 0.9", native: "factor 1 (line 2): the row of x_0 = 1 sums to 0.9",
	} {
		for _, method := range []string{"auto", "exact", "truncated", "regions", "symmetry-cp"} {
			code, stdout, stderr := command(t, "infer", model, "--redis", "off", "--method", method)
			if code != 0 || strings.Count(stdout, "warning     "+want) != 1 {
				t.Errorf("%s, %s: exit code %d, no warning in\n%s%s", model, method, code, stdout, stderr)
			}
		}
		code, stdout, _ := command(t, "infer", model, "--redis", "off", "--json", "--evid", "none", "--evid", "none")
		if results := decodeResults(t, stdout); code != 0 || len(results) != 2 || len(results[1].Warnings) != 1 ||
			!strings.Contains(results[1].Warnings[0], want) {
			t.Errorf("%s: %s", model, stdout)
		}
		if _, _, stderr := command(t, "plan", model); !strings.Contains(stderr, want) {
			t.Errorf("plan %s: %q", model, stderr)
		}
	}
	for _, model := range []string{right, markov} {
		if _, stdout, _ := command(t, "infer", model, "--redis", "off"); strings.Contains(stdout, "warning") {
			t.Errorf("%s: %s", model, stdout)
		}
	}
}

// TestRoundedRows: rows whose digits explain that they miss 1 are divided by their sums. The forecast tells of them, and answers warn of
// three digits and not of six.
func TestRoundedRows(t *testing.T) {
	folder := t.TempDir()
	for name, third := range map[string]string{"three": "0.333", "six": "0.333333"} {
		text := "BAYES\n2\n3 3\n2\n1 0\n2 0 1\n3\n" + strings.Repeat(third+" ", 3) + "\n9\n" + strings.Repeat(third+" ", 9) + "\n"
		model := write(t, folder, name+".uai", text)
		code, stdout, _ := command(t, "infer", model, "--redis", "off", "--event", "0=1", "--json")
		results := decodeResults(t, stdout)
		if code != 0 || len(results) != 2 || results[1].LogZ == nil || math.Abs(*results[1].LogZ+math.Log(3)) > 1e-15 {
			t.Errorf("%s digits: exit code %d, %s", name, code, stdout)
			continue
		}
		const want = "factor 0 (line 8) sums to 0.999: it was divided by its sum, because the rounding of its digits explains that. " +
			"So were 3 more rows;"
		warned := strings.Contains(strings.Join(results[0].Warnings, ""), want)
		if warned != (name == "three") || len(results[0].Warnings) > 1 {
			t.Errorf("%s digits: warnings %q", name, results[0].Warnings)
		}
		if _, stdout, _ := command(t, "plan", model); !strings.Contains(stdout, "rounded     4 rows divided by their sums") {
			t.Errorf("%s digits: no rows in the forecast\n%s", name, stdout)
		}
	}
}
