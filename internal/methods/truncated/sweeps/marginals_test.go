package sweeps

import (
	"context"
	"math/rand/v2"
	"testing"
)

func TestEvaluateMarginalsBoundsContract(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 4))
		e := randomExpression(rng, false, false)
		p, bond := randomPlan(rng, e.Hypergraph()), 1+rng.IntN(12)
		v, err := Contract(context.Background(), e, p,
			Options{Bond: bond, Cutoff: 1e-300, Marginals: true})
		if err != nil {
			t.Fatal(err)
		}
		c, err := Evaluate(t.Context(), e.Hypergraph(), p, bond, true)
		if err != nil {
			t.Fatal(err)
		}
		if v.Flops > 2*c.Flops || v.PeakBytes > c.Bytes {
			t.Errorf("seed %d: %g flops, %g bytes; predicted %+v", seed, v.Flops, v.PeakBytes, c)
		}
	}
}
