package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/people/fit"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// planted is P(a), P(b | a) and P(c | a, b) of variables with 2, 3 and 2 states.
var planted = [][]float64{
	{0.3, 0.7},
	{0.2, 0.5, 0.3, 0.6, 0.1, 0.3},
	{0.9, 0.1, 0.4, 0.6, 0.25, 0.75, 0.05, 0.95, 0.5, 0.5, 0.7, 0.3},
}

// structure is their network without numbers; the first table is -1, the second ?, the third not there.
const structure = `network planted { }
variable a { type discrete [ 2 ] { a0, a1 }; }
variable b { type discrete [ 3 ] { b0, b1, b2 }; }
variable c { type discrete [ 2 ] { c0, c1 }; }
probability ( a ) { table -1, -1; }
probability ( b | a ) { (a0) ?, ?, ?; (a1) ?, ?, ?; }
probability ( c | a, b ) { }
`

// drawn returns rows that are drawn from the planted tables, and how often each entry of a table is in them.
func drawn(rows int, seed uint64) (text string, counts [][]float64) {
	rng := rand.New(rand.NewPCG(seed, 5))
	pick := func(p []float64) int {
		u := rng.Float64()
		for x := range p {
			if u -= p[x]; u < 0 {
				return x
			}
		}
		return len(p) - 1
	}
	for _, table := range planted {
		counts = append(counts, make([]float64, len(table)))
	}
	var out strings.Builder
	for range rows {
		a := pick(planted[0])
		b := pick(planted[1][3*a : 3*a+3])
		row := 2 * (3*a + b)
		c := pick(planted[2][row : row+2])
		counts[0][a]++
		counts[1][3*a+b]++
		counts[2][row+c]++
		fmt.Fprintf(&out, "a%d,b%d,c%d\n", a, b, c)
	}
	return out.String(), counts
}

// shares divides every row of a table by its sum.
func shares(counts []float64, values int) []float64 {
	list := make([]float64, len(counts))
	for from := 0; from < len(counts); from += values {
		sum := 0.0
		for _, n := range counts[from : from+values] {
			sum += n
		}
		for x := range values {
			list[from+x] = counts[from+x] / sum
		}
	}
	return list
}

// fitTables runs btn fit, and returns its tables and everything that it says.
func fitTables(t *testing.T, output string, args ...string) (tables [][]float64, said string) {
	t.Helper()
	code, stdout, stderr := command(t, append([]string{"fit", "--redis", "off", "-o", output}, args...)...)
	if code != 0 {
		t.Fatalf("%q: exit code %d: %s%s", args, code, stdout, stderr)
	}
	return tablesOf(t, output).tables, stdout + stderr
}

// fitted is a model that was written.
type fitted struct {
	*factorgraph.Model
	tables [][]float64
}

func tablesOf(t *testing.T, path string) fitted {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	m, err := formats.Read(f, "", path, uai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	model := fitted{Model: m}
	for _, factor := range m.Factors {
		model.tables = append(model.tables, factor.Table.(*tensor.Dense).Data)
	}
	return model
}

// TestFitFromStructureAlone: from a network without numbers and 10,000 rows the tables are the shares of counting, and the planted ones
// within five standard deviations. Questions refuse the network with the reason.
func TestFitFromStructureAlone(t *testing.T) {
	folder := t.TempDir()
	model := write(t, folder, "structure.bif", structure)
	rows, counts := drawn(10_000, 1)
	tables, said := fitTables(t, filepath.Join(folder, "out.bif"), model, write(t, folder, "rows.csv", "a,b,c\n"+rows))
	if !strings.Contains(said, `tables of 3 variables are unknown, as of "a"`) {
		t.Error(said)
	}
	for f, values := range []int{2, 3, 2} {
		want := shares(counts[f], values)
		for k, p := range tables[f] {
			if math.Abs(p-want[k]) > 1e-12 {
				t.Errorf("table %d, entry %d: %v, counting %v", f, k, p, want[k])
			}
			sum := 0.0
			for _, n := range counts[f][k/values*values : (k/values+1)*values] {
				sum += n
			}
			if deviation := math.Sqrt(planted[f][k] * (1 - planted[f][k]) / sum); math.Abs(p-planted[f][k]) > 5*deviation {
				t.Errorf("table %d, entry %d: %v, planted %v", f, k, p, planted[f][k])
			}
		}
	}
	for _, question := range []string{"infer", "convert"} {
		args := []string{question, model}
		if question == "convert" {
			args = append(args, filepath.Join(folder, "x.uai"))
		}
		code, _, stderr := command(t, args...)
		if code != 3 || !strings.Contains(stderr, `the table of "a" is unknown: btn fit learns it`) {
			t.Errorf("%s: exit code %d, %s", question, code, stderr)
		}
	}
}

// TestUnknownTablesOfTheField: with three rows and maximum likelihood P(Hypo = True) is 1/3, and P(Press = Low | True) 1.
func TestUnknownTablesOfTheField(t *testing.T) {
	data := os.Getenv("BTN_DATA")
	if data == "" {
		t.Skip("BTN_DATA names no folder of reference data")
	}
	folder := filepath.Join(data, "field/46-unknown-table")
	for _, model := range []string{"m.bif", "notables.bif"} {
		tables, _ := fitTables(t, filepath.Join(t.TempDir(), "out.bif"), filepath.Join(folder, model), filepath.Join(folder, "d.csv"))
		if math.Abs(tables[0][0]-1./3) > 1e-9 || math.Abs(tables[1][0]-1) > 1e-9 {
			t.Errorf("%s: %v", model, tables)
		}
	}
}

// TestHiddenVariableOfTheField: from uniform tables EM says that the start is symmetric and names --seed, and ends as likely as from the
// planted ones.
func TestHiddenVariableOfTheField(t *testing.T) {
	data := os.Getenv("BTN_DATA")
	if data == "" {
		t.Skip("BTN_DATA names no folder of reference data")
	}
	folder := filepath.Join(data, "field/27-em-latent")
	for _, args := range [][]string{{"m.bif"}, {"uniform.bif"}, {"uniform.bif", "--seed", "1"}} {
		args[0] = filepath.Join(folder, args[0])
		tables, said := fitTables(t, filepath.Join(t.TempDir(), "out.bif"), append(args, filepath.Join(folder, "d.csv"))...)
		smokers := min(tables[0][0], tables[0][1])
		if smokers < 0.297 || smokers > 0.302 || !strings.Contains(said, "ln likelihood -15835.97") {
			t.Errorf("%q: P(smoker) is %v: %s", args, smokers, said)
		}
		isSymmetric := strings.HasSuffix(args[0], "uniform.bif") && len(args) == 1
		if warns := strings.Contains(said, "EM cannot tell them apart") && strings.Contains(said, "--seed draws others"); warns != isSymmetric {
			t.Errorf("%q: it says %s", args, said)
		}
	}
}

// TestFitUpdatesCounts: two files after each other give the tables of both together, also from the fitted model, and the file of
// counts is that of counting. A share may be forgotten. Rows that are held out change nothing.
func TestFitUpdatesCounts(t *testing.T) {
	folder := t.TempDir()
	model := write(t, folder, "structure.bif", structure)
	first, firstCounts := drawn(9, 2) // some values of c are not there
	second, secondCounts := drawn(300, 3)
	one, two := write(t, folder, "one.csv", "a,b,c\n"+first), write(t, folder, "two.csv", "a,b,c\n"+second)
	output, counts := filepath.Join(folder, "out.bif"), filepath.Join(folder, "counts.json")

	want, _ := fitTables(t, filepath.Join(folder, "both.bif"), model, write(t, folder, "both.csv", "a,b,c\n"+first+second))
	fitTables(t, output, model, one, "--update", counts)
	once, err := os.ReadFile(counts)
	if err != nil {
		t.Fatal(err)
	}
	held := write(t, folder, "held.csv", "a,b,c\na0,b0,c0\na1,,NA\n")
	got, said := fitTables(t, output, output, two, "--update", counts, "--held-out", held)
	ln := (math.Log(got[0][0]*got[1][0]*got[2][0]) + math.Log(got[0][1])) / 2
	for _, text := range []string{
		"earlier     9 cases, from " + counts, ", of 11 parameters: lower is better", fmt.Sprintf("%.6f, %.6f a case\n", 2*ln, ln),
	} {
		if !strings.Contains(said, text) {
			t.Errorf("no %q in\n%s", text, said)
		}
	}
	for f := range want {
		for k := range want[f] {
			if math.Abs(got[f][k]-want[f][k]) > 1e-12 {
				t.Errorf("table %d, entry %d: %v after two files, %v of both together", f, k, got[f][k], want[f][k])
			}
		}
	}
	after, err := fit.LoadCounts(counts)
	if err != nil || after.Weight != 309 {
		t.Fatalf("%+v, %v", after, err)
	}

	if err := os.WriteFile(counts, once, 0o600); err != nil {
		t.Fatal(err)
	}
	got, _ = fitTables(t, output, model, two, "--update", counts, "--forget", "0.25")
	for f, values := range []int{2, 3, 2} {
		weighted := make([]float64, len(planted[f]))
		for k := range weighted {
			if n := firstCounts[f][k] + secondCounts[f][k]; math.Abs(after.Tables[f][k]-n) > 1e-9 {
				t.Errorf("table %d, entry %d: the file counts %v, counting %v", f, k, after.Tables[f][k], n)
			}
			weighted[k] = 0.25*firstCounts[f][k] + secondCounts[f][k]
		}
		for k, p := range shares(weighted, values) {
			if math.Abs(got[f][k]-p) > 1e-12 {
				t.Errorf("table %d, entry %d: %v, a quarter kept %v", f, k, got[f][k], p)
			}
		}
	}
	if left, err := filepath.Glob(folder + "/*.run"); len(left) > 0 || err != nil {
		t.Errorf("files of unfinished runs are left: %q, %v", left, err)
	}

	for _, c := range []struct {
		want string
		args []string
	}{
		{"standard input can be read once: 2 inputs", []string{"-", "--held-out", "-"}},
		{"--prior and --equivalent-size belong together", []string{one, "--prior", output}},
		{"--prior and --equivalent-size belong together", []string{one, "--equivalent-size", "3"}},
		{"--forget must be 0 to 1, not 1.5", []string{one, "--update", counts, "--forget", "1.5"}},
		{"--forget is about the counts of --update", []string{one, "--forget", "0.5"}},
		{"no file of counts", []string{one, "--update", model}},
		{"the prior is a network with other variables", []string{one, "--prior", "testdata/missing-values/m.bif", "--equivalent-size", "3"}},
		{`the table of "a" is unknown`, []string{one, "--prior", model, "--equivalent-size", "3"}},
	} {
		code, _, stderr := command(t, append([]string{"fit", "--redis", "off", model}, c.args...)...)
		if code == 0 || !strings.Contains(stderr, c.want) {
			t.Errorf("%q: exit code %d, %s, want %s", c.args, code, stderr, c.want)
		}
	}
}

// TestFitWithAPrior: no case at all of some rows leaves them to the prior, and others are between prior and counting.
func TestFitWithAPrior(t *testing.T) {
	folder := t.TempDir()
	model := write(t, folder, "structure.bif", structure)
	prior := write(t, folder, "prior.bif", strings.NewReplacer("-1, -1", "0.5, 0.5", "?, ?, ?", "0.2, 0.2, 0.6", "b ) { }",
		"b ) { default 0.25, 0.75; }").Replace(structure))
	rows := write(t, folder, "rows.csv", "a,b,c\na0,b0,c0\na0,b0,c0\n")
	got, _ := fitTables(t, filepath.Join(folder, "out.bif"), model, rows, "--prior", prior, "--equivalent-size", "10")
	// counts of the prior: a0 5, a0 b0 1, a0 b1 1, a0 b2 3, a0 b0 c0 0.25; two cases have a0 b0 c0
	for k, want := range [][]float64{{7. / 12, 5. / 12}, {3. / 7, 1. / 7, 3. / 7, 0.2, 0.2, 0.6}, {2.25 / 3, 0.75 / 3, 0.25, 0.75}} {
		for i, p := range want {
			if math.Abs(got[k][i]-p) > 1e-12 {
				t.Errorf("table %d, entry %d: %v, want %v", k, i, got[k][i], p)
			}
		}
	}
}

// TestInterruptedUpdatesCountOnce: an interrupted fit leaves the file of counts as it was, and the same command then counts its cases once.
// A file that another run has written meanwhile is not overwritten.
func TestInterruptedUpdatesCountOnce(t *testing.T) {
	folder := t.TempDir()
	model := write(t, folder, "structure.bif", structure)
	rows, want := drawn(50, 4)
	data := write(t, folder, "rows.csv", "a,b,c\n"+rows)
	output, counts := filepath.Join(folder, "out.bif"), filepath.Join(folder, "counts.json")
	args := []string{"fit", "--redis", "off", "-o", output, "--update", counts, model, data}
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var stderr bytes.Buffer
	if code := run(ctx, args, &interrupting{after: "iteration     1", end: end}, &stderr); code != 130 {
		t.Fatalf("interrupted: exit code %d, %s", code, stderr.String())
	}
	if c, err := fit.LoadCounts(counts); c != nil || err != nil {
		t.Errorf("after an interruption the file has %+v, %v", c, err)
	}
	fitTables(t, output, args[5:]...)
	c, err := fit.LoadCounts(counts)
	if err != nil || c.Weight != 50 {
		t.Fatalf("%+v, %v", c, err)
	}
	for f, table := range want {
		for k, n := range table {
			if math.Abs(c.Tables[f][k]-n) > 1e-9 {
				t.Errorf("table %d, entry %d: %v, counting %v", f, k, c.Tables[f][k], n)
			}
		}
	}

	command := &fitCmd{Update: counts}
	_, digest, err := command.loadCounts()
	if err != nil || command.checkCounts(fitInputs{countsDigest: digest}) != nil {
		t.Errorf("%v", err)
	}
	if err := command.checkCounts(fitInputs{}); err == nil || !strings.Contains(err.Error(), "was changed by another run meanwhile") {
		t.Errorf("a file of another run: %v", err)
	}
}
