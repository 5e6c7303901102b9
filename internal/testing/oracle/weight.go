package oracle

// Expressions of non-negative tables for tests of methods that sample or bound: random ones, and the weight of a state.

import (
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// RandomTable is a table over these of the dims with entries e^±strength, a share of them 0.
func RandomTable(r *rand.Rand, dims, scope []int, strength, zeros float64) sumproduct.Table {
	size := 1
	for _, i := range scope {
		size *= dims[i]
	}
	t := sumproduct.Table{Scope: scope}
	for range size {
		x := math.Exp(strength * (2*r.Float64() - 1))
		if r.Float64() < zeros {
			x = 0
		}
		t.Data = append(t.Data, x)
	}
	return t
}

// RandomTables are so many over up to three of the dims each.
func RandomTables(r *rand.Rand, dims []int, count int, strength, zeros float64) []sumproduct.Table {
	list := make([]sumproduct.Table, count)
	for k := range list {
		scope := r.Perm(len(dims))[:r.IntN(min(len(dims), 3)+1)]
		list[k] = RandomTable(r, dims, scope, strength, zeros)
	}
	return list
}

// LnWeight is ln of an expression's term at x, nats, its scale included; −Inf where a table is 0. Tables are not negative.
func LnWeight(e *sumproduct.Expression, x []int) float64 {
	ln := math.Log(math.Abs(e.Scale.Mant)) + float64(e.Scale.Exp)*math.Ln2
	for _, t := range e.Tables {
		at := 0
		for _, i := range t.Scope {
			at = at*e.Dims[i] + x[i]
		}
		ln += floats.Ln(t.Data[at])
	}
	return ln
}
