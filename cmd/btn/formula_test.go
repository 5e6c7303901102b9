package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestFormulas: log10 of the count and the count where it is an integer; literals are evidence; posteriors by number.
func TestFormulas(t *testing.T) {
	folder := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(folder, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	plain := write("plain.cnf", "c t mc\np cnf 3 2\n1 2 0\n-1 3 0\n")
	weighted := write("weighted", "p cnf 3 2\n1 2 0\n-1 3 0\nc p weight 2 0.25 0\n")
	projected := write("projected.cnf", "c t pmc\np cnf 4 3\nc p show 4 2 0\n1 2 0\n-1 3 0\n-3 4 0\n")
	none := write("none.cnf", "c t mc\np cnf 1 2\n1 0\n-1 0\n")
	chain := write("chain.cnf", "c t mc\nc a chain\np cnf 4 5\n1 0 4 2\n0\n-1 3 0\n-3 0\n2 4 0\n")
	hard := write("hard.cnf", "p cnf 2 4\n1 2 0\n-1 2 0\n1 -2 0\n-1 -2 0\n")
	hidden := write("hidden.cnf", "c t pmc\np cnf 2 3\nc p show 1 0\n2 0\n-2 0\n1 2 0\n")
	for _, c := range []struct {
		args  []string
		want  []string
		never string
	}{
		{[]string{plain},
			[]string{"count       4 (ln 1.3862943611, log10 0.6020599913)\n", "\n1  0  0.500000 "}, "x_0"},
		{[]string{plain, "--evid", "2,-3"}, []string{"count       1 (ln 0.0000000000, ", "\n1  0  certain\n2  1  observed\n"}, ""},
		{[]string{plain, "--evid=-2"}, []string{"count       1 (ln 0.0000000000, log10 0.0000000000)\n"}, ""},
		{[]string{plain, "--evid", "3=1,1=0"}, []string{"count       1 (ln 0.0000000000, log10 0.0000000000)\n"}, ""},
		{[]string{plain, "--event", "2,-3"}, []string{"P(2, -3) = 0.25 (ln -1.3862943611)\n"}, ""},
		{[]string{projected}, []string{"count       3 (", "\n2  0  0.333333 "}, "\n1  "},
		{[]string{projected, "--evid=-4"}, []string{"count       1 (ln 0.0000000000, log10 0.0000000000)\n"}, ""},
		{[]string{none}, []string{
			"count       0: the formula has no solution\n", "\nclauses     1 (line 3); -1 (line 4) contradict each other\n",
		}, "warning"},
		{[]string{chain}, []string{"\nclauses     1 (line 4); -1 3 (line 6); -3 (line 7) contradict each other\n"}, "-2"},
		{[]string{chain, "--evid", "2"}, []string{"count       0: the formula has no solution\n", "\nclauses     1 (line 4); "}, "impossible"},
		{[]string{hard}, []string{"count       0: the formula has no solution\n", "a clause over \"1\", \"2\"; "}, "factor"},
		{[]string{hidden}, []string{"\nclauses     an empty clause, once hidden variables are eliminated, cannot hold\n"}, "line"},
		{[]string{plain, "--evid", "1,-3"}, []string{"count       0: the formula has no solution under the evidence\n",
			"\nimpossible  1 with -3\n", "\nclauses     -1 3 (line 4) cannot hold\n"}, "warning"},
		{[]string{weighted, "--evid", "2"}, []string{"Z           0.75 (ln -0.28768207"}, "count"},
	} {
		var out, said bytes.Buffer
		code := run(t.Context(), append([]string{"infer"}, c.args...), &out, &said)
		if code != 0 {
			t.Fatalf("%v: exit %d: %s", c.args, code, &said)
		}
		for _, want := range c.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%v: no %q in\n%s", c.args, want, &out)
			}
		}
		if c.never != "" && strings.Contains(out.String(), c.never) {
			t.Errorf("%v: %q in\n%s", c.args, c.never, &out)
		}
	}
	var out, said bytes.Buffer
	code := run(t.Context(), []string{"infer", plain, "--evid", "4,-1"}, &out, &said)
	if code == 0 || !strings.Contains(said.String(), `no variable "4"`) {
		t.Errorf("a literal that is not there: exit %d, %s", code, &said)
	}
}

// TestFormulasAreConverted: a model that is a formula becomes one, and any other is refused with the reason.
func TestFormulasAreConverted(t *testing.T) {
	file := filepath.Join(t.TempDir(), "doors.json")
	var out, said bytes.Buffer
	if code := run(t.Context(), []string{"convert", "../../examples/doors.cnf", file}, &out, &said); code != 0 || said.Len() > 0 {
		t.Fatalf("exit %d: %s", code, &said)
	}
	if code := run(t.Context(), []string{"convert", file, "-", "--to", "cnf"}, &out, &said); code != 0 || said.Len() > 0 ||
		!strings.Contains(out.String(), "p cnf 4 4\n") || !strings.Contains(out.String(), "\n4 -3 1 0\n") {
		t.Errorf("exit %d: %s\n%s", code, &said, &out)
	}
	if code := run(t.Context(), []string{"convert", "../../examples/heating.bif", "-", "--to", "cnf"}, &out, &said); code == 0 ||
		!strings.Contains(said.String(), "cnf: ") {
		t.Errorf("exit %d: %s", code, &said)
	}
}

func TestWhole(t *testing.T) {
	for z, want := range map[float64]int64{
		1: 1, 4: 4, 123456789: 123456789, 1e10 - 1: 1e10 - 1, 0.5: 0, 1.0000001: 0, 2e10: 0, 0.9999999: 0,
	} {
		if n, ok := wholeCount(math.Log(z)); ok != (want > 0) || ok && n != want {
			t.Errorf("%v: %d, %v", z, n, ok)
		}
	}
}

// TestNumberedVariables: variables that are called by numbers and have three values are no formula's.
func TestNumberedVariables(t *testing.T) {
	file := write(t, t.TempDir(), "three.fg", "1\n\n2\n2 5\n3 3\n9\n0 1\n1 1\n2 1\n3 1\n4 1\n5 1\n6 1\n7 1\n8 1\n")
	code, out, stderr := command(t, "infer", file, "--event", "5=2", "--redis", "off")
	if code != 0 || !strings.Contains(out, "P(5=2) = 0.333333 ") || strings.Contains(out, "count") {
		t.Errorf("exit %d: %s%s", code, out, stderr)
	}
}
