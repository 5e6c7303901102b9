package lower_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestUnsigned: clauses, parity and noisy-or over many variables have no number below 0 in chains, and the same sum, with
// evidence too.
func TestUnsigned(t *testing.T) {
	const n = 13
	rng := rand.New(rand.NewPCG(8, 1))
	for trial := range 12 {
		m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, n)}
		for v := range n {
			table, _ := factorgraph.Table([]int{2}, []float64{rng.Float64(), 1e-3 * rng.Float64()})
			m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{v}, Table: table})
		}
		for range 3 {
			positive := make([]bool, 10)
			for k := range positive {
				positive[k] = rng.IntN(3) > 0
			}
			m.Factors = append(m.Factors, factorgraph.Factor{Scope: rng.Perm(n)[:10], Table: factorgraph.Clause(positive...)})
		}
		or, _ := factorgraph.NoisyOr(0.01, rng.Float64(), rng.Float64(), rng.Float64(), 0.2, 0.3, 0, 1, 0.6, 0.7)
		odd, _ := factorgraph.Parity(9, trial%2 == 0)
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: rng.Perm(n)[:10], Table: or},
			factorgraph.Factor{Scope: rng.Perm(n)[:9], Table: odd})
		var e factorgraph.Evidence
		for v := range trial % 4 {
			e.Hard = append(e.Hard, factorgraph.Observation{Var: 3 * v, Value: rng.IntN(2)})
		}
		net, err := build(t, m, reparam.Options{}).Condition(e)
		if err != nil {
			t.Fatal(err)
		}

		star, err := lower.Build(context.Background(), net)
		if err != nil {
			t.Fatal(err)
		}
		chains, err := lower.BuildUnsigned(context.Background(), net, star)
		if err != nil {
			t.Fatal(err)
		}
		if !star.Signed() || chains.Signed() {
			t.Fatalf("signs: of stars %v, of chains %v", star.Signed(), chains.Signed())
		}
		counters := 0
		for _, is := range chains.Counters {
			if is {
				counters++
			}
		}
		if len(e.Hard) == 0 && counters != 3*10+9 { // of the clauses and the parity, not of the noisy-or
			t.Errorf("%d counters", counters)
		}
		z, _, err := einsum.Contract(context.Background(), chains, orders.MinFill(chains.Hypergraph()), einsum.Options{})
		if err != nil {
			t.Fatal(err)
		}
		if want := oracle.Z(m, e); oracle.RelativeError(z.Mant, z.Exp, want) > 1e-13 && (want.Sign() != 0 || z != scaled.Number{}) {
			t.Errorf("evidence on %d: %v, want %v", len(e.Hard), z, want)
		}
	}
}

// TestSmallTermsStayStars: a clause of eight literals is no chain.
func TestSmallTermsStayStars(t *testing.T) {
	m := &factorgraph.Model{Domains: slices.Repeat([]int{2}, 8)}
	m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{0, 1, 2, 3, 4, 5, 6, 7}, Table: factorgraph.Clause(make([]bool, 8)...)})
	net := build(t, m, reparam.Options{})
	star, err := lower.Build(context.Background(), net)
	if err != nil {
		t.Fatal(err)
	}
	if chains, err := lower.BuildUnsigned(context.Background(), net, star); err != nil || chains != star {
		t.Errorf("%v, %v", chains, err)
	}
}
