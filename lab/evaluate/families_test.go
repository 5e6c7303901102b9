package evaluate

import (
	"context"
	"math"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/lab/families"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
)

// counting is a method that counts its answers, and states 0.1 for an error of 0.2.
func counting(n *int, fail int) Method {
	return Method{Name: "counting", Step: math.NaN(), Solve: func(ctx context.Context, m *factorgraph.Model, want bool) (Outcome, error) {
		if *n++; *n == fail {
			return unknown(), fault.New(fault.FailedEstimate, "failed")
		}
		o := unknown()
		exact, err := Settings("", exactSettings).Solve(ctx, m, want)
		o.LnZ, o.Uncertainty, o.Marginals = exact.LnZ+0.2, 0.1, exact.Marginals
		return o, err
	}}
}

// found is the experiment of a name.
func found(t *testing.T, name string) Experiment {
	t.Helper()
	list, err := Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return list[0]
}

// TestFamiliesGoOn: rows of an earlier run are kept as they are, and the missing ones are measured; rows are kept after every model.
func TestFamiliesGoOn(t *testing.T) {
	n, kept := 0, 0
	dir, x := t.TempDir(), found(t, "families")
	o := Options{Short: true, Methods: []Method{counting(&n, 3)}}
	o.Keep = func(rows []Row) error {
		kept++
		return WriteRows(dir, x, rows)
	}
	all := len(families.Names())
	rows, err := runFamilies(t.Context(), o)
	if err != nil || len(rows) != all || n != all || kept != all {
		t.Fatalf("%d rows of %d, %d answers, kept %d times: %v", len(rows), all, n, kept, err)
	}
	if rows[2].Failed == "" || !math.IsNaN(rows[2].Estimate) || math.Abs(rows[1].Error-0.2) > 1e-9 {
		t.Errorf("%+v, %+v", rows[1], rows[2])
	}
	o.Earlier, err = Rows(dir, x)
	if err != nil || len(o.Earlier) != all {
		t.Fatalf("%d rows: %v", len(o.Earlier), err)
	}
	later := o
	later.First, later.Models, later.Earlier, later.Keep = 2, []string{"qmr", "needle"}, nil, nil
	if more, err := runFamilies(t.Context(), later); err != nil || len(more) != 2 || more[0].Model != "qmr-30-0.05-2" || n != all+2 {
		t.Fatalf("%+v, %v", more, err)
	}
	n = all
	o.Earlier = o.Earlier[:all-2]
	again, err := runFamilies(t.Context(), o)
	if err != nil || len(again) != all || n != all+2 || kept != all+2 {
		t.Errorf("%d rows, %d answers, kept %d times: %v", len(again), n, kept, err)
	}
	for k, r := range again {
		if r.Model != rows[k].Model || r.Failed != rows[k].Failed || !r.approximate() && r.Failed == "" {
			t.Errorf("row %d: %+v, was %+v", k, r, rows[k])
		}
	}
	if none, err := Rows(filepath.Join(dir, "nothing"), x); none != nil || err != nil {
		t.Errorf("%v, %v", none, err)
	}
}

// TestEveryFamilyMethodAnswers: the methods of the experiment on a small grid fill the compared columns.
func TestEveryFamilyMethodAnswers(t *testing.T) {
	m := small(t)
	exact, err := Settings("", exactSettings).Solve(t.Context(), m, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range familyMethods() {
		got, err := timed(t.Context(), a.Method, m, a.marginals)
		if err != nil || math.IsNaN(got.LnZ) || math.IsNaN(got.CPU) {
			t.Errorf("%s: %+v, %v", a.Name, got, err)
			continue
		}
		if got.Lower > exact.LnZ+1e-9 || got.Upper < exact.LnZ-1e-9 {
			t.Errorf("%s: ln Z = %v is not between %v and %v", a.Name, exact.LnZ, got.Lower, got.Upper)
		}
		switch a.Name {
		case ofSampled:
			if math.IsNaN(got.StandardError) || math.IsNaN(got.Lower) || got.Used != "sampled" {
				t.Errorf("%s: %+v", a.Name, got)
			}
		case ofAnnealing:
			if off := math.Abs(got.LnZ - exact.LnZ); !(off <= 6*got.StandardError) {
				t.Errorf("annealing is %v off, ± %v", off, got.StandardError)
			}
		}
	}
}

// TestCover counts by hand.
func TestCover(t *testing.T) {
	row := func(off, stated, lower, upper float64) Row {
		r := Row{LnZ: 10, Estimate: 10 + off, Error: off, Uncertainty: stated, Largest: off, Guarantee: silent()}
		r.Lower, r.Upper, r.MarginalStated = lower, upper, stated
		return r
	}
	nan := math.NaN()
	failed := Row{LnZ: 10, Estimate: nan, Error: nan, Uncertainty: nan, Largest: nan, Guarantee: silent()}
	rows := []Row{
		row(0.3, 0.1001, 9, 11),   // within
		row(0.3, 0.0999, nan, 10), // outside
		row(0.3, nan, 10.1, nan),  // states nothing, and its bound is wrong
		row(1e-10, 0.1, nan, 9.9), // the reference itself, with a wrong bound
		row(0.2, 0, nan, nan),     // says that it is exact
		failed,
	}
	for _, marginals := range []bool{false, true} {
		c := cover(rows, marginals)
		if c.models != 6 || c.failed != 1 || c.approximate != 3 || c.within != 1 || c.unstated != 1 || len(c.ratios) != 2 {
			t.Errorf("marginals %v: %+v", marginals, c)
		}
		if c.bounded != 4 || c.broken != 2 || len(c.below) != 2 || len(c.above) != 3 {
			t.Errorf("bounds: %+v", c)
		}
	}
	if s := outsideTable(rows, rows[:2]); strings.Count(s, "\n") != 2+3+1 || strings.Count(s, "wrong") != 2 ||
		!strings.Contains(s, "marginals |  | 0.3 | 0.1") {
		t.Errorf("%s", s)
	}
}

// TestPageHasItsTables: the text between the marks is replaced, the rest stays; unknown names are refused.
func TestPageHasItsTables(t *testing.T) {
	rows := []Row{{Model: "m", Family: "qmr", Method: ofAuto, LnZ: 1, Estimate: 2, Error: 1, Uncertainty: 1, Guarantee: silent()}}
	const page = "before\n<!-- table: families coverage -->\nold\n<!-- end -->\nafter\n"
	of := func(x Experiment) ([]Row, error) {
		if x.Name == "families" {
			return rows, nil
		}
		return nil, nil
	}
	got, err := Page(page, of)
	const line = "| qmr | 1 | 1 | 0 | 1 of 1 (100.0 %) | 1 | 1 | 1 | 0 | 0 | – | – | – | – |\n"
	if err != nil || strings.Contains(got, "old") || !strings.Contains(got, line) ||
		!strings.HasPrefix(got, "before\n<!-- ") || !strings.HasSuffix(got, " -->\nafter\n") {
		t.Errorf("%q, %v", got, err)
	}
	if again, err := Page(got, of); err != nil || again != got {
		t.Errorf("%q, %v", again, err)
	}
	const unmeasured = "<!-- table: time errors -->\nold\n<!-- end -->"
	if same, err := Page(unmeasured, of); err != nil || same != unmeasured {
		t.Errorf("%q, %v", same, err)
	}
	for _, wrong := range []string{
		"no place", "<!-- table: families nothing -->\n<!-- end -->", "<!-- table: nothing coverage -->\n<!-- end -->",
		"<!-- table: all coverage -->\n<!-- end -->",
	} {
		if _, err := Page(wrong, of); err == nil {
			t.Errorf("%q is taken", wrong)
		}
	}
}
