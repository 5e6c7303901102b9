package evaluate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/base/cputime"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// tree is a chain of mixed domains with a value that zeros exclude: most methods are exact on it.
func tree() *factorgraph.Model {
	rng := rand.New(rand.NewPCG(1, 1))
	m := &factorgraph.Model{Domains: []int{2, 4, 3, 2, 1, 2}}
	for i := range m.Domains[1:] {
		dims := []int{m.Domains[i], m.Domains[i+1]}
		m.Factors = append(m.Factors, factorgraph.Factor{
			Scope: []int{i, i + 1},
			Table: modeltest.Tensor(rng, modeltest.Dense, dims, modeltest.SmallOptions{}),
		})
	}
	m.Factors = append(m.Factors, factorgraph.Factor{
		Scope: []int{1},
		Table: &tensor.Dense{Shape: []int{4}, Data: []float64{1, 0, 2, 3}},
	})
	return m
}

func TestMethodsOnATree(t *testing.T) {
	m := tree()
	want, _ := oracle.LogZ(m, factorgraph.Evidence{})
	marginals := oracle.Marginals(m, factorgraph.Evidence{})
	for _, method := range Methods() {
		if strings.HasSuffix(method.Name, "regions") { // a tree has none, which is its error
			continue
		}
		got, err := method.Solve(t.Context(), m, true)
		if err != nil {
			t.Errorf("%s: %v", method.Name, err)
			continue
		}
		limit, far := 1e-9, 1e-9 // rounding
		switch method.Name {
		case "symmetry-cp":
			limit, far = 0.5, 0.2
		}
		if !(math.Abs(got.LnZ-want) <= limit) {
			t.Errorf("%s: ln Z = %v, want %v", method.Name, got.LnZ, want)
		}
		if mean, _ := distance(got.Marginals, marginals); got.Marginals != nil && !(mean <= far) {
			t.Errorf("%s: marginals %v, want %v", method.Name, got.Marginals, marginals)
		}
		if has := got.Marginals != nil; has == strings.HasPrefix(method.Name, "tree-") {
			t.Errorf("%s: marginals %v", method.Name, has)
		}
		if less, err := method.Solve(t.Context(), m, false); err != nil || less.Marginals != nil {
			t.Errorf("%s: marginals that nobody wanted (%v)", method.Name, err)
		}
	}
}

func TestModels(t *testing.T) {
	if n := len(drawnFrom(strengthModels, Options{})); n != 400 {
		t.Errorf("%d models of strength", n)
	}
	list := drawnFrom(calibrationModels, Options{})
	families, sizes, attractive := map[string]int{}, map[int]bool{}, 0
	for _, x := range list {
		families[x.family.name]++
		sizes[x.size] = true
		if x.attractive {
			attractive++
		}
	}
	if len(list) != 300 || len(families) != 5 || len(sizes) < 20 || attractive != 120 {
		t.Errorf("%d models of calibration, %v, %d sizes, %d attractive", len(list), families, len(sizes), attractive)
	}
	for _, o := range []Options{{Short: true}, {Short: true, Seeds: 5}} {
		all := slices.Concat(strengthModels, componentModels, calibrationModels, codeModels, constraintModels, attractiveModels)
		for _, x := range drawnFrom(all, o) {
			if m, err := x.build(); err != nil || m.Validate() != nil {
				t.Errorf("%s: %v", x, err)
			}
		}
	}
}

// stub returns a given outcome.
func stub(name string, o Outcome, err error) Method {
	return Method{Name: name, Solve: func(context.Context, *factorgraph.Model, bool) (Outcome, error) {
		return o, err
	}}
}

func TestCompare(t *testing.T) {
	list := []instance{{family: grids, size: 3, strength: 1, seed: 4}}
	m, err := list[0].build()
	if err != nil {
		t.Fatal(err)
	}
	want, _ := oracle.LogZ(m, factorgraph.Evidence{})
	uniform := make([][]float64, 9)
	exact := oracle.Marginals(m, factorgraph.Evidence{})
	far := 0.0
	for v := range uniform {
		uniform[v] = []float64{0.5, 0.5}
		far += math.Abs(exact[v][0]-0.5) / 9
	}
	var progress bytes.Buffer
	methods := []Method{stub("off", Outcome{
		LnZ:         want - 0.25,
		Uncertainty: 0.1,
		Marginals:   uniform,
		Flops:       7,
	}, nil), stub("broken", Outcome{}, errors.New("no idea"))}
	rows, err := compare(t.Context(), Options{Progress: &progress}, list, methods, true)
	if err != nil || len(rows) != 2 {
		t.Fatal(rows, err)
	}
	r := rows[0]
	if math.Abs(r.Error-0.25) > 1e-12 || math.Abs(r.LnZ-want) > 1e-12 || math.Abs(r.MarginalError-far) > 1e-12 ||
		r.Uncertainty != 0.1 || r.Flops != 7 || r.Failed != "" || r.Variables != 9 {
		t.Errorf("row %+v, ln Z = %v, marginals off by %v", r, want, far)
	}
	if r := rows[1]; r.Failed != "no idea" || !math.IsNaN(r.Error) || !math.IsNaN(r.Estimate) {
		t.Errorf("row of a failure %+v", r)
	}
	if got := progress.String(); !strings.HasPrefix(got, "1/1 grid 3 Δ=1 seed 4: ln Z = ") ||
		!strings.Contains(got, "off 0.25 (") || !strings.Contains(got, "broken failed (") {
		t.Errorf("progress %q", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := compare(ctx, Options{}, list, methods, true); !errors.Is(err, context.Canceled) {
		t.Errorf("after a cancellation: %v", err)
	}
}

// TestFilesAreReproducible: the same seeds, on a clock that stands still, give the same files, however long the answers take.
func TestFilesAreReproducible(t *testing.T) {
	now = func() time.Time { return time.Unix(0, 0) }
	used = func() time.Duration { return 0 }
	limit := timeLimit
	timeLimit = 24 * time.Hour
	defer func() { now, used, timeLimit = time.Now, cputime.OfProcess, limit }()
	methods, err := Named("bp", "few-regions")
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range Experiments() {
		var files [2]map[string]string
		for k := range files {
			o := Options{Short: true, Seeds: 1, Methods: methods, Models: []string{"grid*", "qmr", "dbn", "soft*", "hard*"}}
			rows, err := x.Run(t.Context(), o)
			if err != nil {
				t.Fatal(err)
			}
			dir := filepath.Join(t.TempDir(), "results")
			if err := Write(dir, x, rows); err != nil {
				t.Fatal(err)
			}
			list, err := os.ReadDir(dir)
			if err != nil {
				t.Fatal(err)
			}
			files[k] = map[string]string{}
			for _, f := range list {
				data, err := os.ReadFile(filepath.Join(dir, f.Name()))
				if err != nil {
					t.Fatal(err)
				}
				files[k][f.Name()] = string(data)
			}
			if lines := strings.Count(files[k][x.Name+".csv"], "\n"); lines != 1+len(rows) {
				t.Errorf("%s: %d lines of %d rows", x.Name, lines, len(rows))
			}
		}
		if want := map[string]int{
			"strength":                   12,
			"components":                 6,
			"time":                       6,
			"calibration":                4,
			"calibration-of-more":        4,
			"calibration-of-constraints": 3,
			"families":                   7,
			"large":                      2,
			"solvable":                   2,
			"learned":                    2,
		}[x.Name]; len(files[0]) != want {
			t.Errorf("%s: %d files, want %d", x.Name, len(files[0]), want)
		}
		for name, data := range files[0] {
			if data == "" || data != files[1][name] {
				t.Errorf("%s is empty or not the same twice:\n%s", name, unlike(data, files[1][name]))
			}
		}
	}
}

// unlike returns the first line that two texts do not share, of both.
func unlike(a, b string) string {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range min(len(x), len(y)) {
		if x[i] != y[i] {
			return x[i] + "\n" + y[i]
		}
	}
	return fmt.Sprintf("%d and %d lines", len(x), len(y))
}

func TestCalibrationFigures(t *testing.T) {
	nan := math.NaN()
	var rows []Row
	for _, r := range []Row{
		{Estimate: 1, Error: 0.2, Uncertainty: 0.1}, {Estimate: 1, Error: 0.31, Uncertainty: 0.1},
		{Estimate: 1, Error: 0, Uncertainty: 0}, {Estimate: 1, Error: 1e-11, Uncertainty: 1e-8},
		{Estimate: 1, Error: 0.1, Uncertainty: nan}, {Estimate: nan, Error: nan, Uncertainty: nan},
	} {
		r.Method = "m"
		rows = append(rows, r, Row{Method: "other", Estimate: 1, Uncertainty: 1})
	}
	if got, want := calibrate(rows, "m"), (calibrated{
		models:   6,
		failed:   1,
		unstated: 1,
		settled:  1,
		within:   2,
		stated:   0.1,
		err:      0.2,
	}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if s := calibrationSummary(rows); !strings.Contains(s,
		"m: 6 models, 1 failed, 1 without uncertainty, 1 to rounding; of the other 3 within 3 × stated 2 "+
			"(66.7 %), median stated 0.1, median error 0.2, ratio 0.5\n") {
		t.Errorf("summary %q", s)
	}
}

func TestStrengthCurves(t *testing.T) {
	var rows []Row
	for seed, e := range []float64{1, 2, 6} {
		rows = append(rows, Row{
			Family:        "grid",
			Method:        "a",
			Strength:      2,
			Seed:          uint64(seed),
			Error:         e,
			MarginalError: math.NaN(),
		},
			Row{
				Family:        "grid",
				Method:        "a",
				Strength:      1,
				Error:         e / 10,
				MarginalError: math.NaN(),
			}, Row{Family: "complete", Method: "b", Strength: 1, Error: 9})
	}
	grid := groups(rows, Row.label)[0].rows
	got := curves(grid, ofStrength, ofError)
	if len(got) != 1 || len(got[0].Points) != 2 || got[0].Points[0].X != 1 || got[0].Points[1].Y != 2 ||
		got[0].Points[1].High != 4 {
		t.Errorf("curves %+v", got)
	}
	if got := curves(grid, ofStrength, func(r Row) float64 { return r.MarginalError }); len(got) != 0 {
		t.Errorf("a curve of nothing: %+v", got)
	}
	if s := Experiments()[0].Summary(rows); !strings.Contains(s, "  a                         Δ=1: 0.2  Δ=2: 2\n") {
		t.Errorf("summary %q", s)
	}
}

func TestNames(t *testing.T) {
	if _, err := Find("nothing"); fault.CodeOf(err) != fault.BadInput {
		t.Errorf("experiment: %v", err)
	}
	if _, err := Named("bp", "nothing"); fault.CodeOf(err) != fault.BadInput {
		t.Errorf("method: %v", err)
	}
	if all, err := Find("all"); err != nil || len(all) != len(Experiments()) {
		t.Errorf("all: %v, %v", all, err)
	}
}
