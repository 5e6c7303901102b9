package learned

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/closed"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/query"
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
	t := &tensor.Dense{Shape: slices.Repeat([]int{2}, n), Data: make([]float64, 1<<n)}
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
	t := &tensor.Dense{Shape: slices.Repeat([]int{2}, n), Data: make([]float64, 1<<n)}
	for i := range t.Data {
		t.Data[i] = 1
	}
	t.Data[at] = 0
	return t
}

// cardinality is a generic symmetric tensor over n binary modes: no small rank.
func cardinality(rng *rand.Rand, n int) *tensor.Symmetric {
	dims := slices.Repeat([]int{2}, n)
	return &tensor.Symmetric{
		Shape:  dims,
		Levels: countspace.TwoLevels(dims),
		Values: scaled.Vector{Mant: normal(rng, n+1)},
	}
}

func TestClosedFormsAreExact(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	rankOne := &tensor.CP{Shape: []int{2, 3}, Weights: []float64{-2}, Vectors: [][]float64{{1, 2}, {1e70, 3e70, -1e69}}}
	rankTwo := &tensor.CP{Shape: []int{3, 2}, Weights: []float64{1, -2}, Vectors: [][]float64{normal(rng, 6), nil}}
	symmetric := cardinality(rng, 8)
	dims := slices.Repeat([]int{2}, 7)
	mixture := &tensor.SymmetryCP{Shape: dims, Levels: countspace.TwoLevels(dims), Terms: []tensor.SymmetryRankOne{
		{Alpha: 2, S: scaled.Vector{Mant: normal(rng, 8)}},
		{
			Alpha: -1,
			S:     scaled.Vector{Mant: normal(rng, 8)},
			R:     [][]float64{nil, {1, 2}, {3, -1}, nil, {0.5, 1}, {1, 1}, {2, 1}},
		},
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
		{
			"numbers among cores", fromCores(&tensor.Dense{Shape: []int{}, Data: []float64{-3}}, parity(3)),
			2, btn.ClassRankOne,
		},
	} {
		d, ok, err := ClosedForm(context.Background(), c.net, 8)
		if err != nil || !ok {
			t.Errorf("%s: found %v, %v", c.name, ok, err)
			continue
		}
		q := d.Estimates[0].Quality
		if !q.Exact || q.Residual != 0 || q.LnExplained != 0 || !math.IsInf(q.LnNormError, -1) ||
			d.Method != query.MethodExact {
			t.Errorf("%s: %+v", c.name, d)
		}
		if first := d.Estimates[0].Parts[0]; d.PartCount() != c.terms || first.Class() != c.class {
			t.Errorf("%s: %d components of class %s, want %d of %s", c.name, d.PartCount(), first.Class(), c.terms, c.class)
		}
		exactly(t, c.name, c.net, d)
	}
}

// tables lists all entries of B and of Σ_i α_i S_i ∘ R_i.
func tables(net *btn.Network, d *btn.Plan) (b, approx []float64) {
	oracle.Each(net.Dims, func(x []int) {
		product := 1.0
		for _, core := range net.Cores {
			at := make([]int, len(core.Legs))
			for mode, leg := range core.Legs {
				at[mode] = x[leg]
			}
			e, _ := oracle.Entry(core.T, at).Float64()
			product *= e
		}
		b = append(b, product)

		sum := 0.0
		for i, part := range d.Estimates[0].Parts {
			term := tensor.SymmetryRankOne{Alpha: 1, S: scaled.Vector{Mant: []float64{1}}}
			levels := countspace.Levels{D: 1, Of: zeroLevels(net.Dims)}
			switch q := part.(type) {
			case *closed.RankOne:
				term.R = q.R
			case *closed.SymmetryRankOne:
				term.S, term.R, levels = q.S.Coef, q.R, q.Frame.Levels
			}
			e, _ := oracle.Entry(&tensor.SymmetryCP{
				Shape:  net.Dims,
				Levels: levels,
				Terms:  []tensor.SymmetryRankOne{term},
			}, x).Float64()
			sum += d.Estimates[0].Weights()[i].Float64() * e
		}
		approx = append(approx, sum)
	})
	return b, approx
}

func TestClosedFormsWithoutLegs(t *testing.T) {
	zero := &tensor.Dense{Shape: []int{2}, Data: []float64{0, 0}}
	scalar := func(x float64) *tensor.Dense { return &tensor.Dense{Shape: []int{}, Data: []float64{x}} }
	for name, net := range map[string]*btn.Network{
		"no cores": fromCores(), "numbers": fromCores(scalar(2), scalar(-3)), "zero": fromCores(zero, parity(2)),
		"one value": fromCores(&tensor.Dense{Shape: []int{1}, Data: []float64{5}}),
	} {
		d, ok, err := ClosedForm(context.Background(), net, 4)
		if err != nil || !ok || !d.Exact() {
			t.Fatalf("%s: %v, %v", name, ok, err)
		}
		exactly(t, name, net, d)
	}
}

// TestLemma5OnClosedForms: exact decompositions, contracted with the links, give Z itself.
func TestLemma5OnClosedForms(t *testing.T) {
	for seed := range uint64(10) {
		rng := rand.New(rand.NewPCG(seed, 21))
		net := fromCores(parity(3), cardinality(rng, 8))
		for legs := rng.Perm(len(net.Dims)); len(legs) > 0; {
			n := min(len(legs), 1+rng.IntN(3))
			net.Links = append(net.Links, btn.Link{
				Legs: legs[:n],
				T:    &tensor.Dense{Shape: slices.Repeat([]int{2}, n), Data: normal(rng, 1<<n)},
			})
			legs = legs[n:]
		}
		d, ok, err := ClosedForm(context.Background(), net, 4)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		sum := 0.0
		for i, part := range d.Estimates[0].Parts {
			v, err := contraction.Part(context.Background(), problem.New(net, problem.Options{}), part, btn.Want{})
			if err != nil {
				t.Fatal(err)
			}
			sum += d.Estimates[0].Weights()[i].Mul(v.Z).Float64()
		}
		z, _ := oracle.NetworkZ(net)
		if want, _ := z.Float64(); !(math.Abs(sum-want) <= 1e-9*(math.Abs(want)+1)) {
			t.Errorf("seed %d: Z = %g, want %g", seed, sum, want)
		}
	}
}

func TestClosedFormsThatDoNotExist(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 7))
	generic := &tensor.Dense{Shape: slices.Repeat([]int{2}, 6), Data: normal(rng, 64)}
	for name, net := range map[string]*btn.Network{
		"generic table":         fromCores(generic),
		"two symmetric cores":   fromCores(cardinality(rng, 9), cardinality(rng, 9)),
		"ranks that multiply":   fromCores(parity(3), parity(3), parity(3), parity(3)),
		"symmetric and generic": fromCores(cardinality(rng, 9), generic),
		"many with one":         fromCores(cardinality(rng, 9), parity(3), parity(3), parity(3), parity(3)),
	} {
		if d, ok, err := ClosedForm(context.Background(), net, 8); ok || err != nil {
			t.Errorf("%s: %d components, %v", name, d.PartCount(), err)
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
	if err != nil || !ok || d.PartCount() != 1 {
		t.Fatal(ok, err)
	}
	got := d.Estimates[0].Parts[0].(*closed.SymmetryRankOne).S
	for c := range core.Values.Mant {
		want := scaled.Make(core.Values.Mant[c], core.Values.Exp[c])
		if x := got.Coef.At(c).Mul(d.Estimates[0].Weights()[0]); x != want {
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
	fmt.Println(d.PartCount(), d.Estimates[0].Parts[0].Class(), d.Exact())
	// Output: 2 rank-one true
}

// exactly compares B with B̃ entry by entry, relative to the norm of B, and the norm with what the plan says.
func exactly(t *testing.T, name string, net *btn.Network, d *btn.Plan) {
	t.Helper()
	b, approx := tables(net, d)
	norm2, distance2 := 0.0, 0.0
	for i := range b {
		norm2 += b[i] * b[i]
		distance2 += (b[i] - approx[i]) * (b[i] - approx[i])
	}
	if !(distance2 <= 1e-24*norm2) {
		t.Errorf("%s: ‖B − B̃‖² = %g, ‖B‖² = %g", name, distance2, norm2)
	}
	if want := math.Log(norm2) / 2; !(math.Abs(d.Estimates[0].Quality.LnNormB-want) <= 1e-12*(1+math.Abs(want))) &&
		norm2 > 0 {
		t.Errorf("%s: ln‖B‖ = %g, want %g", name, d.Estimates[0].Quality.LnNormB, want)
	}
}
