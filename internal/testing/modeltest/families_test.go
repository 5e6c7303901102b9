package modeltest

import (
	"math"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// edges returns the scopes of the factors of two variables as pairs i < j, sorted. hasRepeated is true if a pair appears more than once.
func edges(m *factorgraph.Model) (list [][2]int, hasRepeated bool) {
	for _, f := range m.Factors {
		if len(f.Scope) == 2 {
			list = append(list, [2]int{min(f.Scope[0], f.Scope[1]), max(f.Scope[0], f.Scope[1])})
		}
	}
	slices.SortFunc(list, func(a, b [2]int) int { return slices.Compare(a[:], b[:]) })
	return list, len(slices.Compact(slices.Clone(list))) < len(list)
}

// TestGraphs checks the number of edges of the graph of some families, the smallest and the largest degree, and that no edge is a loop or
// appears twice.
func TestGraphs(t *testing.T) {
	for name, c := range map[string]struct {
		size, edges, minDegree int
		maxDegree              int // 0: any
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
		list, hasRepeated := edges(m)
		degree := make([]int, len(m.Domains))
		for _, e := range list {
			degree[e[0]]++
			degree[e[1]]++
			if e[0] == e[1] {
				t.Errorf("%s: a loop", name)
			}
		}
		isDegreeOK := slices.Min(degree) >= c.minDegree && (c.maxDegree == 0 || slices.Max(degree) <= c.maxDegree)
		if len(list) != c.edges || hasRepeated || !isDegreeOK {
			t.Errorf("%s: %d edges, twice %v, degrees %v", name, len(list), hasRepeated, degree)
		}
	}
}

// TestNetworksAreDistributions checks the factors of Bayesian networks of n variables. Factor k < n is P(variable k | earlier variables):
// variable k is last in its scope, and each row of it sums to 1. The other factors are evidence: 1 for one value of a variable, else 0.
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
			for row := range slices.Chunk(data, m.Domains[k]) {
				sum := 0.0
				for _, p := range row {
					sum += p
				}
				if math.Abs(sum-1) > 1e-12 {
					t.Errorf("%s: a row of %d sums to %v", name, k, sum)
				}
			}
		}

		// Evidence.
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

// TestFindings checks the factors of positive findings in the network of diseases, over four diseases each. Entry x is the probability
// of the finding if the diseases at the bits of x are present: 0.05 without any, largest with all, below 1, and the probabilities of
// absence multiply as in a noisy-or.
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
		wantAbsent := 0.95
		for bit := range 4 {
			wantAbsent *= (1 - data[1<<bit]) / 0.95
		}
		if math.Abs(1-data[15]-wantAbsent) > 1e-12 {
			t.Errorf("%v, not a product: %v", data, wantAbsent)
		}
	}
}

// TestGammaHasItsMoments: the mean and the variance of the gamma distribution are both its parameter a, here within 5 standard errors.
func TestGammaHasItsMoments(t *testing.T) {
	for _, a := range []float64{0.2, 0.5, 1, 4} {
		const n = 200_000
		r := newStream(1, "gamma")
		sum, squares := 0.0, 0.0
		for range n {
			x := gamma(r, a)
			sum += x
			squares += x * x
		}
		mean := sum / n
		variance := squares/n - mean*mean

		// The variance of the sample variance is (6/a + 2) a² / n.
		meanError, varianceError := math.Sqrt(a/n), a*math.Sqrt((6/a+2)/n)
		if math.Abs(mean-a) > 5*meanError || math.Abs(variance-a) > 5*varianceError {
			t.Errorf("a = %v: mean %v, variance %v", a, mean, variance)
		}
	}
}
