package einsum_test

import (
	"context"
	"fmt"
	"math/big"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// roundoff bounds the error of a contraction of a small network against the sum of its terms' absolute values: some
// hundred roundings, and the maps' condition.
const roundoff = 1e-11

// contract runs every invariant of one network and order: the shape is the expression's, prediction and statistics
// agree, threads do not matter. It returns Z.
func contract(t *testing.T, net *btn.Network, order func(contractionorder.Hypergraph) []int) scaled.Number {
	t.Helper()
	e, err := lower.Build(context.Background(), net)
	if err != nil {
		t.Fatal(err)
	}
	shape, err := lower.Shape(context.Background(), net)
	if err != nil {
		t.Fatal(err)
	}
	if h := e.Hypergraph(); !slices.Equal(h.Dims, shape.Dims) || len(h.Edges) != len(shape.Edges) || len(h.Edges) > 0 &&
		!reflect.DeepEqual(h.Edges, shape.Edges) {
		t.Fatalf("shape %v, expression %v", shape, h)
	}
	o := order(shape)
	z, stats, err := einsum.Contract(context.Background(), e, o, einsum.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	two, _, err := einsum.Contract(context.Background(), e, o, einsum.Options{Threads: 3})
	if err != nil || two != z {
		t.Fatalf("one thread %v, three %v, %v", z, two, err)
	}
	plan := orders.Evaluate(shape, o)
	if !z.IsZero() && (stats.Flops != plan.Flops || float64(stats.PeakBytes) != plan.Bytes) {
		t.Fatalf("took %v flops and %d bytes, predicted %v and %v", stats.Flops, stats.PeakBytes, plan.Flops, plan.Bytes)
	}
	return z
}

// agree compares with the oracle; scale is the reference of rounding.
func agree(t *testing.T, what string, z scaled.Number, want, scale *big.Float) {
	t.Helper()
	if !z.IsFinite() {
		t.Errorf("%s: Z = %v", what, z)
		return
	}
	got := new(big.Float).SetMantExp(big.NewFloat(z.Mant), int(z.Exp))
	diff := new(big.Float).Sub(got, want)
	if scale.Sign() != 0 {
		diff.Quo(diff, scale)
	}
	if d, _ := diff.Abs(diff).Float64(); d > roundoff {
		t.Errorf("%s: Z = %v, enumeration %v, error %.3g of the terms", what, got, want, d)
	}
}

func shuffled(rng *rand.Rand) func(contractionorder.Hypergraph) []int {
	return func(h contractionorder.Hypergraph) []int {
		return contractionorder.RestrictOrder(rng.Perm(len(h.Dims)), h)
	}
}

// TestRandomNetworks: networks that are no factor graph: any form on either side of a leg, links without legs, several
// legs between the same two tensors.
func TestRandomNetworks(t *testing.T) {
	const seed = 20141
	rng := rand.New(rand.NewPCG(seed, 2))
	for round := range nightly.Rounds(60, 300) {
		net := randomNetwork(rng, modeltest.SmallOptions{Negative: round%2 == 1, Zeros: float64(round%3) * 0.2})
		want, terms := oracle.NetworkZ(net)
		what := fmt.Sprintf("seed %d, network %d", seed, round)
		agree(t, what+", best order", contract(t, net, orders.Best), want, terms)
		agree(t, what+", random order", contract(t, net, shuffled(rng)), want, terms)
	}
}

func randomNetwork(rng *rand.Rand, o modeltest.SmallOptions) *btn.Network {
	n := &btn.Network{Scale: scaled.Make(0.5+rng.Float64(), rng.Int64N(5000)-2500)}
	for range 1 + rng.IntN(8) {
		n.Dims = append(n.Dims, 1+rng.IntN(3))
	}
	kind := func() modeltest.Kind { return modeltest.AllKinds[rng.IntN(len(modeltest.AllKinds))] }
	for _, legs := range parts(rng, len(n.Dims)) {
		n.Cores = append(n.Cores, btn.Core{Legs: legs, T: modeltest.Tensor(rng, kind(), pick(n.Dims, legs), o)})
	}
	for _, legs := range parts(rng, len(n.Dims)) {
		n.Links = append(n.Links, btn.Link{Legs: legs, T: modeltest.Tensor(rng, kind(), pick(n.Dims, legs), o)})
	}
	if rng.IntN(2) == 0 {
		n.Links = append(n.Links, btn.Link{T: modeltest.Tensor(rng, kind(), []int{}, o)})
	}
	return n
}

// parts splits 0 … n−1 into random groups of up to five.
func parts(rng *rand.Rand, n int) [][]int {
	list := rng.Perm(n)
	var out [][]int
	for len(list) > 0 {
		k := min(len(list), 1+rng.IntN(5))
		out = append(out, list[:k])
		list = list[k:]
	}
	return out
}

func pick(dims, legs []int) []int {
	out := make([]int, len(legs))
	for k, l := range legs {
		out[k] = dims[l]
	}
	return out
}
