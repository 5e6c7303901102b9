package mps

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/sumproduct"
)

// bruteMarginals returns the part of Z in which an index has a value, for all, by holding it there.
func bruteMarginals(e *sumproduct.Expression) [][]float64 {
	out := make([][]float64, len(e.Dims))
	for i, d := range e.Dims {
		for v := range d {
			held := *e
			only := sumproduct.Table{Scope: []int{i}, Data: make([]float64, d)}
			only.Data[v] = 1
			held.Tables = append(append([]sumproduct.Table(nil), e.Tables...), only)
			z, _ := brute(&held)
			out[i] = append(out[i], z)
		}
	}
	return out
}

func TestMarginalsAgainstEnumeration(t *testing.T) {
	for seed := range uint64(250) {
		rng := rand.New(rand.NewPCG(seed, 3))
		e := randomExpression(rng, seed%3 == 1, seed%4 == 2)
		want := bruteMarginals(e)
		z, abs := brute(e)
		v, err := Contract(context.Background(), e, randomPlan(rng, e.Hypergraph()), Options{Bond: 1 << 20, Memory: 1 << 60, Marginals: true})
		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		if math.Abs(z) <= 1e-9*abs {
			continue // nothing to divide by
		}
		if v.Marginals == nil {
			t.Errorf("seed %d: no marginals, Z %g", seed, z)
			continue
		}
		for i := range want {
			for x := range want[i] {
				if d := math.Abs(v.Marginals[i][x]*z - want[i][x]); !(d <= exactTolerance*abs) {
					t.Errorf("seed %d: P(%d=%d) = %g, want %g", seed, i, x, v.Marginals[i][x], want[i][x]/z)
				}
			}
		}
	}
}

func TestEvaluateMarginalsBoundsContract(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 4))
		e := randomExpression(rng, false, false)
		p, bond := randomPlan(rng, e.Hypergraph()), 1+rng.IntN(12)
		v, err := Contract(context.Background(), e, p, Options{Bond: bond, Cutoff: 1e-300, Marginals: true})
		if err != nil {
			t.Fatal(err)
		}
		c, err := EvaluateMarginals(e.Hypergraph(), p, bond)
		if err != nil {
			t.Fatal(err)
		}
		if v.Flops > 2*c.Flops || v.PeakBytes > c.PeakBytes {
			t.Errorf("seed %d: %g flops, %g bytes; predicted %+v", seed, v.Flops, v.PeakBytes, c)
		}
	}
}
