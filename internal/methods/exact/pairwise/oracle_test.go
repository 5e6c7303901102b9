package pairwise_test

import (
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

type randomOptions struct {
	indices, tables, arity, dim int
	zeros                       float64
	negative                    bool
}

// randomExpression has hyperedges, scalars, disconnected parts,
// indices in one table or none, dimensions from 1.
func randomExpression(rng *rand.Rand, o randomOptions) *sumproduct.Expression {
	e := &sumproduct.Expression{Scale: scaled.Make(0.5+rng.Float64(), rng.Int64N(9)-4)}
	for range 1 + rng.IntN(o.indices) {
		e.Dims = append(e.Dims, 1+rng.IntN(o.dim))
	}
	for range rng.IntN(o.tables + 1) {
		scope := rng.Perm(len(e.Dims))[:min(len(e.Dims), rng.IntN(o.arity+1))]
		size := 1
		for _, i := range scope {
			size *= e.Dims[i]
		}
		t := sumproduct.Table{Scope: scope, Data: make([]float64, size)}
		for k := range t.Data {
			switch {
			case rng.Float64() < o.zeros:
			case o.negative && rng.IntN(2) == 0:
				t.Data[k] = -rng.Float64()
			default:
				t.Data[k] = rng.Float64()
			}
		}
		e.Tables = append(e.Tables, t)
	}
	return e
}

// randomTree merges random pairs.
func randomTree(rng *rand.Rand, leaves int) contractionorder.Tree {
	t := contractionorder.Tree{Leaves: leaves}
	var live []int
	for i := range leaves {
		live = append(live, i)
	}
	for len(live) > 1 {
		rng.Shuffle(len(live), func(i, j int) { live[i], live[j] = live[j], live[i] })
		n := len(live)
		t.Merges = append(t.Merges, [2]int{live[n-1], live[n-2]})
		live = append(live[:n-2], leaves+len(t.Merges)-1)
	}
	return t
}

func randomSlices(rng *rand.Rand, dims []int) []int {
	return rng.Perm(len(dims))[:rng.IntN(min(len(dims), 3)+1)]
}
