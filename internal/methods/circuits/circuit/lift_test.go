package circuit_test

import (
	"context"
	"errors"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/internal/testing/oracle"
)

// TestLiftedCircuitsAreOverMoreVariables: every variable of a circuit becomes up to three that follow from it, and others are fixed.
func TestLiftedCircuitsAreOverMoreVariables(t *testing.T) {
	for seed := range uint64(100) {
		rng := rand.New(rand.NewPCG(seed, 50))
		d := draw(t, rng)
		var domains, first, copies []int
		total := 0
		add := func(n int) {
			domains = append(domains, n)
			total += n
		}
		for _, n := range d.domains {
			first, copies = append(first, total), append(copies, 1+rng.IntN(3))
			for range copies[len(copies)-1] {
				add(n)
			}
		}
		fixed := []int32{}
		for range rng.IntN(3) {
			fixed = append(fixed, int32(total+1))
			add(2)
		}
		stands := make([][]int32, len(d.circuit.UnitWeights()))
		for v, n := range d.domains {
			for a := range n {
				for k := range copies[v] { // the k-th copy has its values in another sequence
					stands[d.circuit.FirstWeight(v)+a] = append(stands[d.circuit.FirstWeight(v)+a], int32(first[v]+k*n+(a+k)%n))
				}
			}
		}
		lifted, err := d.circuit.Lift(context.Background(), domains, stands, fixed)
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}

		w := drawn{domains: domains, circuit: lifted}.weigh(rng, 100)
		z := exactly(0)
		oracle.Each(d.domains, func(x []int) {
			term := new(big.Float).SetPrec(300).Set(d.at(x))
			times := func(leaf int32) {
				l := w[leaf]
				term.Mul(term, new(big.Float).SetMantExp(exactly(l.Mant), int(l.Exp)))
			}
			for v, a := range x {
				for _, leaf := range stands[d.circuit.FirstWeight(v)+a] {
					times(leaf)
				}
			}
			for _, leaf := range fixed {
				times(leaf)
			}
			z.Add(z, term)
		})
		got, err := lifted.Evaluate(ctx, w)
		if err != nil {
			t.Fatal(err)
		}
		near(t, "Z", got, z)
	}

	b := circuit.NewBuilder([]int{2}, 0)
	c, err := b.Finish(context.Background(), b.SumOfValues(0, nil))
	if err != nil {
		t.Fatal(err)
	}
	for name, stands := range map[string][][]int32{"too few": {{0}}, "nothing": {{0}, {}}, "not smooth": {{0, 2}, {1}}} {
		if _, err := c.Lift(context.Background(), []int{2, 2}, stands, nil); !errors.Is(err, circuit.ErrCircuit) {
			t.Errorf("%s: got %v, want ErrCircuit", name, err)
		}
	}
}
