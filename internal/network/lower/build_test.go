package lower_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// paper is the worked example of the paper:
// φ_0(X_0, X_1, X_2) and φ_1(X_0, X_3, X_4), with mixed domains.
func paper() *factorgraph.Model {
	rng := rand.New(rand.NewPCG(9, 9))
	return &factorgraph.Model{Domains: []int{3, 2, 2, 4, 2}, Factors: []factorgraph.Factor{
		{Scope: []int{0, 1, 2},
			Table: modeltest.Tensor(rng, modeltest.Dense, []int{3, 2, 2}, modeltest.SmallOptions{})},
		{Scope: []int{0, 3, 4},
			Table: modeltest.Tensor(rng, modeltest.Dense, []int{3, 4, 2}, modeltest.SmallOptions{})},
	}}
}

func build(t *testing.T, m *factorgraph.Model, o reparam.Options) *btn.Network {
	t.Helper()
	net, err := reparam.Build(context.Background(), m, o)
	if err != nil {
		t.Fatal(err)
	}
	return net
}

// TestIndicesAreVariables: under any maps, the expression of a factor graph is over its variables
// again, index i being variable i, with the factors' own entries up to a power of two and rounding.
func TestIndicesAreVariables(t *testing.T) {
	m := paper()
	for _, maps := range []query.MapKind{query.MapIdentity, query.MapOrthogonal} {
		for _, cores := range []query.CoreChoice{query.CoresAreFactors, query.CoresAreVariables} {
			e, err := lower.Build(context.Background(),
				build(t, m, reparam.Options{Maps: maps, Cores: cores}))
			if err != nil {
				t.Fatal(err)
			}
			var scopes [][]int
			for _, table := range e.Tables {
				if len(table.Scope) > 1 {
					scopes = append(scopes, table.Scope)
					f := m.Factors[table.Scope[1]/3].Table.(*tensor.Dense)
					ratio := table.Data[0] / f.Data[0]
					for k := range f.Data {
						if math.Abs(table.Data[k]-ratio*f.Data[k]) > 1e-14 {
							t.Errorf("maps %s, cores %s: entry %d is %v, want %v",
								maps, cores, k, table.Data[k], ratio*f.Data[k])
						}
					}
				}
			}
			// hidden indices of the order-one links come first, one per variable
			if cores == query.CoresAreVariables {
				slices.SortFunc(scopes, slices.Compare)
			}
			if !slices.Equal(e.Dims, m.Domains) || len(scopes) != 2 || !slices.Equal(scopes[0],
				[]int{0, 1, 2}) || !slices.Equal(scopes[1], []int{0, 3, 4}) {
				t.Errorf("maps %s, cores %s: dimensions %v, scopes %v", maps, cores, e.Dims, scopes)
			}
		}
	}
}

// TestEvidenceShrinksDimensions: observed variables have dimension 1, impossible values are gone,
// and the numbering is the same, so that the model's order serves the query.
func TestEvidenceShrinksDimensions(t *testing.T) {
	net := build(t, paper(), reparam.Options{})
	whole, err := lower.Shape(context.Background(), net)
	if err != nil {
		t.Fatal(err)
	}
	ev := factorgraph.Evidence{
		Hard: []factorgraph.Observation{{Var: 0, Value: 2}},
		Soft: []factorgraph.Likelihood{{Var: 3, Weights: []float64{1, 0, 2, 0}}},
	}
	observed, err := net.Condition(ev)
	if err != nil {
		t.Fatal(err)
	}
	e, err := lower.Build(context.Background(), observed)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(e.Dims, []int{1, 2, 2, 2, 2}) || !slices.Equal(e.Support[0], []int{2}) ||
		!slices.Equal(e.Support[3], []int{0, 2}) || e.Support[1] != nil {
		t.Errorf("dimensions %v, support %v", e.Dims, e.Support)
	}
	order := contractionorder.RestrictOrder(orders.MinFill(whole), e.Hypergraph())
	z, _, err := einsum.Contract(context.Background(), e, order, einsum.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := oracle.RelativeError(z.Mant, z.Exp, oracle.Z(paper(), ev)); err > 1e-13 {
		t.Errorf("relative error %v", err)
	}
}

// TestZerosPropagate: a chain of implications fixed at one end fixes everything;
// against itself it is 0.
func TestZerosPropagate(t *testing.T) {
	const n = 50
	m := &factorgraph.Model{Domains: slices.Repeat([]int{3}, n)}
	// x → x+1 mod 3
	next := &tensor.Dense{Shape: []int{3, 3}, Data: []float64{0, 1, 0, 0, 0, 2, 3, 0, 0}}
	for i := range n - 1 {
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{i, i + 1}, Table: next})
	}
	net := build(t, m, reparam.Options{})
	for _, c := range []struct {
		last int
		zero bool
	}{{49 % 3, false}, {2, true}} {
		q, err := net.Condition(factorgraph.Evidence{Hard: []factorgraph.Observation{{Var: 0,
			Value: 0}, {Var: n - 1, Value: c.last}}})
		if err != nil {
			t.Fatal(err)
		}
		e, err := lower.Build(context.Background(), q)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(e.Dims, slices.Repeat([]int{1}, n)) || len(e.Tables) != 0 ||
			e.Scale.IsZero() != c.zero {
			t.Errorf("dimensions %v, %d tables, scale %v", e.Dims, len(e.Tables), e.Scale)
		}
		// 49 steps from value 0: 17 of weight 1, 16 of weight 2, 16 of weight 3
		if want := 16 * math.Log(6); !c.zero && math.Abs(e.Scale.LogAbs()-want) > 1e-12*want {
			t.Errorf("ln Z = %v, want %v", e.Scale.LogAbs(), want)
		}
	}
}

// TestCountersOfSymmetricFactors:
// the chain has the states that the function needs, not one per count.
func TestCountersOfSymmetricFactors(t *testing.T) {
	const n = 12
	levels := countspace.TwoLevels(slices.Repeat([]int{2}, n))
	for _, c := range []struct {
		name   string
		value  func(c int) float64
		states int // largest counter
	}{
		{"parity", func(c int) float64 { return float64(c % 2) }, 2},
		{"exactly 2", func(c int) float64 { return float64(b2i(c == 2)) }, 3},
		{"at most 3", func(c int) float64 { return float64(b2i(c <= 3)) }, 4},
		{"constant", func(c int) float64 { return 7 }, 1},
		{"geometric", func(c int) float64 { return math.Ldexp(1, 3*c) }, 1},
		{"any", func(c int) float64 { return math.Sqrt(float64(c*c*c) + 2) }, n},
	} {
		s := &tensor.Symmetric{Shape: slices.Repeat([]int{2}, n), Levels: levels}
		for k := range n + 1 {
			s.Values.Mant = append(s.Values.Mant, c.value(k))
		}
		m := &factorgraph.Model{Domains: s.Shape,
			Factors: []factorgraph.Factor{{Scope: []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
				Table: s}}}
		net := build(t, m, reparam.Options{})
		e, err := lower.Build(context.Background(), net)
		if err != nil {
			t.Fatal(err)
		}
		if got := slices.Max(e.Dims[n:]); got != c.states {
			t.Errorf("%s: counters up to %d states, want %d", c.name, got, c.states)
		}
		z, _, err := einsum.Contract(context.Background(), e, orders.MinFill(e.Hypergraph()),
			einsum.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := oracle.RelativeError(z.Mant, z.Exp,
			oracle.Z(m, factorgraph.Evidence{})); err > 1e-13 {
			t.Errorf("%s: relative error %v", c.name, err)
		}
	}
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

// TestCountersOfAnyRange:
// S_c = 1/C(n, c) cancels the number of assignments, Z = n+1, though S spans 2^300.
func TestCountersOfAnyRange(t *testing.T) {
	const n = 300
	s := &tensor.Symmetric{Shape: slices.Repeat([]int{2}, n),
		Levels: countspace.TwoLevels(slices.Repeat([]int{2}, n))}
	v := scaled.One
	var legs []int
	net := &btn.Network{Scale: scaled.Make(1, 77), Dims: s.Shape}
	for c := range n + 1 {
		s.Values.Mant, s.Values.Exp = append(s.Values.Mant, v.Mant), append(s.Values.Exp,
			v.Exp-5000)
		v = v.Mul(scaled.FromFloat(float64(c + 1))).Div(scaled.FromFloat(float64(max(n-c, 1))))
		if c < n {
			legs = append(legs, c)
			net.Links = append(net.Links,
				btn.Link{Legs: []int{c}, T: &tensor.Dense{Shape: []int{2}, Data: []float64{1, 1}}})
		}
	}
	net.Cores = []btn.Core{{Legs: legs, T: s}}
	e, err := lower.Build(context.Background(), net)
	if err != nil {
		t.Fatal(err)
	}
	z, _, err := einsum.Contract(context.Background(), e, orders.MinFill(e.Hypergraph()),
		einsum.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := scaled.Make(z.Mant, z.Exp+5000-77).Float64(); math.Abs(got-(n+1)) > 1e-9 {
		t.Errorf("Z = %v, want %d", got, n+1)
	}
}

// TestCountersTooLarge: a chain that nobody can hold is refused before it is made.
func TestCountersTooLarge(t *testing.T) {
	const n = 2000
	s := &tensor.Symmetric{Shape: slices.Repeat([]int{2}, n),
		Levels: countspace.TwoLevels(slices.Repeat([]int{2}, n))}
	net := &btn.Network{Scale: scaled.One, Dims: s.Shape}
	for c := range n {
		s.Values.Mant = append(s.Values.Mant, math.Sin(float64(c*c)))
		net.Cores = append(net.Cores,
			btn.Core{Legs: []int{c}, T: &tensor.Dense{Shape: []int{2}, Data: []float64{1, 2}}})
	}
	s.Values.Mant = append(s.Values.Mant, 1)
	legs := make([]int, n)
	for l := range legs {
		legs[l] = l
	}
	net.Links = []btn.Link{{Legs: legs, T: s}}
	_, err := lower.Shape(context.Background(), net)
	if !errors.Is(err, sumproduct.ErrOverBudget) || fault.CodeOf(err) != fault.OverBudget ||
		!strings.Contains(err.Error(), "link 0: ") {
		t.Errorf("got %v", err)
	}
}

func TestBuildRefusesInvalidNetworks(t *testing.T) {
	net := build(t, paper(), reparam.Options{})
	net.Links = net.Links[1:]
	net.Variables = nil
	if _, err := lower.Build(context.Background(), net); !errors.Is(err, btn.ErrInvalid) {
		t.Errorf("got %v", err)
	}
}

// TestEdgesOfTheDefinition: nothing, a number, links without legs, dimensions of 1.
func TestEdgesOfTheDefinition(t *testing.T) {
	number := &tensor.CP{Shape: []int{}, Weights: []float64{2, 3}, Vectors: [][]float64{}}
	for _, c := range []struct {
		name string
		net  *btn.Network
		want float64
	}{
		{"nothing", &btn.Network{Scale: scaled.FromFloat(-4)}, -4},
		{"links without legs", &btn.Network{
			Scale: scaled.One,
			Links: []btn.Link{{T: number},
				{T: &tensor.Dense{Shape: []int{}, Data: []float64{0.5}}}},
		}, 2.5},
		{"dimension 1", &btn.Network{Scale: scaled.One, Dims: []int{1},
			Cores: []btn.Core{{Legs: []int{0},
				T: &tensor.Dense{Shape: []int{1}, Data: []float64{6}}}},
			Links: []btn.Link{{Legs: []int{0},
				T: &tensor.CP{Shape: []int{1}, Weights: []float64{2, 3},
					Vectors: [][]float64{{1, -1}}}}}}, -6},
		{"scale 0", &btn.Network{Links: []btn.Link{{T: number}}}, 0},
	} {
		e, err := lower.Build(context.Background(), c.net)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		z, _, err := einsum.Contract(context.Background(), e, orders.MinFill(e.Hypergraph()),
			einsum.Options{})
		if err != nil || z.Float64() != c.want {
			t.Errorf("%s: Z = %v, %v, want %v", c.name, z.Float64(), err, c.want)
		}
	}
}

// TestZerosSurviveMaps: a map and its inverse leave rounding dust where the model has zeros;
// it is not taken for entries.
func TestZerosSurviveMaps(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	m := &factorgraph.Model{Domains: []int{2, 3, 4}}
	for _, scope := range [][]int{{0, 1}, {2, 1}, {0, 2, 1}} {
		dims := make([]int, len(scope))
		for k, v := range scope {
			dims[k] = m.Domains[v]
		}
		m.Factors = append(m.Factors, factorgraph.Factor{
			Scope: scope,
			Table: modeltest.Tensor(rng, modeltest.Dense, dims, modeltest.SmallOptions{Zeros: 0.5}),
		})
	}
	plain, err := lower.Build(context.Background(), build(t, m, reparam.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	mapped, err := lower.Build(context.Background(),
		build(t, m, reparam.Options{Maps: query.MapOrthogonal}))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(plain.Dims, mapped.Dims) || slices.Equal(plain.Dims, m.Domains) {
		t.Fatalf("dimensions %v, with maps %v: the same values were to be excluded, and some",
			plain.Dims, mapped.Dims)
	}
	zeros, dust := 0, 0
	for j := range plain.Tables {
		for k, x := range plain.Tables[j].Data {
			if x == 0 {
				zeros++
				if mapped.Tables[j].Data[k] != 0 {
					dust++
				}
			}
		}
	}
	if zeros < 5 || dust > 0 {
		t.Errorf("of %d zeros, %d came back as something else", zeros, dust)
	}
}

// TestMatricesDoNotEnlargeTables: a CP tensor of a rank above the leg's dimension stays a star.
func TestMatricesDoNotEnlargeTables(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 4))
	cp := &tensor.CP{Shape: []int{2, 2}, Weights: []float64{1, 2, 3, 4, 5},
		Vectors: [][]float64{make([]float64, 10), make([]float64, 10)}}
	for k := range 10 {
		cp.Vectors[0][k], cp.Vectors[1][k] = rng.Float64(), rng.Float64()
	}
	net := &btn.Network{Scale: scaled.One, Dims: []int{2, 2},
		Cores: []btn.Core{{Legs: []int{0, 1}, T: cp}}}
	for l := range 2 {
		net.Links = append(net.Links,
			btn.Link{Legs: []int{l},
				T: modeltest.Tensor(rng, modeltest.Dense, []int{2}, modeltest.SmallOptions{})})
	}
	h, err := lower.Shape(context.Background(), net)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(h.Dims, []int{5, 2, 2}) {
		t.Errorf("dimensions %v: the terms and the two legs were expected", h.Dims)
	}
}

// TestBuildKeepsSmallEntries:
// no entry above 0 becomes 0 where the entries of a factor span all of float64.
func TestBuildKeepsSmallEntries(t *testing.T) {
	data := []float64{math.MaxFloat64, math.SmallestNonzeroFloat64, 1, 1e-300}
	m := &factorgraph.Model{
		Domains: []int{2, 2},
		Factors: []factorgraph.Factor{{Scope: []int{0, 1},
			Table: &tensor.Dense{Shape: []int{2, 2}, Data: data}}},
	}
	e, err := lower.Build(context.Background(), build(t, m, reparam.Options{}))
	if err != nil {
		t.Fatal(err)
	}
	for k, table := range e.Tables {
		for _, x := range table.Data {
			if x == 0 {
				t.Errorf("table %d: %v of %v", k, table.Data, data)
			}
		}
	}
}
