package modeltest

import (
	"math"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// edges are the scopes of two variables, sorted; twice says that one is there twice.
func edges(m *factorgraph.Model) (list [][2]int, twice bool) {
	for _, f := range m.Factors {
		if len(f.Scope) == 2 {
			list = append(list, [2]int{min(f.Scope[0], f.Scope[1]), max(f.Scope[0], f.Scope[1])})
		}
	}
	slices.SortFunc(list, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	return list, len(slices.Compact(slices.Clone(list))) < len(list)
}

// TestGraphs: every variable has its neighbours, and the graph its number of edges.
func TestGraphs(t *testing.T) {
	for name, c := range map[string]struct {
		size, edges, low int // edges, and the least degree
		high             int // the largest degree; 0: any
	}{
		"triangular":              {6, 3*36 - 4*6 + 1, 2, 6},
		"glass-3d":                {5, 5*24 + 4*16, 3, 6},
		"glass-3d-periodic":       {4, 3 * 64, 6, 6},
		"rbm":                     {7, 49, 7, 7},
		"sherrington-kirkpatrick": {9, 36, 8, 8},
		"scale-free":              {40, 2 * 38, 1, 0},
		"small-world":             {40, 80, 2, 0},
		"colouring":               {20, 20, 0, 0},
		"hard-core":               {20, 30, 3, 3},
	} {
		m, err := Draw(name, c.size, 1, 5)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		list, twice := edges(m)
		degree := make([]int, len(m.Domains))
		for _, e := range list {
			degree[e[0]]++
			degree[e[1]]++
			if e[0] == e[1] {
				t.Errorf("%s: a loop", name)
			}
		}
		if len(list) != c.edges || twice || slices.Min(degree) < c.low || c.high > 0 && slices.Max(degree) > c.high {
			t.Errorf("%s: %d edges, twice %v, degrees %v", name, len(list), twice, degree)
		}
	}
}

// TestNetworksAreDistributions: tables of a Bayesian network, evidence apart, have rows that sum to 1, a table per variable, parents first;
// the evidence names one value of variables each.
func TestNetworksAreDistributions(t *testing.T) {
	for name, draw := range map[string]generator{"bayesian": bayesian, "dbn": dynamic} {
		m, err := draw(12, 0.3, 3)
		if err != nil {
			t.Fatal(err)
		}
		n := len(m.Domains)
		for k, f := range m.Factors[:n] {
			child, data := f.Scope[len(f.Scope)-1], f.Table.(*tensor.Dense).Data
			if child != k || slices.Max(f.Scope) != k {
				t.Fatalf("%s: table %d is over %v", name, k, f.Scope)
			}
			for at := 0; at < len(data); at += m.Domains[k] {
				sum := 0.0
				for _, p := range data[at : at+m.Domains[k]] {
					sum += p
				}
				if math.Abs(sum-1) > 1e-12 {
					t.Errorf("%s: a row of %d sums to %v", name, k, sum)
				}
			}
		}
		if len(m.Factors) == n {
			t.Errorf("%s: nothing is observed", name)
		}
		for _, f := range m.Factors[n:] {
			data := slices.Clone(f.Table.(*tensor.Dense).Data)
			slices.Sort(data)
			if last := len(data) - 1; len(f.Scope) != 1 || data[last] != 1 || data[last-1] != 0 {
				t.Errorf("%s: evidence %v over %v", name, data, f.Scope)
			}
		}
	}
}

// TestFindings: a finding of the network of diseases is rarer the fewer diseases there are, and never impossible.
func TestFindings(t *testing.T) {
	m, err := qmr(8, 0.1, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range m.Factors[8:] {
		data := f.Table.(*tensor.Dense).Data
		if math.Abs(data[0]-0.05) > 1e-15 || slices.Max(data) != data[15] || data[15] >= 1 {
			t.Errorf("%v", data)
		}
		want := 0.95 // 1 − entry is a product over the diseases
		for bit := range 4 {
			want *= (1 - data[1<<bit]) / 0.95
		}
		if math.Abs(1-data[15]-want) > 1e-12 {
			t.Errorf("%v, not a product: %v", data, want)
		}
	}
}

// TestGammaHasItsMoments: mean and variance of the gamma distribution are its parameter.
func TestGammaHasItsMoments(t *testing.T) {
	for _, a := range []float64{0.2, 0.5, 1, 4} {
		const n = 200_000
		r := random(1, "gamma")
		sum, squares := 0.0, 0.0
		for range n {
			x := gamma(r, a)
			sum += x
			squares += x * x
		}
		mean := sum / n
		variance := squares/n - mean*mean
		// the variance of the variance is (6/a + 2) a² / n
		if math.Abs(mean-a) > 5*math.Sqrt(a/n) || math.Abs(variance-a) > 5*a*math.Sqrt((6/a+2)/n) {
			t.Errorf("a = %v: mean %v, variance %v", a, mean, variance)
		}
	}
}
