package junction_test

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/junction"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// caseTree returns the tree of a model of tables, and by factor where its derivatives begin; nil if it has none.
func caseTree(t *testing.T, m *factorgraph.Model) (*junction.CaseTree, []int) {
	t.Helper()
	net, err := reparam.Build(t.Context(), m, reparam.Options{Parametric: true})
	if err != nil {
		t.Fatal(err)
	}
	given, err := lower.BuildParameters(t.Context(), net)
	if err != nil {
		t.Fatal(err)
	}
	e, _ := given.WithoutExponents()
	n := junction.Numbers{Net: net, Expression: e, IsWanted: make([]bool, len(e.Tables))}
	first, total := make([]int, len(m.Factors)), 0
	for k, source := range given.Sources {
		if n.IsWanted[k] = source.Core >= 0; n.IsWanted[k] {
			first[source.Core] = total
			total += len(source.Positions)
		}
	}
	h, ok := junction.CaseShape(n)
	if !ok {
		return nil, nil
	}
	found, err := contractionorder.Search(t.Context(), h, contractionorder.Options{Moves: 1000, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	tree, ok := junction.CompileCases(n, found.Tree)
	if !ok {
		t.Fatal("there is a shape, and no tree")
	}
	return tree, first
}

// TestCaseSumsEqualEnumeration: in batches of eight and less, with cases that are impossible, and for any number of threads.
func TestCaseSumsEqualEnumeration(t *testing.T) {
	compared := 0
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 91))
		m := modeltest.Small(rng, modeltest.SmallOptions{
			Variables: 2 + rng.IntN(5), Factors: 2 + rng.IntN(6), MaxStates: 1 << 8, Zeros: []float64{0, 0.1}[seed%2],
			Kinds: []modeltest.Kind{modeltest.Dense},
		})
		for f := range m.Factors { // exponents of their own
			for k, table := 0, m.Factors[f].Table.(*tensor.Dense); k < len(table.Data); k++ {
				table.Data[k] = math.Ldexp(table.Data[k], 100*(f%5)-200)
			}
		}
		tree, first := caseTree(t, m)
		if tree == nil {
			continue
		}
		cases := make([]junction.Case, []int{1, 5, 8, 19, 600}[seed%5])
		for k := range cases {
			cases[k].Weight, cases[k].Values = float64(1+rng.IntN(4)), make([]int, len(m.Domains))
			for v, d := range m.Domains {
				cases[k].Values[v] = rng.IntN(2*d) - d
				cases[k].Values[v] = max(-1, cases[k].Values[v])
			}
		}
		got, err := tree.Sum(context.Background(), cases, true, junction.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range []junction.Options{{Threads: 3}, {Threads: 4, Memory: 1}} {
			again, err := tree.Sum(context.Background(), cases, true, o)
			if err != nil || fmt.Sprintf("%x", again) != fmt.Sprintf("%x", got) {
				t.Errorf("seed %d: other bits by %+v, %v", seed, o, err)
			}
		}

		ln := 0.0
		var impossible []int
		z := func(values []int) *big.Float { return enumeratedZ(m, values) }
		for k, c := range cases {
			if z(c.Values).Sign() == 0 {
				impossible = append(impossible, k)
				continue
			}
			ln += c.Weight * oracle.Ln(z(c.Values))
		}
		if math.Abs(ln-got.Ln) > 1e-10*(1+math.Abs(ln)) || fmt.Sprint(impossible) != fmt.Sprint(got.Impossible) || got.Lossy != nil {
			t.Errorf("seed %d: ln %v, impossible %v, beyond %v; enumeration %v, %v",
				seed, got.Ln, got.Impossible, got.Lossy, ln, impossible)
		}
		if len(cases) > 20 {
			continue
		}
		for f := range m.Factors {
			table := m.Factors[f].Table.(*tensor.Dense)
			for k := range table.Data {
				want := derivative(m, table, k, cases)
				if compared++; math.Abs(got.Gradient[first[f]+k]-want) > 1e-9*math.Abs(want) {
					t.Errorf("seed %d, factor %d, entry %d: %v, enumeration %v", seed, f, k, got.Gradient[first[f]+k], want)
				}
			}
		}
	}
	if compared < 300 {
		t.Errorf("%d derivatives compared", compared)
	}
}

// enumeratedZ is Z under the observations of a case.
func enumeratedZ(m *factorgraph.Model, values []int) *big.Float {
	return oracle.Z(m, oracle.ObservedEvidence(modeltest.UpTo(len(values)), values))
}

// derivative is Σ weight · ∂ ln Z/∂ of an entry over the cases that are possible: Z is linear in it.
func derivative(m *factorgraph.Model, table *tensor.Dense, k int, cases []junction.Case) float64 {
	sum, was := 0.0, table.Data[k]
	for _, c := range cases {
		z := enumeratedZ(m, c.Values)
		if z.Sign() == 0 {
			continue
		}
		size := slices.Max(table.Data)
		table.Data[k] = size
		one := enumeratedZ(m, c.Values)
		table.Data[k] = 0
		none := enumeratedZ(m, c.Values)
		table.Data[k] = was
		by, _ := new(big.Float).Quo(new(big.Float).Sub(one, none), z).Float64()
		sum += c.Weight * by / size
	}
	return sum
}
