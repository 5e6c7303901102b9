package compiler

// Weighted formulas of the model counting competition, with the counts that it published.

import (
	"bufio"
	"compress/gzip"
	"context"
	"encoding/csv"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/base/cputime"
	"github.com/basetensor/basetensor/internal/methods/circuits/formula"
	"github.com/basetensor/basetensor/internal/testing/reference"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

var (
	models  = flag.String("models", "", "parts of the names of the models that are summed, between commas; some that are quick if empty")
	cells   = flag.Int("cells", 0, "entries of the tables of a component that is eliminated, at most; 0: the default, below 0: none")
	simpler = flag.Bool("simplify", false, "logical preprocessing first, as package logic does")
	seconds = flag.Duration("seconds", 0, "time for each of them; no limit if 0")
)

// readDIMACS reads a weighted CNF: every variable has two values, 1 is true.
func readDIMACS(t testing.TB, path string) (*formula.Formula, []scaled.Number) {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}

	var f formula.Formula
	var weights []scaled.Number
	atom := func(l int) int { // of the value that makes l true
		if l < 0 {
			return 2 * (-l - 1)
		}
		return 2*(l-1) + 1
	}
	var clause []formula.Literal
	lines := bufio.NewScanner(unpacked)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 0 || words[0] == "c" && (len(words) < 5 || words[1] != "p" || words[2] != "weight"):
		case words[0] == "c":
			l, _ := strconv.Atoi(words[3])
			w, err := strconv.ParseFloat(words[4], 64)
			if err != nil {
				t.Fatal(err)
			}
			weights[atom(l)] = scaled.FromFloat(w)
		case words[0] == "p":
			n, _ := strconv.Atoi(words[2])
			for range n {
				f.Domains = append(f.Domains, 2)
			}
			weights = make([]scaled.Number, 2*n)
			for i := range weights {
				weights[i] = scaled.One
			}
		default:
			for _, word := range words {
				l, err := strconv.Atoi(word)
				if err != nil {
					t.Fatal(err)
				}
				if l == 0 {
					f.Clauses = append(f.Clauses, clause)
					clause = nil
					continue
				}
				clause = append(clause, formula.Literal(2*atom(l)))
			}
		}
	}
	f.Links = len(f.Domains)
	f.Scale = scaled.One
	out, err := formula.New(f)
	if err != nil || lines.Err() != nil {
		t.Fatal(err, lines.Err())
	}
	return out, weights
}

// published are log10 of the counts by name.
func published(t testing.TB, dir string) map[string]float64 {
	t.Helper()
	file, err := os.Open(filepath.Join(dir, "counts.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]float64{}
	for _, row := range rows[1:] {
		if counts[row[0]], err = strconv.ParseFloat(row[1], 64); err != nil {
			t.Fatal(err)
		}
	}
	return counts
}

// isSelected reports whether a model is to be summed.
func isSelected(name string, quick []string) bool {
	if *models == "" {
		return slices.Contains(quick, name)
	}
	for _, pattern := range strings.Split(*models, ",") {
		if strings.Contains(name, pattern) {
			return true
		}
	}
	return false
}

// quickCounts are published models that take a fraction of a second.
var quickCounts = []string{
	"mc2022_track2_007", "mc2022_track2_009", "mc2022_track2_013", "mc2022_track2_015", "mc2022_track2_017", "mc2022_track2_021",
	"mc2022_track2_037", "mc2022_track2_045", "mc2022_track2_047", "mc2022_track2_057", "mc2022_track2_063",
}

func TestPublishedCounts(t *testing.T) {
	dir := strings.TrimSuffix(reference.Path(t, "wcnf"), ".uai")
	counts := published(t, dir)
	for name, want := range counts {
		if !isSelected(name, quickCounts) {
			continue
		}
		f, weights := readDIMACS(t, filepath.Join(dir, name+".cnf.gz"))
		ctx, cancel := deadline()
		start := cputime.OfProcess()
		fixed := scaled.One
		if *simpler {
			f, weights, fixed = simplified(t, f, weights)
		}
		got, err := Compile(ctx, f, Options{Weights: weights, Memory: 6 << 30, cells: *cells})
		cancel()
		if fault.CodeOf(err) == fault.Deadline {
			t.Logf("%s: not in %v: %+v", name, cputime.OfProcess()-start, got.Stats)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		got.Z = got.Z.Mul(fixed)
		t.Logf("%s: %v %+v", name, cputime.OfProcess()-start, got.Stats)
		if want != -1 && math.Abs(got.Z.Log10Abs()-want) > 2e-8*max(1, math.Abs(want)) {
			t.Errorf("%s: log10 Z = %.9f, published is %.9f", name, got.Z.Log10Abs(), want)
		}
	}
}

// simplified returns Simplify's formula, with its weights, and the weight of the fixed values.
func simplified(t testing.TB, f *formula.Formula, weights []scaled.Number) (*formula.Formula, []scaled.Number, scaled.Number) {
	t.Helper()
	r, err := formula.Simplify(context.Background(), f, 0)
	if err != nil {
		t.Fatal(err)
	}
	product := func(atoms []int32) scaled.Number {
		p := scaled.One
		for _, a := range atoms {
			p = p.Mul(weights[a])
		}
		return p
	}
	of := make([]scaled.Number, len(r.StandsFor))
	for a, stands := range r.StandsFor {
		of[a] = product(stands)
	}
	return r.Formula, of, product(r.FixedAtoms)
}

// deadline is the context of one sum.
func deadline() (context.Context, context.CancelFunc) {
	if *seconds == 0 {
		return context.Background(), func() {}
	}
	return context.WithTimeout(context.Background(), *seconds)
}
