package generate_test

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// TestSmallModelsAreValid, and summing over the values of an observed variable gives the whole.
func TestSmallModelsAreValid(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m := generate.Small(rng, generate.SmallOptions{MinDomain: 1, MaxArity: 5, Zeros: 0.2, Negative: seed%2 == 0, Constant: true})
		if err := m.Validate(); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		ev := generate.Evidence(rng, m)
		if err := ev.Validate(m); err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		whole, part := oracle.Z(m, factorgraph.Evidence{}), new(big.Float).SetPrec(160)
		for x := range m.Domains[0] {
			part.Add(part, oracle.Z(m, factorgraph.Observe(map[int]int{0: x})))
		}
		diff := new(big.Float).SetPrec(160).Sub(whole, part)
		if whole.Sign() != 0 && diff.Quo(diff, whole).Cmp(big.NewFloat(1e-25)) > 0 {
			t.Fatalf("seed %d: Z %v, summed over evidence %v", seed, whole, part)
		}
	}
}

// TestCurieWeissInPairs: tables of all pairs, uncoupled the product of the sums of the links; the width is n − 1.
func TestCurieWeissInPairs(t *testing.T) {
	for seed, coupling := range []float64{0, 0.3, -0.2, 2} {
		m, err := generate.CurieWeiss(10, coupling, 3, uint64(seed))
		if err != nil {
			t.Fatal(err)
		}
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

func TestOptionsAreBounded(t *testing.T) {
	curieWeiss := func(n int, j float64, widest int) error {
		_, err := generate.CurieWeiss(n, j, widest, 0)
		return err
	}
	grid := func(r, c int, delta float64) error {
		_, err := generate.Grid(r, c, generate.Ising{Delta: delta})
		return err
	}
	complete := func(n int) error { _, err := generate.Complete(n, generate.Ising{}); return err }
	regular := func(n, d int) error { _, err := generate.RandomRegular(n, d, generate.Ising{}); return err }
	random := func(o generate.RandomOptions) error { _, err := generate.Random(o); return err }
	bipartite := func(a, b int, o generate.Ising) error { _, err := generate.Bipartite(a, b, o); return err }
	for want, err := range map[string]error{
		"a bipartite graph of 0 + 3":       bipartite(0, 3, generate.Ising{}),
		"a bipartite graph of 4000 + 4000": bipartite(4000, 4000, generate.Ising{}),
		"domain 1, attractive false":       bipartite(2, 2, generate.Ising{Domain: 1}),
		"domain 3, attractive true": bipartite(2, 2,
			generate.Ising{Domain: 3, Attractive: true}),
		"tables of 409670400 entries": bipartite(100, 1000, generate.Ising{Domain: 64}),
		"arity 4, 1 to 3":             random(generate.RandomOptions{Variables: 3, Arity: 4}),
		"largest domain 3, 4 to": random(generate.RandomOptions{MinDomain: 4,
			MaxDomain: 3}),
		"strength NaN":                           random(generate.RandomOptions{Strength: math.NaN()}),
		"1000001 factors of up to 1.25e+08 entr": random(generate.RandomOptions{Variables: 1000000, Degree: 3}),
		"1 variables, 2 to":                      curieWeiss(1, 1, 1),
		"coupling NaN":                           curieWeiss(5, math.NaN(), 1),
		"widest link 0":                          curieWeiss(5, 1, 0),
		"a grid of 0 × 3":                        grid(0, 3, 1),
		"Δ = -1":                                 grid(2, 3, -1),
		"Δ = NaN":                                grid(2, 3, math.NaN()),
		"a complete graph of 0":                  complete(0),
		"no simple graph of 5 variables of degree 3": regular(5, 3),
		"no simple graph of 4 variables of degree 4": regular(4, 4),
	} {
		if !errors.Is(err, generate.ErrOptions) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("got %v, want one with %q", err, want)
		}
	}
}
