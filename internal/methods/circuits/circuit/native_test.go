package circuit_test

// Tensors with a structure of their own are small circuits: chains over the legs with a state.

import (
	"context"
	"math/big"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// automaton returns the circuit of a tensor whose entry depends on the state after the last leg: legs have two values, next
// is the state after a leg.
func automaton(b *circuit.Builder, legs int, next func(state, value int) int, last func(state int) scaled.Number) circuit.Node {
	made := map[[2]int]circuit.Node{}
	var from func(leg, state int) circuit.Node
	from = func(leg, state int) circuit.Node {
		if leg == legs {
			return b.Number(last(state))
		}
		if n, ok := made[[2]int{leg, state}]; ok {
			return n
		}
		zero, one := next(state, 0), next(state, 1)
		n := circuit.Zero
		if zero == one {
			n = b.Product(b.SumOfValues(leg, nil), from(leg+1, zero))
		} else {
			n = b.Sum(b.Product(b.Leaf(leg, 0), from(leg+1, zero)), b.Product(b.Leaf(leg, 1), from(leg+1, one)))
		}
		made[[2]int{leg, state}] = n
		return n
	}
	return from(0, 0)
}

func TestNativeTensorsAreSmall(t *testing.T) {
	const n = 10
	values := make([]scaled.Number, n+1)
	rng := rand.New(rand.NewPCG(8, 1))
	for k := range values {
		values[k] = scaled.FromFloat(rng.Float64())
	}
	either := func(state, value int) int { return state | value }
	flip := func(state, value int) int { return state ^ value }
	count := func(state, value int) int { return state + value }
	for _, c := range []struct {
		name  string
		next  func(state, value int) int
		last  func(state int) scaled.Number
		most  int // edges
		entry func(ones int) scaled.Number
	}{
		{"clause", either, number(0, 1), 10 * n, func(ones int) scaled.Number { return number(0, 1)(min(ones, 1)) }},
		{"parity", flip, number(0, 1), 12 * n, func(ones int) scaled.Number { return number(0, 1)(ones % 2) }},
		{"counter", count, func(k int) scaled.Number { return values[k] }, 3*n*n + 3*n, func(ones int) scaled.Number { return values[ones] }},
	} {
		b := circuit.NewBuilder(slices.Repeat([]int{2}, n), 0)
		made, err := b.Finish(context.Background(), automaton(b, n, c.next, c.last))
		if err != nil {
			t.Fatal(err)
		}
		if made.Edges() > c.most || made.Edges() < c.most/3 {
			t.Errorf("%s: %d edges, about %d expected", c.name, made.Edges(), c.most)
		}
		d := drawn{circuit: made, domains: slices.Repeat([]int{2}, n), at: func(x []int) *big.Float {
			ones := 0
			for _, a := range x {
				ones += a
			}
			return exactly(c.entry(ones).Float64())
		}}
		w := d.weigh(rng, 3)
		z := exactly(0)
		d.terms(w, func(_ []int, term *big.Float) { z.Add(z, term) })
		got, err := made.Evaluate(ctx, w)
		if err != nil {
			t.Fatal(err)
		}
		near(t, c.name, got, z)
		if ok, err := made.IsDeterministic(ctx); !ok || err != nil {
			t.Errorf("%s: deterministic %v, %v", c.name, ok, err)
		}
	}
}

func number(of ...float64) func(int) scaled.Number {
	return func(k int) scaled.Number { return scaled.FromFloat(of[k]) }
}

// TestNoisyOrIsAChainOfTermsOfOneSign: Σ_i (Π_{j<i} t_j)(1 − t_i) has no term below 0, and serves Z, marginals and draws; its terms
// overlap, so that maxima are refused.
func TestNoisyOrIsAChainOfTermsOfOneSign(t *testing.T) {
	const n = 7
	rng := rand.New(rand.NewPCG(8, 2))
	through := make([]float64, n) // t_j(1); t_j(0) is 1
	for j := range through {
		through[j] = float64(1+rng.IntN(15)) / 16
	}
	domains := slices.Repeat([]int{2}, n)
	b := circuit.NewBuilder(domains, 0)
	number := func(x float64) circuit.Node { return b.Number(scaled.FromFloat(x)) }
	chain, rest := circuit.Zero, circuit.One
	for j := n - 1; j >= 0; j-- {
		blocked := b.Product(number(1-through[j]), b.Leaf(j, 1), rest)
		kept := b.Sum(b.Leaf(j, 0), b.Product(number(through[j]), b.Leaf(j, 1)))
		chain = b.Sum(blocked, b.Product(kept, chain))
		rest = b.Product(b.SumOfValues(j, nil), rest)
	}
	c, err := b.Finish(context.Background(), chain)
	if err != nil {
		t.Fatal(err)
	}
	d := drawn{circuit: c, domains: domains, at: func(x []int) *big.Float {
		none := exactly(1)
		for j, a := range x {
			if a == 1 {
				none.Mul(none, exactly(through[j]))
			}
		}
		return none.Sub(exactly(1), none)
	}}
	w := d.weigh(rng, 3)
	z := exactly(0)
	d.terms(w, func(_ []int, term *big.Float) { z.Add(z, term) })
	got, err := c.Evaluate(ctx, w)
	if err != nil {
		t.Fatal(err)
	}
	near(t, "noisy-or", got, z)
	if ok, err := c.IsDeterministic(ctx); ok || err != nil {
		t.Errorf("deterministic %v, %v", ok, err)
	}
	if c.Edges() > 14*n {
		t.Errorf("%d edges for %d legs", c.Edges(), n)
	}
}
