package formula

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// network is a model's, with identity maps.
func network(t *testing.T, m *factorgraph.Model, cores query.CoreChoice) *btn.Network {
	t.Helper()
	net, err := reparam.Build(context.Background(), m, reparam.Options{Cores: cores})
	if err != nil {
		t.Fatal(err)
	}
	return net
}

// weightsOf returns the weights of the network's variables, by atom of f.
func weightsOf(net *btn.Network, f *Formula) []float64 {
	w := slices.Repeat([]float64{1}, f.Atoms())
	for v, at := range net.Variables {
		copy(w[f.FirstAtom(v):], net.Links[at.Link].T.(*tensor.CP).Weights)
	}
	return w
}

// compare holds a model's formula under evidence against enumeration of the model.
func compare(t *testing.T, m *factorgraph.Model, net *btn.Network, f *Formula, ev factorgraph.Evidence) {
	t.Helper()
	under, err := net.Condition(ev)
	if err != nil {
		t.Fatal(err)
	}
	got := enumerate(f, weightsOf(under, f))
	scale := new(big.Float).SetMantExp(big.NewFloat(under.Scale.Mant), int(under.Scale.Exp))
	z := new(big.Float).Mul(got.z, scale)
	sums := oracle.SumModel(m, ev)
	if !near(z, sums.Z) {
		t.Fatalf("Z is %v, want %v\nformula %+v", z, sums.Z, *f)
	}
	marginals := sums.Marginals()
	for v := range marginals {
		for a, want := range marginals[v] {
			p, _ := new(big.Float).Quo(got.atoms[f.FirstAtom(v)+a], got.z).Float64()
			if math.Abs(p-want) > 1e-12 {
				t.Fatalf("P(X%d = %d) is %v, want %v", v, a, p, want)
			}
		}
	}
	for i, functional := range f.Functional {
		if functional && got.unclear[f.Links+i] {
			t.Fatalf("auxiliary variable %d is said to follow from the links, and does not\nformula %+v", i, *f)
		}
	}
}

var bothChoices = []query.CoreChoice{query.CoresAreFactors, query.CoresAreVariables}

// TestFormulasOfRandomNetworks: all forms, zeros and signs, both choices of cores. One with an entry below 0 may be refused.
func TestFormulasOfRandomNetworks(t *testing.T) {
	refused, signed := 0, 0
	for seed := range uint64(400) {
		rng := rand.New(rand.NewPCG(seed, 3))
		m := modeltest.Small(rng, modeltest.SmallOptions{
			Variables: 5, Factors: 5, MaxDomain: 4, MaxArity: 5, MaxStates: 256, Zeros: []float64{0, 0.3, 0.7}[rng.IntN(3)],
			Negative: rng.IntN(6) == 0, Constant: rng.IntN(2) == 0,
		})
		net := network(t, m, bothChoices[rng.IntN(2)])
		f, err := FromNetwork(context.Background(), net, 0)
		negative := slices.ContainsFunc(m.Factors, func(f factorgraph.Factor) bool { return tensor.Signed(f.Table) })
		if negative {
			signed++
		}
		if fault.CodeOf(err) == fault.Unsupported && negative {
			refused++
			continue
		}
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		compare(t, m, net, f, modeltest.Evidence(rng, m))
	}
	if refused == 0 || refused == signed {
		t.Errorf("%d of %d models with numbers below 0 were refused", refused, signed)
	}
}

// noisyMax draws P(Y ≤ y | x) = Π_k F_k(y | x_k) as a CP tensor, y the last mode.
func noisyMax(rng *rand.Rand, dims []int, crisp bool) *tensor.CP {
	n, d := len(dims)-1, dims[len(dims)-1]
	c := &tensor.CP{Shape: dims, Vectors: make([][]float64, n+1)}
	c.Vectors[n] = make([]float64, d*d)
	for y := range d {
		c.Weights = append(c.Weights, 1)
		if c.Vectors[n][y*d+y] = 1; y+1 < d {
			c.Vectors[n][y*d+y+1] = -1
		}
	}
	for k, dim := range dims[:n] {
		c.Vectors[k] = make([]float64, d*dim)
		for x := range dim {
			level := rng.IntN(d)
			for y, sum := 0, 0.0; y < d; y++ {
				if sum += float64(rng.IntN(3)); crisp {
					sum = float64(min(1, max(0, y-level+1)))
				}
				c.Vectors[k][y*dim+x] = sum / 8
			}
			if !crisp {
				c.Vectors[k][(d-1)*dim+x] = 1
			}
		}
	}
	return c
}

// logical draws factors that are more than their entries.
func logical(rng *rand.Rand, n int) (map[string]tensor.Tensor, []int) {
	dims := slices.Repeat([]int{2}, n)
	positive := make([]bool, n)
	activate := make([]float64, n-1)
	for i := range positive {
		positive[i] = rng.IntN(2) == 0
	}
	for i := range activate {
		activate[i] = float64(rng.IntN(5)) / 4
	}
	parity, _ := factorgraph.Parity(n, rng.IntN(2) == 0)
	equal, _ := factorgraph.Equality(n, 2)
	noisy, _ := factorgraph.NoisyOr(float64(rng.IntN(4))/4, activate...)
	or, _ := factorgraph.NoisyOr(0, slices.Repeat([]float64{1}, n-1)...)
	soft := factorgraph.Clause(positive...)
	soft.Weights[1] = -0.75
	weighted := factorgraph.Clause(positive...)
	weighted.Weights = []float64{3, -3}
	few, _ := factorgraph.AtMost(n, rng.IntN(3))
	many, _ := factorgraph.AtLeast(n, n-rng.IntN(3))
	just, _ := factorgraph.Exactly(n, rng.IntN(n+1))
	wide := make([]float64, n+1)
	for c := range wide {
		wide[c] = float64(rng.IntN(4000) - 2000)
	}
	far, _ := factorgraph.CardinalityLog(dims, wide)
	return map[string]tensor.Tensor{
		"clause": factorgraph.Clause(positive...), "parity": parity, "equality": equal, "noisy-or": noisy, "or": or, "soft clause": soft,
		"clause with a weight": weighted, "at most": few, "at least": many, "exactly": just, "wide": far,
		"noisy-max": noisyMax(rng, dims, false), "max": noisyMax(rng, dims, true),
	}, dims
}

// TestFormulasOfLogicalFactors: long factors that are never written out.
func TestFormulasOfLogicalFactors(t *testing.T) {
	for seed := range uint64(12) {
		rng := rand.New(rand.NewPCG(seed, 4))
		list, dims := logical(rng, 8)
		names := slices.Sorted(func(yield func(string) bool) {
			for name := range list {
				if !yield(name) {
					return
				}
			}
		})
		for _, name := range names {
			t.Run(fmt.Sprint(name, " ", seed), func(t *testing.T) {
				m := &factorgraph.Model{Domains: dims, Factors: []factorgraph.Factor{{Scope: rng.Perm(len(dims)), Table: list[name]}}}
				for v := range 3 {
					pair := &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, float64(rng.IntN(3)), 2, 0.5}}
					m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v, v + 1}, Table: pair})
				}
				net := network(t, m, bothChoices[rng.IntN(2)])
				f, err := FromNetwork(context.Background(), net, 0)
				if err != nil {
					t.Fatal(err)
				}
				compare(t, m, net, f, modeltest.Evidence(rng, m))
			})
		}
	}
}

// TestNoisyMaxOfManyValues: parents and effects with more than two values.
func TestNoisyMaxOfManyValues(t *testing.T) {
	chains := 0
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 5))
		dims := []int{3, 2, 4, 3, 3}
		m := &factorgraph.Model{Domains: dims, Factors: []factorgraph.Factor{
			{Scope: []int{0, 1, 2, 3, 4}, Table: noisyMax(rng, dims, seed%3 == 0)},
		}}
		net := network(t, m, query.CoresAreFactors)
		f, err := FromNetwork(context.Background(), net, 0)
		if err != nil {
			t.Fatal(err)
		}
		if len(f.Functional) > 0 {
			chains++
		}
		compare(t, m, net, f, modeltest.Evidence(rng, m))
	}
	if chains < 10 {
		t.Errorf("%d of 20 are chains", chains)
	}
}

// size is a formula's literals, entries and auxiliary variables.
func size(f *Formula) (literals, entries, auxiliary int) {
	for _, c := range f.Clauses {
		literals += len(c)
	}
	for _, t := range f.Tables {
		entries += len(t.Values)
	}
	return literals, entries, len(f.Functional)
}

// TestSizesOfFormulas: long factors are as long as they should be.
func TestSizesOfFormulas(t *testing.T) {
	const n = 100
	rng := rand.New(rand.NewPCG(1, 6))
	list, dims := logical(rng, n)
	most := map[string][3]int{ // literals, entries, auxiliary variables
		"clause":      {n, 0, 0},
		"parity":      {12 * n, 0, n},
		"equality":    {4 * n, 0, 0},
		"or":          {4 * n, 0, 1},
		"soft clause": {4 * n, 2, 1},
		"noisy-or":    {12 * n, 12 * n, n},
		"at most":     {3 * 2 * 4 * n, 0, n},
		"exactly":     {3 * 2 * n * n, 0, n},
		"wide":        {3 * n * (n + 4), 7 * n, n},
	}
	for _, name := range slices.Sorted(mapKeys(most)) {
		m := &factorgraph.Model{Domains: dims, Factors: []factorgraph.Factor{{Scope: rng.Perm(n), Table: list[name]}}}
		f, err := FromNetwork(context.Background(), network(t, m, query.CoresAreFactors), 0)
		if err != nil {
			t.Fatal(name, err)
		}
		literals, entries, auxiliary := size(f)
		if w := most[name]; literals > w[0] || entries > w[1] || auxiliary > w[2] {
			t.Errorf("%s over %d variables: %d literals, %d entries, %d auxiliary variables, at most %v",
				name, n, literals, entries, auxiliary, w)
		}
	}
}

func mapKeys[V any](m map[string]V) func(func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// TestTablesAreSplit: variables that do not matter, and products.
func TestTablesAreSplit(t *testing.T) {
	var data []float64
	for i := range 3 * 2 * 2 * 2 {
		a, b, d := i/8, i/4%2, i%2
		data = append(data, []float64{1, 3, 0.5}[a]*[]float64{1, 7}[b]*[]float64{2, 10, 4, 20}[2*b+d])
	}
	m := &factorgraph.Model{Domains: []int{3, 2, 2, 2}, Factors: []factorgraph.Factor{
		{Scope: []int{0, 1, 2, 3}, Table: &tensor.Dense{Shape: []int{3, 2, 2, 2}, Data: data}},
	}}
	net := network(t, m, query.CoresAreFactors)
	f, err := FromNetwork(context.Background(), net, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, entries, _ := size(f); entries != 3+2+2 || len(f.Clauses) != 0 {
		t.Errorf("%d entries and %d clauses of t(a) t(b) t(d), want 7 and none: %v", entries, len(f.Clauses), f.Tables)
	}
	compare(t, m, net, f, factorgraph.Evidence{})
}

// TestClausesOfFunctions: a deterministic table is one clause per row, and a value that is never there is a clause of its own.
func TestClausesOfFunctions(t *testing.T) {
	data := make([]float64, 3*3*4)
	for i := range 9 {
		data[i*4+min(i/3, i%3)] = 1
	}
	m := &factorgraph.Model{Domains: []int{3, 3, 4}, Factors: []factorgraph.Factor{
		{Scope: []int{0, 1, 2}, Table: &tensor.Dense{Shape: []int{3, 3, 4}, Data: data}},
	}}
	net := network(t, m, query.CoresAreFactors)
	f, err := FromNetwork(context.Background(), net, 0)
	if err != nil {
		t.Fatal(err)
	}
	if len(f.Tables) != 0 || len(f.Clauses) > 8 || !slices.ContainsFunc(f.Clauses, func(c []Literal) bool {
		return len(c) == 1 && c[0] == f.Literal(2, 3).Not()
	}) {
		t.Errorf("min(x, y) = z is %d clauses: %v", len(f.Clauses), f.Clauses)
	}
	compare(t, m, net, f, factorgraph.Evidence{})
}

func TestNetworksThatAreNoFormulas(t *testing.T) {
	table := func(data ...float64) *factorgraph.Model {
		return &factorgraph.Model{Domains: []int{2, 2}, Factors: []factorgraph.Factor{
			{Scope: []int{1, 0}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: data}},
		}}
	}
	_, err := FromNetwork(context.Background(), network(t, table(1, -2, 1, 1), ""), 0)
	if fault.CodeOf(err) != fault.Unsupported || !strings.Contains(err.Error(), "variables 1, 0 has the entry -2") {
		t.Errorf("an entry below 0: %v", err)
	}
	maps, err := reparam.Build(context.Background(), table(1, 2, 1, 1), reparam.Options{Maps: query.MapOrthogonal})
	if err != nil {
		t.Fatal(err)
	}
	if _, err = FromNetwork(context.Background(), maps, 0); fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("maps: %v", err)
	}
	if _, err = FromNetwork(context.Background(), network(t, table(1, 0, 1, 1), ""), 50); fault.CodeOf(err) != fault.OverBudget {
		t.Errorf("50 bytes: %v", err)
	}
	random := &tensor.Dense{Shape: slices.Repeat([]int{2}, 14), Data: make([]float64, 1<<14)}
	rng := rand.New(rand.NewPCG(1, 8))
	for i := range random.Data {
		random.Data[i] = float64(rng.IntN(2))
	}
	noise := &factorgraph.Model{Domains: random.Shape, Factors: []factorgraph.Factor{{Scope: rng.Perm(14), Table: random}}}
	if _, err = FromNetwork(context.Background(), network(t, noise, ""), 0); fault.CodeOf(err) != fault.Unsupported {
		t.Errorf("random zeros: %v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err = FromNetwork(ctx, network(t, table(1, 0, 1, 1), ""), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestConditionFixesLiterals: a formula is the sum of those conditioned on the values of a variable.
func TestConditionFixesLiterals(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 7))
	m := modeltest.Small(rng, modeltest.SmallOptions{Zeros: 0.1})
	f, err := FromNetwork(context.Background(), network(t, m, ""), 0)
	if err != nil {
		t.Fatal(err)
	}
	whole, sum := enumerate(f, nil).z, new(big.Float)
	for a := range f.Domains[0] {
		sum.Add(sum, enumerate(Condition(f, []Literal{f.Literal(0, a)}), nil).z)
	}
	if !near(sum, whole) || scaled.FromBig(sum).IsZero() {
		t.Errorf("the values add up to %v, want %v", sum, whole)
	}
}
