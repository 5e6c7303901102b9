package generate

import (
	"errors"
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// weightOf is ln of the product of a model's factors at an assignment.
func weightOf(m *factorgraph.Model, x []int) float64 {
	ln := 0.0
	for _, f := range m.Factors {
		own := make([]int, len(f.Scope))
		for k, v := range f.Scope {
			own[k] = x[v]
		}
		w := oracle.Entry(f.Table, own)
		if w.Sign() == 0 {
			return math.Inf(-1)
		}
		ln += oracle.Ln(w)
	}
	return ln
}

// TestPottsAgainstPairs: two groups of three variables that share one, by the pairs that agree: Σ_a c_a² is n and twice their number.
func TestPottsAgainstPairs(t *testing.T) {
	o := Potts{Size: 3, Values: 3, Groups: 2, Shared: 1, Coupling: 0.7}
	m, err := o.Model()
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Validate(); err != nil || len(m.Domains) != 5 {
		t.Fatalf("%d variables, %v", len(m.Domains), err)
	}
	oracle.Each(m.Domains, func(x []int) {
		agree := 0
		for _, group := range [][]int{{0, 1, 2}, {2, 3, 4}} {
			for i, u := range group {
				for _, v := range group[:i] {
					if x[u] == x[v] {
						agree++
					}
				}
			}
		}
		if want := 0.7 / 3 * float64(2*3+2*agree); math.Abs(weightOf(m, x)-want) > 1e-12 {
			t.Errorf("%v: ln weight %v, want %v", x, weightOf(m, x), want)
		}
	})
	o.Field = 0.5
	if m, err = o.Model(); err != nil || len(m.Factors) != 7 || m.Validate() != nil {
		t.Errorf("%d factors with fields, %v", len(m.Factors), err)
	}
}

// TestLeavesAreCounted: an assignment is possible where two or three of six leaves are 1.
func TestLeavesAreCounted(t *testing.T) {
	m, err := Leaves(6, 1)
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Validate(); err != nil || len(m.Domains) != 11 || len(m.Factors) != 11 {
		t.Fatalf("%d variables, %d factors, %v", len(m.Domains), len(m.Factors), err)
	}
	oracle.Each(m.Domains, func(x []int) {
		ones := 0
		for _, a := range x[5:] {
			ones += a
		}
		if possible := ones == 2 || ones == 3; possible == math.IsInf(weightOf(m, x), -1) {
			t.Errorf("%v: ln weight %v", x, weightOf(m, x))
		}
	})
}

// TestSymmetricErrors: sizes and numbers that cannot be.
func TestSymmetricErrors(t *testing.T) {
	good := Potts{Size: 3, Values: 2, Groups: 1}
	for name, change := range map[string]func(o *Potts){
		"no variable":  func(o *Potts) { o.Size = 0 },
		"one value":    func(o *Potts) { o.Values = 1 },
		"no group":     func(o *Potts) { o.Groups = 0 },
		"all shared":   func(o *Potts) { o.Shared = 3 },
		"many":         func(o *Potts) { o.Groups = 1 << 40 },
		"many counts":  func(o *Potts) { o.Size, o.Values = 100, 9 },
		"no field":     func(o *Potts) { o.Field = math.NaN() },
		"strong field": func(o *Potts) { o.Field = 101 },
		"no coupling":  func(o *Potts) { o.Coupling = math.Inf(1) },
	} {
		o := good
		change(&o)
		if _, err := o.Model(); !errors.Is(err, ErrOptions) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, n := range []int{1, 1 << 30} {
		if _, err := Leaves(n, 0); !errors.Is(err, ErrOptions) {
			t.Errorf("%d leaves: %v", n, err)
		}
	}
}
