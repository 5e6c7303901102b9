package learn

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// fromCores builds a network with the given tensors on consecutive legs.
func fromCores(cores ...tensor.Tensor) *btn.Network {
	net := &btn.Network{Scale: scaled.One}
	for _, t := range cores {
		var legs []int
		for _, d := range t.Dims() {
			legs = append(legs, len(net.Dims))
			net.Dims = append(net.Dims, d)
		}
		net.Cores = append(net.Cores, btn.Core{Legs: legs, T: t})
	}
	return net
}

func parity(n int) *tensor.Dense {
	t := &tensor.Dense{Shape: repeated(2, n), Data: make([]float64, 1<<n)}
	for i := range t.Data {
		for j := i; j > 0; j >>= 1 {
			t.Data[i] += float64(j & 1)
		}
		t.Data[i] = math.Mod(t.Data[i], 2)
	}
	return t
}

// clause is 0 at one point and 1 elsewhere.
func clause(n, at int) *tensor.Dense {
	t := &tensor.Dense{Shape: repeated(2, n), Data: make([]float64, 1<<n)}
	for i := range t.Data {
		t.Data[i] = 1
	}
	t.Data[at] = 0
	return t
}

// cardinality is a generic symmetric tensor over n binary modes: no small rank.
func cardinality(rng *rand.Rand, n int) *tensor.Symmetric {
	dims := repeated(2, n)
	return &tensor.Symmetric{Shape: dims, Levels: countspace.TwoLevels(dims), Values: scaled.Vector{Mant: normal(rng, n+1)}}
}

func TestClosedFormsAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	rankOne := &tensor.CP{Shape: []int{2, 3}, Weights: []float64{-2}, Vectors: [][]float64{{1, 2}, {1e70, 3e70, -1e69}}}
	rankTwo := &tensor.CP{Shape: []int{3, 2}, Weights: []float64{1, -2}, Vectors: [][]float64{normal(rng, 6), nil}}
	symmetric := cardinality(rng, 8)
	dims := repeated(2, 7)
	mixture := &tensor.SymmetryCP{Shape: dims, Levels: countspace.TwoLevels(dims), Terms: []tensor.SymmetryRankOne{
		{Alpha: 2, S: scaled.Vector{Mant: normal(rng, 8)}},
		{Alpha: -1, S: scaled.Vector{Mant: normal(rng, 8)}, R: [][]float64{nil, {1, 2}, {3, -1}, nil, {0.5, 1}, {1, 1}, {2, 1}}},
	}}
	for _, c := range []struct {
		name  string
		net   *btn.Network
		terms int // 0: any
		class btn.Class
	}{
		{"parity and clauses", fromCores(parity(5), clause(3, 5), clause(4, 0)), 8, btn.ClassRankOne},
		{"rank one throughout", fromCores(rankOne, rankOne), 1, btn.ClassRankOne},
		{"rank one, identity vectors", fromCores(rankOne, rankTwo), 2, btn.ClassRankOne},
		{"symmetric", fromCores(symmetric), 1, btn.ClassSymmetryRankOne},
		{"symmetric among others", fromCores(clause(2, 3), symmetric, rankTwo), 4, btn.ClassSymmetryRankOne},
		{"symmetry-CP among others", fromCores(rankOne, mixture, parity(3)), 4, btn.ClassSymmetryRankOne},
		{"numbers among cores", fromCores(&tensor.Dense{Shape: []int{}, Data: []float64{-3}}, parity(3)), 2, btn.ClassRankOne},
	} {
		d, ok, err := ClosedForm(context.Background(), c.net, 8)
		if err != nil || !ok {
			t.Errorf("%s: found %v, %v", c.name, ok, err)
			continue
		}
		if !d.Exact || d.Residual != 0 || d.LnExplained != 0 || !math.IsInf(d.LnNormError, -1) || d.Method != btn.MethodExact {
			t.Errorf("%s: %+v", c.name, d)
		}
		if len(d.Components) != c.terms || d.Components[0].Class != c.class {
			t.Errorf("%s: %d components of class %s, want %d of %s", c.name, len(d.Components), d.Components[0].Class, c.terms, c.class)
		}
		b := materialise(c.net)
		norm := inner(b, b)
		near(t, c.name, math.Sqrt(distanceSq(b, materialiseSum(c.net.Dims, d))), 0, 1e-12, math.Sqrt(norm))
		near(t, c.name+": ln‖B‖", d.LnNormB, math.Log(norm)/2, 1e-12, 1+math.Abs(d.LnNormB))
	}
}

func TestClosedFormsThatDoNotExist(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 7))
	generic := &tensor.Dense{Shape: repeated(2, 6), Data: normal(rng, 64)}
	for name, net := range map[string]*btn.Network{
		"generic table":         fromCores(generic),
		"two symmetric cores":   fromCores(cardinality(rng, 9), cardinality(rng, 9)),
		"ranks that multiply":   fromCores(parity(3), parity(3), parity(3), parity(3)),
		"symmetric and generic": fromCores(cardinality(rng, 9), generic),
		"many with one":         fromCores(cardinality(rng, 9), parity(3), parity(3), parity(3), parity(3)),
	} {
		if d, ok, err := ClosedForm(context.Background(), net, 8); ok || err != nil {
			t.Errorf("%s: %d components, %v", name, len(d.Components), err)
		}
	}
	if _, ok, err := ClosedForm(context.Background(), fromCores(parity(3)), 0); ok || err != nil {
		t.Errorf("no terms allowed: %v, %v", ok, err)
	}
}

// TestClosedFormOfAThousandLegs: one symmetric core over 1,000 binary legs, by its values.
func TestClosedFormOfAThousandLegs(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 7))
	core := cardinality(rng, 1000)
	for c := range core.Values.Mant { // a Curie–Weiss weight, far outside float64
		core.Values.Exp = append(core.Values.Exp, int64(c*(1000-c)/20))
	}
	d, ok, err := ClosedForm(context.Background(), fromCores(core), 16)
	if err != nil || !ok || len(d.Components) != 1 {
		t.Fatal(ok, err)
	}
	got := d.Components[0].S
	for c := range core.Values.Mant {
		want := scaled.Make(core.Values.Mant[c], core.Values.Exp[c])
		if x := got.Coef.At(c).Mul(d.Alpha[0]); x != want {
			t.Fatalf("value %d: %v, want %v", c, x, want)
		}
	}
}

// ExampleClosedForm writes the parity of three bits as two products.
func ExampleClosedForm() {
	d, ok, err := ClosedForm(context.Background(), fromCores(parity(3)), 4)
	if err != nil || !ok {
		fmt.Println(ok, err)
		return
	}
	fmt.Println(len(d.Components), d.Components[0].Class, d.Exact)
	// Output: 2 rank-one true
}
