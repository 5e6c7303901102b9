package sweeps

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// randomExpression has connected and unconnected parts,
// repeated scopes, numbers, indices of dimension 1 and in no table.
func randomExpression(rng *rand.Rand, negative, zeros bool) *sumproduct.Expression {
	n := 1 + rng.IntN(9)
	e := &sumproduct.Expression{Scale: scaled.FromFloat(math.Exp(rng.NormFloat64()))}
	for range n {
		e.Dims = append(e.Dims, 1+rng.IntN(4))
	}
	for range rng.IntN(2 * n) {
		scope := rng.Perm(n)[:rng.IntN(min(n, 5))]
		size := 1
		for _, i := range scope {
			size *= e.Dims[i]
		}
		t := sumproduct.Table{Scope: scope, Data: make([]float64, size)}
		for k := range t.Data {
			t.Data[k] = math.Exp(rng.NormFloat64())
			if negative && rng.IntN(2) == 0 {
				t.Data[k] *= -1
			}
			if zeros && rng.IntN(3) == 0 {
				t.Data[k] = 0
			}
		}
		e.Tables = append(e.Tables, t)
	}
	return e
}

// randomPlan draws any order and any places.
func randomPlan(rng *rand.Rand, h contractionorder.Hypergraph) Plan {
	var order []int
	for _, i := range rng.Perm(len(h.Dims)) {
		if h.Dims[i] > 1 {
			order = append(order, i)
		}
	}
	chain := make([]int, len(order))
	for k, i := range rng.Perm(len(order)) {
		chain[k] = order[i]
	}
	return Plan{Order: order, Position: positions(chain, len(h.Dims))}
}

func TestEvaluateBoundsContract(t *testing.T) {
	for seed := range uint64(300) {
		rng := rand.New(rand.NewPCG(seed, 2))
		e := randomExpression(rng, false, false)
		p, bond := randomPlan(rng, e.Hypergraph()), 1+rng.IntN(12)
		v, err := Contract(context.Background(), e, p, Options{Bond: bond, Cutoff: 1e-300})
		if err != nil {
			t.Fatal(err)
		}
		c, err := Evaluate(t.Context(), e.Hypergraph(), p, bond, false)
		if err != nil {
			t.Fatal(err)
		}
		if v.Flops > c.Flops || v.PeakBytes > c.Bytes || v.Bond > bond {
			t.Errorf("seed %d: %g flops, %g bytes, bond %d; predicted %+v",
				seed, v.Flops, v.PeakBytes, v.Bond, c)
		}
	}
}
