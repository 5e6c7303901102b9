package modeltest

import (
	"math"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// forEachAssignment calls f with every assignment x of variables that have domains[i] values each. It reuses the slice x.
func forEachAssignment(domains []int, f func(x []int)) {
	x := make([]int, len(domains))
	for {
		f(x)

		// Count up by 1, the last variable fastest; i < 0 after the last assignment.
		i := len(x) - 1
		for ; i >= 0; i-- {
			if x[i]++; x[i] < domains[i] {
				break
			}
			x[i] = 0
		}
		if i < 0 {
			return
		}
	}
}

// requireZ fails the test if Z of the model, computed by the oracle, is not want to 12 digits.
func requireZ(t *testing.T, name string, m *factorgraph.Model, want float64) {
	t.Helper()
	if err := m.Validate(); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	lnZ, sign := oracle.LogZ(m, factorgraph.Evidence{})
	if want == 0 && sign == 0 {
		return
	}
	if sign != 1 || !(math.Abs(lnZ-math.Log(want)) < 1e-12) {
		t.Errorf("%s: ln Z = %v (sign %d), want %v", name, lnZ, sign, math.Log(want))
	}
}

// TestParityIsASumOverCodewords: a word counts where the scopes of the checks, read off the model,
// have even sums.
func TestParityIsASumOverCodewords(t *testing.T) {
	for seed := range uint64(8) {
		m, err := Parity(12, 0.1, seed)
		if err != nil {
			t.Fatal(err)
		}
		z := 0.0
		forEachAssignment(m.Domains, func(x []int) {
			p := 1.0
			for _, f := range m.Factors {
				d := f.Table.(*tensor.Dense).Data
				isChannel := len(f.Scope) == 1 && len(d) == 2 && d[0]*d[1] > 0
				if isChannel {
					p *= d[x[f.Scope[0]]]
					continue
				}

				// A check: words with an odd sum have weight 0.
				sum := 0
				for _, v := range f.Scope {
					sum += x[v]
				}
				if sum%2 == 1 {
					return
				}
			}
			z += p
		})
		requireZ(t, "parity", m, z)
	}
}

// TestColouringsAreCounted: Z is the number of proper colourings of graphs where that is known.
func TestColouringsAreCounted(t *testing.T) {
	for _, c := range []struct {
		n, edges, colours int
		want              float64
	}{
		{4, 6, 4, 24}, // the complete graph of four
		{4, 6, 3, 0},
		{5, 0, 3, 243},
		{3, 3, 3, 6},
		{2, 1, 5, 20},
	} {
		requireZ(t, "colouring", Colouring(c.n, c.edges, c.colours, 1), c.want)
	}
}

// TestFrustratedGridsHaveNoBoundary: every spin has four couplings, all of strength J, and Z is the sum over all states.
func TestFrustratedGridsHaveNoBoundary(t *testing.T) {
	m := Frustrated(3, 4, 0.7, 5)
	degree := make([]int, len(m.Domains))
	z := 0.0
	forEachAssignment(m.Domains, func(x []int) {
		exponent := 0.0 // Σ ±J x_i x_j
		for _, f := range m.Factors {
			d := f.Table.(*tensor.Dense).Data
			spinProduct := 1.0
			if x[f.Scope[0]] != x[f.Scope[1]] {
				spinProduct = -1
			}
			exponent += spinProduct * math.Copysign(0.7, d[0]-1) // entry 0 is e^J: above 1 if the coupling is positive
		}
		z += math.Exp(exponent)
	})
	for _, f := range m.Factors {
		degree[f.Scope[0]]++
		degree[f.Scope[1]]++
	}
	if !slices.Equal(degree, slices.Repeat([]int{4}, 12)) {
		t.Errorf("degrees %v", degree)
	}
	requireZ(t, "frustrated", m, z)
}

// TestCurieWeissInPairs checks the factors of the Curie–Weiss model: group tables that cover each of the 10 variables once, then a
// coupling for each of the 45 pairs. Without coupling ln Z is the sum over the groups of ln of the sum of their entries. The width is 9.
func TestCurieWeissInPairs(t *testing.T) {
	for seed, coupling := range []float64{0, 0.3, -0.2, 2} {
		m := CurieWeiss(10, coupling, 3, uint64(seed))
		grouped, pairs, lnSums := 0, 0, 0.0 // variables in group tables, factors of pairs, Σ ln of group sums
		h := contractionorder.Hypergraph{Dims: m.Domains}
		for _, f := range m.Factors {
			h.Edges = append(h.Edges, f.Scope)
			data := f.Table.(*tensor.Dense).Data
			isPair := pairs > 0 || grouped == 10
			if isPair {
				pairs++
				if math.Abs(math.Log(data[0])-coupling) > 1e-15 || data[1] != data[2] || data[0] != data[3] {
					t.Errorf("J = %v: a pair %v", coupling, data)
				}
				continue
			}
			grouped += len(f.Scope)
			sum := 0.0
			for _, x := range data {
				sum += x
			}
			lnSums += math.Log(sum)
		}
		if grouped != 10 || pairs != 45 {
			t.Errorf("J = %v: %d variables in links, %d pairs", coupling, grouped, pairs)
		}
		if lnZ, _ := oracle.LogZ(m, factorgraph.Evidence{}); coupling == 0 && math.Abs(lnZ-lnSums) > 1e-12 {
			t.Errorf("ln Z = %v, want %v", lnZ, lnSums)
		}
		if w := orders.Evaluate(h, orders.MinFill(h)).Width; w != 9 {
			t.Errorf("J = %v: width %d, want 9", coupling, w)
		}
	}
}

// TestCodesAreChecked: Parity refuses a number of bits that checks of six cannot share, and noise of 1.
func TestCodesAreChecked(t *testing.T) {
	if _, err := Parity(7, 0.1, 1); err == nil {
		t.Error("bits that do not fit the checks")
	}
	if _, err := Parity(8, 1, 1); err == nil {
		t.Error("noise that flips every bit")
	}
}
