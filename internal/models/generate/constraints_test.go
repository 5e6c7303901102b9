package generate

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/oracle"
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
		m, err := Parity(ParityOptions{Variables: 12, Degree: 2, Width: 4, Noise: 0.1, Seed: seed})
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
		m, err := Colouring(c.n, c.edges, c.colours, 1)
		if err != nil {
			t.Fatal(err)
		}
		sameZ(t, "colouring", m, c.want)
	}
}

func TestConstraintsLeaveAnAssignment(t *testing.T) {
	for seed := range uint64(10) {
		m, err := Constraints(ConstraintOptions{
			Variables:   8,
			Domain:      2 + int(seed%2),
			Arity:       2 + int(seed%2),
			Constraints: 30,
			Forbidden:   0.4,
			Strength:    1,
			Seed:        seed,
		})
		if err != nil {
			t.Fatal(err)
		}
		if _, sign := oracle.LogZ(m, factorgraph.Evidence{}); sign != 1 {
			t.Errorf("seed %d: Z has sign %d", seed, sign)
		}
		for _, f := range m.Factors {
			data := f.Table.(*tensor.Dense).Data
			zeros := 0
			for _, x := range data {
				if x == 0 {
					zeros++
				}
			}
			if zeros != int(0.4*float64(len(data))) {
				t.Fatalf("%d of %d entries are 0", zeros, len(data))
			}
		}
	}
	sat, err := Constraints(ConstraintOptions{Variables: 3, Constraints: 1})
	if err != nil {
		t.Fatal(err)
	}
	sameZ(t, "one clause", sat, 7)
}

// TestFrustratedGridsHaveNoBoundary: four couplings at every spin, all of one strength, and as many
// of one sign as chance gives.
func TestFrustratedGridsHaveNoBoundary(t *testing.T) {
	m, err := Frustrated(3, 4, 0.7, 5)
	if err != nil {
		t.Fatal(err)
	}
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

func TestConstraintOptionsAreChecked(t *testing.T) {
	for name, make := range map[string]func() (*factorgraph.Model, error){
		"bits that do not fit the checks": func() (*factorgraph.Model, error) {
			return Parity(ParityOptions{Variables: 7})
		},
		"noise": func() (*factorgraph.Model, error) {
			return Parity(ParityOptions{Variables: 8, Noise: 1})
		},
		"too many edges": func() (*factorgraph.Model, error) { return Colouring(3, 4, 3, 0) },
		"one colour":     func() (*factorgraph.Model, error) { return Colouring(3, 1, 1, 0) },
		"a constraint of all variables and more": func() (*factorgraph.Model, error) {
			return Constraints(ConstraintOptions{Variables: 2, Constraints: 1})
		},
		"everything forbidden": func() (*factorgraph.Model, error) {
			return Constraints(ConstraintOptions{Variables: 4, Constraints: 1, Forbidden: 1})
		},
		"two rows": func() (*factorgraph.Model, error) { return Frustrated(2, 5, 1, 0) },
	} {
		if _, err := make(); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
