package compiler

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/internal/methods/circuits/formula"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// TestCircuitsAgainstEnumeration: one circuit serves all weights, and is deterministic.
func TestCircuitsAgainstEnumeration(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	eliminated := int64(0)
	for i := range 800 {
		f, weights := random(t, r, 1+r.IntN(8))
		c, dense := traced(t, f, weights, []int{-1, 0, 8, 1 << 20}[i%4])
		eliminated += dense
		if sure, err := c.IsDeterministic(context.Background()); err != nil || !sure {
			t.Fatalf("formula %d: deterministic %v, %v", i, sure, err)
		}
		for range 3 {
			got, err := c.Evaluate(context.Background(), circuit.Weights(weights))
			if err != nil {
				t.Fatal(err)
			}
			if agree(t, "circuit", got, enumerate(f, weights)); t.Failed() {
				t.Fatalf("formula %d: %+v", i, f)
			}
			for a := range weights {
				weights[a] = scaled.FromFloat(float64(r.IntN(3)) * r.Float64())
			}
		}
	}
	if eliminated < 100 {
		t.Errorf("%d components were eliminated", eliminated)
	}
}

// traced compiles a formula into a circuit, with tables of so many entries, and returns the number
// of eliminated components.
func traced(t *testing.T, f *formula.Formula, weights []scaled.Number, cells int) (*circuit.Circuit, int64) {
	t.Helper()
	b := circuit.NewBuilder(f.Domains, 0)
	got, err := Compile(context.Background(), f, Options{Weights: weights, Builder: b, cells: cells})
	if err != nil || !got.Traced {
		t.Fatal(got, err)
	}
	agree(t, "traced formula", got.Z, enumerate(f, weights))
	c, err := b.Finish(context.Background(), got.Root)
	if err != nil {
		t.Fatal(err)
	}
	return c, got.Stats.Dense
}

// TestFullBuilder: without room for its circuit a formula is summed all the same.
func TestFullBuilder(t *testing.T) {
	f := hard(t, rand.New(rand.NewPCG(11, 12)), 40, 2)
	want, err := Compile(context.Background(), f, Options{cells: -1})
	if err != nil {
		t.Fatal(err)
	}
	got, err := Compile(context.Background(), f, Options{Builder: circuit.NewBuilder(f.Domains, 20000), cells: -1})
	if err != nil || got.Traced || got.Z != want.Z {
		t.Errorf("%+v, %v with little room, %+v without a builder", got, err, want)
	}
}
