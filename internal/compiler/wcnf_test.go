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
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/formula"
	"github.com/basetensor/basetensor/internal/reference"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

var (
	models  = flag.String("models", "", "pattern of the published models that TestPublishedCounts sums; those that are quick if empty")
	seconds = flag.Duration("seconds", 0, "time for each of them; by counted work if 0")
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

// processorTime is what the process took of the cores so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano())
}

// quick is the work that TestPublishedCounts does for one model by default: a second or two.
const quick = 1 << 25

func TestPublishedCounts(t *testing.T) {
	dir := strings.TrimSuffix(reference.Path(t, "wcnf"), ".uai")
	counts := published(t, dir)
	paths, err := filepath.Glob(filepath.Join(dir, "*"+*models+"*.cnf.gz"))
	if err != nil || len(paths) == 0 {
		t.Fatal("no models", err)
	}
	solved := 0
	for _, path := range paths {
		name := strings.TrimSuffix(filepath.Base(path), ".cnf.gz")
		f, weights := readDIMACS(t, path)
		ctx, cancel := context.Background(), func() {}
		o := Options{Weights: weights, Work: quick, Memory: 6 << 30}
		if *seconds > 0 {
			ctx, cancel = context.WithTimeout(ctx, *seconds)
			o.Work = 0
		}
		start := processorTime()
		got, err := Compile(ctx, f, o)
		cancel()
		if code := fault.CodeOf(err); err != nil && (code == fault.OverBudget || code == fault.Deadline) {
			t.Logf("%s: not in %v: %+v", name, processorTime()-start, got.Stats)
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		solved++
		t.Logf("%s: %v %+v", name, processorTime()-start, got.Stats)
		if want := counts[name]; want != -1 && math.Abs(got.Z.Log10Abs()-want) > 2e-8*max(1, math.Abs(want)) {
			t.Errorf("%s: log10 Z = %.9f, published is %.9f", name, got.Z.Log10Abs(), want)
		}
	}
	if *models == "" && solved < 12 {
		t.Errorf("%d of %d models within %d steps, expected more", solved, len(paths), quick)
	}
}
