package reparam_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// tolerance of Z, relative to Σ|terms| of the model: the maps drawn here have condition numbers
// below 10 or so.
const tolerance = 1e-10

// maxStates bounds the entries of the networks that brute force visits.
const maxStates = 1 << 14

// randomMaps returns invertible maps, diagonally dominant so that their condition number is small.
func randomMaps(rng *rand.Rand, m *factorgraph.Model) func(j int) []reparam.GivenMap {
	return func(j int) (maps []reparam.GivenMap) {
		for _, i := range m.Factors[j].Scope {
			d := m.Domains[i]
			a := make([]float64, d*d)
			for k := range a {
				a[k] = 2*rng.Float64() - 1
				if k%(d+1) == 0 {
					a[k] += math.Copysign(float64(d), a[k])
				}
			}
			maps = append(maps, reparam.GivenMap{A: a})
		}
		return maps
	}
}

// drawModel draws models until the network of one with variables as cores is small enough for brute
// force.
func drawModel(rng *rand.Rand, o modeltest.SmallOptions) *factorgraph.Model {
	for {
		m := modeltest.Small(rng, o)
		states := 1
		for _, f := range m.Factors {
			if len(f.Scope) > 1 {
				for _, i := range f.Scope {
					states *= m.Domains[i]
				}
			}
		}
		for _, d := range m.Domains {
			states *= d
		}
		if states <= maxStates {
			return m
		}
	}
}

// TestLemma1FactorReparameterisation: T[x] = Σ_x̄ T̄[x̄] Π_ℓ A^(ℓ)[x_ℓ, x̄_ℓ], entry by entry, for
// every form and arity up to 5.
func TestLemma1FactorReparameterisation(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for _, kind := range modeltest.AllKinds {
		for arity := 2; arity <= 5; arity++ {
			m := &factorgraph.Model{}
			scope := make([]int, arity)
			for k := range scope {
				scope[k] = k
				m.Domains = append(m.Domains, 1+rng.IntN(3))
			}
			table := modeltest.Tensor(rng, kind, m.Domains, modeltest.SmallOptions{Negative: true})
			m.Factors = []factorgraph.Factor{{Scope: scope, Table: table}}
			net, err := reparam.Build(context.Background(), m, reparam.Options{
				Maps:  query.MapGiven,
				Given: randomMaps(rng, m),
			})
			if err != nil {
				t.Fatal(err)
			}
			oracle.Each(m.Domains, func(x []int) {
				sum := 0.0
				oracle.Each(net.Dims, func(bar []int) {
					term, _ := oracle.Entry(net.Cores[0].T, bar).Float64()
					for l, b := range bar {
						term *= entry(net.Maps[l], net.Dims[l], x[l], b)
					}
					sum += term
				})
				want, _ := oracle.Entry(table, x).Float64()
				if math.Abs(sum-want) > 1e-11*(1+math.Abs(want)) {
					t.Errorf("form %d, arity %d, entry %v: %v, want %v", kind, arity, x, sum, want)
				}
			})
		}
	}
}

// build is reparam.Build, and bp.GaugedNetwork for maps "bp".
func build(
	m *factorgraph.Model, cores query.CoreChoice, maps query.MapKind, given func(int) []reparam.GivenMap,
) (*btn.Network, error) {
	if maps == query.MapBP {
		return bp.GaugedNetwork(context.Background(), m, cores, bp.Options{})
	}
	return reparam.Build(context.Background(), m, reparam.Options{Maps: maps, Cores: cores, Given: given})
}

func entry(m btn.Map, d, x, bar int) float64 {
	if m.A != nil {
		return m.A[x*d+bar]
	}
	if x == bar {
		return 1
	}
	return 0
}

// TestZUnchangedUnderMaps: for random models with mixed domains, every form of factor, arity up to
// 5, evidence, both choices of cores and every kind of maps, Z of the network is Z of the model.
func TestZUnchangedUnderMaps(t *testing.T) {
	const seed = 20
	rng := rand.New(rand.NewPCG(seed, 2))
	for trial := range 40 {
		o := modeltest.SmallOptions{Variables: 4 + rng.IntN(2), Factors: 4, MinDomain: 1 + rng.IntN(2),
			MaxArity: 2 + rng.IntN(4),
			Negative: trial%3 == 0, Zeros: float64(trial%2) * 0.1, Constant: trial%4 == 0}
		m := drawModel(rng, o)
		ev := modeltest.Evidence(rng, m)
		want := oracle.Z(m, ev)
		for _, cores := range []query.CoreChoice{query.CoresAreFactors, query.CoresAreVariables} {
			for _, maps := range []query.MapKind{query.MapIdentity, query.MapOrthogonal, query.MapBP, query.MapGiven} {
				net, err := build(m, cores, maps, randomMaps(rng, m))
				if err != nil {
					t.Fatalf("seed %d, trial %d, %s, %s: %v", seed, trial, cores, maps, err)
				}
				if err := net.Validate(); err != nil {
					t.Fatalf("seed %d, trial %d, %s, %s: %v", seed, trial, cores, maps, err)
				}
				net, err = net.Condition(ev)
				if err != nil {
					t.Fatal(err)
				}
				got, sumAbs := oracle.NetworkZ(net)
				diff, _ := got.Sub(got, want).Float64()
				bound, _ := sumAbs.Float64()
				if w, _ := want.Float64(); !o.Negative && w != 0 {
					bound = w // a positive model must be right relative to Z itself
				}
				if math.Abs(diff) > tolerance*bound {
					t.Errorf("seed %d, trial %d, %s, %s: Z is off by %g, allowed %g",
						seed, trial, cores, maps, diff, tolerance*bound)
				}
			}
		}
	}
}

// TestUnaryFactorsStayOutsideB: models that differ in factors of order zero and one, and evidence,
// have the same B.
func TestUnaryFactorsStayOutsideB(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	m := modeltest.Small(rng, modeltest.SmallOptions{Kinds: []modeltest.Kind{modeltest.Dense}})
	other := &factorgraph.Model{Domains: m.Domains, Factors: append([]factorgraph.Factor(nil), m.Factors...)}
	for i, d := range m.Domains {
		other.Factors = append(other.Factors, factorgraph.Factor{
			Scope: []int{i},
			Table: modeltest.Tensor(rng, modeltest.CP, []int{d}, modeltest.SmallOptions{}),
		})
	}
	other.Factors = append(other.Factors, factorgraph.Factor{
		Scope: []int{},
		Table: &tensor.Dense{Shape: []int{}, Data: []float64{7}},
	})
	for _, cores := range []query.CoreChoice{query.CoresAreFactors, query.CoresAreVariables} {
		a, err := reparam.Build(context.Background(), m, reparam.Options{Cores: cores, Maps: query.MapOrthogonal})
		if err != nil {
			t.Fatal(err)
		}
		b, err := reparam.Build(context.Background(), other, reparam.Options{
			Cores: cores, Maps: query.MapOrthogonal,
		})
		if err != nil {
			t.Fatal(err)
		}
		c, err := b.Condition(modeltest.Evidence(rng, m))
		if err != nil {
			t.Fatal(err)
		}
		if a.BaseDigest() != b.BaseDigest() || b.BaseDigest() != c.BaseDigest() {
			t.Errorf("cores %s: unary factors or evidence changed B", cores)
		}
	}
}

// TestParityIsSparseUnderHadamard: the reparameterised parity of n variables has two non-zero
// entries, 0…0 and 1…1.
func TestParityIsSparseUnderHadamard(t *testing.T) {
	parity, err := factorgraph.Parity(4, true)
	if err != nil {
		t.Fatal(err)
	}
	m := &factorgraph.Model{
		Domains: []int{2, 2, 2, 2},
		Factors: []factorgraph.Factor{{Scope: []int{0, 1, 2, 3}, Table: parity}},
	}
	net, err := reparam.Build(context.Background(), m, reparam.Options{Maps: query.MapOrthogonal})
	if err != nil {
		t.Fatal(err)
	}
	for at, v := range oracle.Table(net.Cores[0].T) {
		want := map[int]float64{0: 2, 15: -2}[at] // ½(⊗[1,1] − ⊗[1,−1]) with [1,1]H = [√2, 0]
		if math.Abs(v-want) > 1e-14 {
			t.Errorf("entry %d is %v, want %v", at, v, want)
		}
	}
}

// TestSymmetricFactorKeepsForm: one orthogonal map on all legs keeps a symmetric factor symmetric.
func TestSymmetricFactorKeepsForm(t *testing.T) {
	factor, err := factorgraph.AtMost(30, 3)
	if err != nil {
		t.Fatal(err)
	}
	m := &factorgraph.Model{}
	scope := make([]int, 30)
	for i := range scope {
		scope[i] = i
		m.Domains = append(m.Domains, 2)
	}
	m.Factors = []factorgraph.Factor{{Scope: scope, Table: factor}}
	net, err := reparam.Build(context.Background(), m, reparam.Options{Maps: query.MapOrthogonal})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := net.Cores[0].T.(*tensor.Symmetric); !ok {
		t.Errorf("the core has become %T", net.Cores[0].T)
	}
	for l, m := range net.Maps {
		if m.Kind != query.MapOrthogonal {
			t.Errorf("map of leg %d is %q", l, m.Kind)
		}
	}
	// Different maps cannot be taken, which is no error: the factor keeps its entries.
	rng := rand.New(rand.NewPCG(4, 4))
	net, err = reparam.Build(context.Background(), m, reparam.Options{
		Maps:  query.MapGiven,
		Given: randomMaps(rng, m),
	})
	if err != nil {
		t.Fatal(err)
	}
	if net.Cores[0].T != tensor.Tensor(factor) {
		t.Error("the core is not the factor itself")
	}
	for l, m := range net.Maps {
		if m.Kind != query.MapIdentity || m.A != nil {
			t.Errorf("map of leg %d is %q, not recorded as the identity", l, m.Kind)
		}
	}
}

func TestEdgeModels(t *testing.T) {
	constant := func(v float64) factorgraph.Factor {
		return factorgraph.Factor{Scope: []int{}, Table: &tensor.Dense{Shape: []int{}, Data: []float64{v}}}
	}
	table := func(scope, shape []int, data ...float64) factorgraph.Factor {
		return factorgraph.Factor{Scope: scope, Table: &tensor.Dense{Shape: shape, Data: data}}
	}
	for _, c := range []struct {
		name  string
		model factorgraph.Model
		legs  int
		z     float64
	}{
		{"nothing", factorgraph.Model{}, 0, 1},
		{"no factors", factorgraph.Model{Domains: []int{2, 3}}, 0, 6},
		{"order zero", factorgraph.Model{Factors: []factorgraph.Factor{constant(3), constant(-2)}}, 0, -6},
		{"orders zero and one", factorgraph.Model{
			Domains: []int{2, 3},
			Factors: []factorgraph.Factor{constant(0.5), table([]int{1}, []int{3}, 1, 2, 4)},
		}, 0, 7},
		{"domains of size one", factorgraph.Model{
			Domains: []int{1, 1, 2},
			Factors: []factorgraph.Factor{table([]int{0, 2, 1}, []int{1, 2, 1}, 3, 4)},
		}, 3, 7},
		{"disconnected", factorgraph.Model{Domains: []int{2, 2, 2, 2}, Factors: []factorgraph.Factor{
			table([]int{0, 1}, []int{2, 2}, 1, 2, 3, 4), table([]int{3, 2}, []int{2, 2}, 1, 1, 1, 2)}}, 4, 50},
		{"zero partition", factorgraph.Model{Domains: []int{2, 2}, Factors: []factorgraph.Factor{
			table([]int{0, 1}, []int{2, 2}, 1, 0, 0, 1), table([]int{0, 1}, []int{2, 2}, 0, 1, 1, 0)}}, 4, 0},
		{"negative entries", factorgraph.Model{
			Domains: []int{2, 2},
			Factors: []factorgraph.Factor{table([]int{0, 1}, []int{2, 2}, 1, -2, -3, 1)},
		}, 2, -3},
	} {
		for _, cores := range []query.CoreChoice{query.CoresAreFactors, query.CoresAreVariables} {
			net, err := reparam.Build(context.Background(), &c.model, reparam.Options{
				Maps: query.MapOrthogonal, Cores: cores,
			})
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			if err := net.Validate(); err != nil {
				t.Errorf("%s, cores %s: %v", c.name, cores, err)
			}
			if cores == query.CoresAreFactors && len(net.Dims) != c.legs {
				t.Errorf("%s: %d legs, want %d", c.name, len(net.Dims), c.legs)
			}
			big, _ := oracle.NetworkZ(net)
			if z, _ := big.Float64(); math.Abs(z-c.z) > 1e-13 {
				t.Errorf("%s, cores %s: Z = %v, want %v", c.name, cores, z, c.z)
			}
		}
	}
}

// TestWeightsBeyondFloat64: 100 unary factors of about 1e-200 leave a network whose Scale holds
// 1e-20000.
func TestWeightsBeyondFloat64(t *testing.T) {
	m := &factorgraph.Model{Domains: []int{2}}
	for range 100 {
		m.Factors = append(m.Factors, factorgraph.Factor{
			Scope: []int{0},
			Table: &tensor.Dense{Shape: []int{2}, Data: []float64{1e-200, 2e-200}},
		})
	}
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w := net.Links[0].T.(*tensor.CP).Weights
	z := net.Scale.Mul(scaled.FromFloat(w[0] + w[1]))
	if want := -20000*math.Ln10 + math.Log(1+0x1p100); math.Abs(z.LogAbs()-want) > 1e-10*math.Abs(want) {
		t.Errorf("ln Z = %v, want %v", z.LogAbs(), want)
	}
}

func TestBuildErrors(t *testing.T) {
	m := &factorgraph.Model{
		Domains: []int{2, 2},
		Factors: []factorgraph.Factor{{
			Scope: []int{1, 0},
			Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 2, 3, 4}},
		}},
	}
	singular := func(int) []reparam.GivenMap { return []reparam.GivenMap{{}, {A: []float64{1, 1, 1, 1}}} }
	short := func(int) []reparam.GivenMap { return []reparam.GivenMap{{A: []float64{1}}} }
	for _, c := range []struct {
		m    *factorgraph.Model
		o    reparam.Options
		is   error
		want string
	}{
		{m, reparam.Options{Maps: "fourier"}, reparam.ErrOptions, `unknown maps "fourier"`},
		{m, reparam.Options{Cores: "all"}, reparam.ErrOptions, `unknown cores "all"`},
		{m, reparam.Options{Maps: query.MapGiven}, reparam.ErrOptions, "none are given"},
		{
			m, reparam.Options{Maps: query.MapGiven, Given: singular}, btn.ErrIllConditioned,
			"factor 0, variable 0: ",
		},
		{m, reparam.Options{Maps: query.MapGiven, Given: short}, btn.ErrMap, "factor 0, variable 1: "},
		{&factorgraph.Model{Domains: []int{0}}, reparam.Options{}, factorgraph.ErrModel, ""},
	} {
		_, err := reparam.Build(context.Background(), c.m, c.o)
		if !errors.Is(err, c.is) || !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%+v: got %v, want %v with %q", c.o, err, c.is, c.want)
		}
	}
}

// TestFactorsOfOrderOneThatDoNotFitHaveLegs: their product spans 10^900, more than the weights of a
// variable hold.
func TestFactorsOfOrderOneThatDoNotFitHaveLegs(t *testing.T) {
	m := &factorgraph.Model{Domains: []int{2, 2}}
	for range 3 {
		m.Factors = append(m.Factors, factorgraph.Factor{
			Scope: []int{0},
			Table: &tensor.Dense{Shape: []int{2}, Data: []float64{1e-300, 1}},
		})
	}
	m.Factors = append(m.Factors, factorgraph.Factor{
		Scope: []int{0, 1},
		Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 1, 0, 0}},
	})
	for _, cores := range []query.CoreChoice{query.CoresAreFactors, query.CoresAreVariables} {
		net, err := reparam.Build(context.Background(), m, reparam.Options{Cores: cores})
		if err != nil {
			t.Fatal(err)
		}
		if err := net.Validate(); err != nil {
			t.Fatal(err)
		}
		want, _ := oracle.LogZ(m, factorgraph.Evidence{}) // ln 2e-900
		z, _ := oracle.NetworkZ(net)
		if got := oracle.Ln(z); math.Abs(got-want) > 1e-9*math.Abs(want) {
			t.Errorf("cores %s: ln Z %v, want %v", cores, got, want)
		}
	}
}
