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

// assignments calls f with every assignment of a model.
func assignments(domains []int, f func(x []int)) {
	x := make([]int, len(domains))
	for {
		f(x)
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

func sameZ(t *testing.T, name string, m *factorgraph.Model, want float64) {
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
		assignments(m.Domains, func(x []int) {
			p := 1.0
			for _, f := range m.Factors {
				d := f.Table.(*tensor.Dense).Data
				if len(f.Scope) == 1 && len(d) == 2 && d[0]*d[1] > 0 {
					p *= d[x[f.Scope[0]]]
					continue
				}
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
		sameZ(t, "parity", m, z)
	}
}

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
		sameZ(t, "colouring", Colouring(c.n, c.edges, c.colours, 1), c.want)
	}
}

// TestFrustratedGridsHaveNoBoundary: four couplings at every spin, all of one strength, and as many
// of one sign as chance gives.
func TestFrustratedGridsHaveNoBoundary(t *testing.T) {
	m := Frustrated(3, 4, 0.7, 5)
	degree := make([]int, len(m.Domains))
	z := 0.0
	assignments(m.Domains, func(x []int) {
		energy := 0.0
		for _, f := range m.Factors {
			d := f.Table.(*tensor.Dense).Data
			s := 1.0
			if x[f.Scope[0]] != x[f.Scope[1]] {
				s = -1
			}
			energy += s * math.Copysign(0.7, d[0]-1)
		}
		z += math.Exp(energy)
	})
	for _, f := range m.Factors {
		degree[f.Scope[0]]++
		degree[f.Scope[1]]++
	}
	if !slices.Equal(degree, slices.Repeat([]int{4}, 12)) {
		t.Errorf("degrees %v", degree)
	}
	sameZ(t, "frustrated", m, z)
}

// TestCurieWeissInPairs: tables of all pairs, uncoupled the product of the sums of the links; the width is n − 1.
func TestCurieWeissInPairs(t *testing.T) {
	for seed, coupling := range []float64{0, 0.3, -0.2, 2} {
		m := CurieWeiss(10, coupling, 3, uint64(seed))
		linked, pairs, lnSums := 0, 0, 0.0
		h := contractionorder.Hypergraph{Dims: m.Domains}
		for _, f := range m.Factors {
			h.Edges = append(h.Edges, f.Scope)
			data := f.Table.(*tensor.Dense).Data
			if pairs > 0 || linked == 10 {
				pairs++
				if math.Abs(math.Log(data[0])-coupling) > 1e-15 || data[1] != data[2] || data[0] != data[3] {
					t.Errorf("J = %v: a pair %v", coupling, data)
				}
				continue
			}
			linked += len(f.Scope)
			sum := 0.0
			for _, x := range data {
				sum += x
			}
			lnSums += math.Log(sum)
		}
		if linked != 10 || pairs != 45 {
			t.Errorf("J = %v: %d variables in links, %d pairs", coupling, linked, pairs)
		}
		if lnZ, _ := oracle.LogZ(m, factorgraph.Evidence{}); coupling == 0 && math.Abs(lnZ-lnSums) > 1e-12 {
			t.Errorf("ln Z = %v, want %v", lnZ, lnSums)
		}
		if w := orders.Evaluate(h, orders.MinFill(h)).Width; w != 9 {
			t.Errorf("J = %v: width %d, want 9", coupling, w)
		}
	}
}

func TestCodesAreChecked(t *testing.T) {
	if _, err := Parity(7, 0.1, 1); err == nil {
		t.Error("bits that do not fit the checks")
	}
	if _, err := Parity(8, 1, 1); err == nil {
		t.Error("noise that flips every bit")
	}
}
