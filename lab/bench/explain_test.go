package bench

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/lab/chart"
)

// program writes a shell script that stands in for a solver.
func program(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "solver")
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestExplain: assignments, bounds and proofs of both solvers are read as they print them; a solver ends with its proof.
func TestExplain(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.uai": "MARKOV 2 2 3 2 1 0 2 0 1 2 0.5 0.25 6 1 1 0.125 1 0 1", "a.uai.evid": "1 0 1"})
	models, err := Find(dir, nil, false)
	if err != nil {
		t.Fatal(err)
	}
	// within a second no proof, then one; the evidence is the second argument and not printed
	own := program(t, `for word; do case $word in --budget=*) budget=${word#--budget=};; esac; done
case $budget in
1s) echo '{"status": "ok", "mpe": {"ln_weight": -2, "ln_bound": -0.5, "optimal": false}}';;
2s) echo '{"status": "error", "error": {"code": "over_budget", "message": "too wide"}}';;
*) echo '{"status": "ok", "mpe": {"ln_weight": -1.3862943611198906, "unique": true}}';;
esac
`)
	other := program(t, `grep -q '^1 0 1$' "$2" || exit 1
echo 'Initial lower and upper bounds: [3862943, 99999999] 89.5%'
echo 'New solution: 33862943 energy: 3.386 prob: 0.1 (0 backtracks, 1 nodes, depth 2)'
echo 1 0 > "${4#-w=}"
[ $3 = -timer=1 ] || { echo 'New solution: 13862943 energy: 1.386 prob: 0.25 (0 backtracks, 1 nodes, depth 2)'
echo 'Optimum: 13862943 energy: 1.386 prob: 0.25 in 0 backtracks'; }
`)
	var rows []Explanation
	budgets := []time.Duration{time.Second, 2 * time.Second, 5 * time.Second}
	err = Explain(t.Context(), map[string]string{Own: own, Toulbar: other}, budgets, models, func(e Explanation) { rows = append(rows, e) })
	if err != nil || len(rows) != 5 {
		t.Fatalf("%+v, %v", rows, err)
	}
	quarter := math.Log(0.25)
	for k, want := range []Explanation{
		{Solver: Own, Budget: 1, Best: -2, Bound: -0.5},
		{Solver: Own, Budget: 2, Best: math.NaN(), Bound: math.NaN(), Note: "over_budget"},
		{Solver: Own, Budget: 5, Best: quarter, Bound: quarter, Optimal: true},
		{Solver: Toulbar, Budget: 1, Best: quarter, Bound: quarter + 3},
		{Solver: Toulbar, Budget: 2, Best: quarter, Bound: quarter, Optimal: true},
	} {
		got := rows[k]
		same := func(a, b float64) bool { return math.Abs(a-b) < 1e-12 || math.IsNaN(a) && math.IsNaN(b) }
		if got.Model != "a" || got.Variables != 2 || got.Solver != want.Solver || got.Budget != want.Budget || got.Optimal != want.Optimal ||
			got.Note != want.Note || !same(got.Best, want.Best) || !same(got.Bound, want.Bound) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}

	for k := range rows {
		rows[k].CPU = 0.25 // the file has milliseconds
	}
	var text bytes.Buffer
	if err := chart.WriteCSV(&text, rows, false); err != nil {
		t.Fatal(err)
	}
	read, err := chart.ReadCSV[Explanation](&text)
	if err != nil || SummaryOfExplanations(read) != SummaryOfExplanations(rows) {
		t.Errorf("%+v, %v", read, err)
	}
	summary := SummaryOfExplanations(rows)
	for _, part := range []string{"1 models: 1 proved by both", "median 1.00", "| a | ", "| -1.3863 | 0 | 0 | 0 |"} {
		if !strings.Contains(summary, part) {
			t.Errorf("no %q in %s", part, summary)
		}
	}
	if series := SeriesOfExplanations(rows); len(series) != 2 || series[0].Name != Own || series[0].Total != 1 || len(series[1].Times) != 1 {
		t.Errorf("%+v", series)
	}
	for best, want := range map[float64]string{-1: "as good or better: 1", -5: "as good or better: 0", math.NaN(): "as good or better: 0"} {
		open := []Explanation{{Model: "b", Solver: Own, Best: best, Bound: 0}, {Model: "b", Solver: Toulbar, Best: -2, Bound: 0}}
		if got := SummaryOfExplanations(open); !strings.Contains(got, want) {
			t.Errorf("best %v: no %q in %s", best, want, got)
		}
	}
	rows[4].Bound, rows[4].Best = -5, -6
	if !strings.Contains(SummaryOfExplanations(rows), "- a weight above a bound: a\n") {
		t.Error("a weight above the other's bound is not said")
	}
}

// TestWeightsOfAssignments: text that is no assignment, and one against the evidence, has no weight.
func TestWeightsOfAssignments(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.uai": "MARKOV 2 2 3 1 2 0 1 6 1 2 4 8 16 0", "a.uai.evid": "1 0 1"})
	tables, observed, err := copied(filepath.Join(dir, "a.uai"), filepath.Join(dir, "m"), filepath.Join(dir, "e"))
	if err != nil {
		t.Fatal(err)
	}
	none := math.NaN()
	for text, want := range map[string]float64{"1 1": math.Log(16), "1 2": math.Inf(-1), "0 1": none, "1": none, "1 3": none, "1 x": none} {
		if got := lnWeight(tables, observed, strings.Fields(text)); got != want && !(math.IsNaN(got) && math.IsNaN(want)) {
			t.Errorf("%s: %v, want %v", text, got, want)
		}
	}
}
