package fit

import (
	"bytes"
	"context"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/wire"
)

// redrawn is a network with the structure of m and other tables, all entries above 0.
func redrawn(m *factorgraph.Model, rng *rand.Rand) *factorgraph.Model {
	other := *m
	other.Factors = nil
	for _, f := range m.Factors {
		shape := f.Table.Dims()
		list := make([]float64, len(f.Table.(*tensor.Dense).Data))
		values := shape[len(shape)-1]
		for from := 0; from < len(list); from += values {
			sum := 0.0
			for x := range values {
				list[from+x] = 0.1 + rng.Float64()
				sum += list[from+x]
			}
			for x := range values {
				list[from+x] /= sum
			}
		}
		other.Factors = append(other.Factors, factorgraph.Factor{Scope: f.Scope, Table: &tensor.Dense{Shape: shape, Data: list}})
	}
	return &other
}

// numbers are the tables of a model, one after the other.
func numbers(m *factorgraph.Model) (all []float64) {
	for _, f := range m.Factors {
		all = append(all, f.Table.(*tensor.Dense).Data...)
	}
	return all
}

func equals(t *testing.T, what string, got, want []float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, want %d", what, len(got), len(want))
	}
	for k := range want {
		if math.Abs(got[k]-want[k]) > 1e-9 {
			t.Errorf("%s, entry %d: %v, want %v", what, k, got[k], want[k])
		}
	}
}

// TestPriorCountsAsCases: a step with a prior of equivalent size N adds N·P(value, parents), by enumeration, to the expected counts.
func TestPriorCountsAsCases(t *testing.T) {
	for seed := range uint64(8) {
		rng := rand.New(rand.NewPCG(seed, 3))
		m := redrawn(network(rng, 2+rng.IntN(4)), rng)
		prior := redrawn(m, rng)
		_, text := sample(m, 60, 0.3, seed)
		d, err := data(t, m, text)
		if err != nil {
			t.Fatal(err)
		}
		const size, pseudocount = 7.5, 0.25
		got, _, err := Run(context.Background(), &direct{}, wire.Request{Job: "p"}, m, d,
			Options{Iterations: 1, Pseudocount: pseudocount, Prior: &Prior{prior, size}})
		if err != nil {
			t.Fatal(err)
		}
		counts, _ := enumerated(m, d)
		of, _ := enumerated(prior, &Data{distinct: []weightedCase{{weight: size}}}) // no observation: all assignments
		var want []float64
		for f := range m.Factors {
			shape := m.Factors[f].Table.Dims()
			values := shape[len(shape)-1]
			for from := 0; from < len(counts[f]); from += values {
				sum := 0.0
				for k := from; k < from+values; k++ {
					sum += counts[f][k] + of[f][k] + pseudocount
				}
				for k := from; k < from+values; k++ {
					want = append(want, (counts[f][k]+of[f][k]+pseudocount)/sum)
				}
			}
		}
		equals(t, "with a prior", numbers(got), want)
	}
}

// TestPriorsOfOtherNetworksAreRefused: one with other names, and one that is no Bayesian network.
func TestPriorsOfOtherNetworksAreRefused(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 3))
	m := network(rng, 3)
	_, text := sample(m, 5, 0, 1)
	d, err := data(t, m, text)
	if err != nil {
		t.Fatal(err)
	}
	named := *m
	named.Names = []string{"x0", "x1", "z"}
	wrong := redrawn(m, rng)
	wrong.Factors[0].Table.(*tensor.Dense).Data[0] = 7
	for want, prior := range map[string]*factorgraph.Model{"other variables, values or parents": &named, "the prior: factor 0": wrong} {
		_, _, err := Run(context.Background(), &direct{}, wire.Request{Job: "o"}, m, d, Options{Iterations: 1, Prior: &Prior{prior, 1}})
		if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

// TestUpdatesContinue: without missing values, a fit to a file and then to another one from its counts is the fit to both, whether the
// second begins with the first model or with the fitted one, in which values that nobody had are 0. Forgetting weighs the first file
// less.
// With missing values the counts are the expected ones of the fitted tables, by enumeration.
func TestUpdatesContinue(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 4))
		m := network(rng, 2+rng.IntN(4))
		header := strings.Join(m.Names, ",") + "\n"
		_, first := sample(m, 4+rng.IntN(6), 0, seed)
		_, second := sample(m, 40, 0, seed+100)
		run := func(m *factorgraph.Model, text string, c *Counts) (*factorgraph.Model, *Counts) {
			t.Helper()
			d, err := data(t, m, text)
			if err != nil {
				t.Fatal(err)
			}
			fitted, r, err := Run(context.Background(), &direct{}, wire.Request{Job: "u"}, m, d,
				Options{Iterations: 20, Tolerance: 1e-12, Pseudocount: 0, EarlierCounts: c, ReturnCounts: true})
			if err != nil {
				t.Fatal(err)
			}
			return fitted, r.Counts
		}
		want, all := run(m, first+strings.TrimPrefix(second, header), nil)
		once, counts := run(m, first, nil)
		for _, begin := range []*factorgraph.Model{m, once} {
			twice, after := run(begin, second, counts)
			equals(t, "twice", numbers(twice), numbers(want))
			for k := range all.Tables {
				equals(t, "counts", after.Tables[k], all.Tables[k])
			}
			if after.Weight != all.Weight {
				t.Errorf("%v cases, want %v", after.Weight, all.Weight)
			}
		}

		var b bytes.Buffer
		if err := WriteCounts(&b, counts); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "counts.json")
		if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		half, err := LoadCounts(path)
		if err != nil || !reflect.DeepEqual(half, counts) {
			t.Fatalf("%+v was written, %+v read, %v", counts, half, err)
		}
		half.Forget(0.5)
		forgotten, _ := run(m, second, half)
		weighted := "NumCases," + strings.TrimSpace(header) + "\n"
		for text, weight := range map[string]string{first: "0.5,", second: "1,"} {
			for line := range strings.Lines(strings.TrimPrefix(text, header)) {
				weighted += weight + line
			}
		}
		both, _ := run(m, weighted, nil)
		equals(t, "half forgotten", numbers(forgotten), numbers(both))
	}

	m := asia(t)
	_, text := sample(m, 200, 0.3, 7)
	d, err := data(t, m, text)
	if err != nil {
		t.Fatal(err)
	}
	fitted, r, err := Run(context.Background(), &direct{}, wire.Request{Job: "e"}, m, d, Options{Iterations: 3, ReturnCounts: true})
	if err != nil {
		t.Fatal(err)
	}
	want, _ := enumerated(fitted, d)
	_, cpts, _, err := conditionalTables(m)
	if err != nil {
		t.Fatal(err)
	}
	for k, c := range cpts {
		for i, n := range r.Counts.Tables[k] {
			if c.data[i] == 0 && n != notPossible || c.data[i] > 0 && math.Abs(n-want[c.factor][i]) > 1e-8 {
				t.Errorf("table %d, entry %d counts %v, enumeration %v", k, i, n, want[c.factor][i])
			}
		}
	}
}

// TestCriteria: parameters are free numbers of rows, a 0 of the model is none; AIC and BIC of coins, and the likelihood of cases that are
// held out, by hand; an impossible one is named.
func TestCriteria(t *testing.T) {
	m := &factorgraph.Model{
		Domains: []int{2, 3}, Names: []string{"coin", "die"}, States: [][]string{{"h", "t"}, {"1", "2", "3"}},
		Factors: []factorgraph.Factor{
			{Scope: []int{0}, Table: &tensor.Dense{Shape: []int{2}, Data: []float64{0.5, 0.5}}},
			{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 3}, Data: []float64{0.2, 0.2, 0.6, 0.5, 0.5, 0}}},
		},
	}
	read := func(text string) *Data {
		d, err := data(t, m, text)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	// P(h) = 3/4, P(die | h) = 1/3 each, P(1 | t) = 1
	d := read("coin,die,NumCases\nh,1,2\nh,2,2\nh,3,2\nt,1,2\n")
	ln := 6*math.Log(0.75/3) + 2*math.Log(0.25)
	held := read("coin,die\nh,3\nt,\n,1\n")
	_, r, err := Run(context.Background(), &direct{}, wire.Request{Job: "c"}, m, d, Options{Iterations: 9, HeldOut: held})
	if err != nil {
		t.Fatal(err)
	}
	equals(t, "ln L, k, n, AIC, BIC, held out",
		[]float64{r.Ln, float64(r.Parameters), r.Weight, r.AIC(), r.BIC(), r.HeldOut.Ln},
		[]float64{ln, 4, 8, 8 - 2*ln, 4*math.Log(8) - 2*ln, math.Log(0.25) + math.Log(0.25) + math.Log(0.25+0.25)})
	held = read("coin,die\nh,3\nt,2\n")
	_, r, err = Run(context.Background(), &direct{}, wire.Request{Job: "c"}, m, d, Options{Iterations: 9, HeldOut: held})
	if err != nil || r.HeldOut.Impossible != 2 || !math.IsInf(r.HeldOut.Ln, -1) {
		t.Errorf("%+v, %v", r.HeldOut, err)
	}
}

// TestWrongCounts: files that are none, and counts of other networks.
func TestWrongCounts(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "counts.json")
	if c, err := LoadCounts(path); c != nil || err != nil {
		t.Errorf("no file: %v, %v", c, err)
	}
	for text, want := range map[string]string{
		`{"network": "x", "cases": 1, "tables": [[1, -2]]}`: "a count is at least 0, or -1 where the model has a 0",
		`{"network": "x", "cases": -1, "tables": [[1]]}`:    "its network or its number of cases is missing",
		`{"cases": 1, "tables": [[1]]}`:                     "its network or its number of cases is missing",
		`{"network": "x", "cases"`:                          "no file of counts: unexpected EOF",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := LoadCounts(path); fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, err := LoadCounts(folder); fault.CodeOf(err) != fault.BadInput {
		t.Errorf("a folder: %v", err)
	}
	m := asia(t)
	_, text := sample(m, 5, 0, 1)
	d, err := data(t, m, text)
	if err != nil {
		t.Fatal(err)
	}
	for want, c := range map[string]*Counts{
		"the counts are of a network with other variables":   {Network: "x"},
		"the file of counts has other tables than the model": {Network: Network(m), Tables: [][]float64{{1, 2}}},
	} {
		_, _, err := Run(context.Background(), &direct{}, wire.Request{Job: "w"}, m, d, Options{Iterations: 1, EarlierCounts: c})
		if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
