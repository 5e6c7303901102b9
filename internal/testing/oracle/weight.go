package oracle

// Expressions of non-negative tables for tests of methods that sample or bound: random ones, and the weight of a state.

import (
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// RandomTable draws a table over the indices of scope; index i has dims[i] values. An entry is 0 with probability zeros and
// e^U(−strength, strength) otherwise.
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

// RandomTables draws count tables over up to three random indices each; see RandomTable for their entries.
func RandomTables(r *rand.Rand, dims []int, count int, strength, zeros float64) []sumproduct.Table {
	list := make([]sumproduct.Table, count)
	for k := range list {
		scope := r.Perm(len(dims))[:r.IntN(min(len(dims), 3)+1)]
		list[k] = RandomTable(r, dims, scope, strength, zeros)
	}
	return list
}

// LnWeight returns ln(Scale · Π_t T_t[x]) in nats, the logarithm of the term of an expression at x; −Inf if a table is 0 there. No table
// may have negative entries. Exponents of tables are ignored.
func LnWeight(e *sumproduct.Expression, x []int) float64 {
	ln := math.Log(math.Abs(e.Scale.Mant)) + float64(e.Scale.Exp)*math.Ln2
	for _, t := range e.Tables {
		index := 0
		for _, i := range t.Scope {
			index = index*e.Dims[i] + x[i]
		}
		ln += floats.Ln(t.Data[index])
	}
	return ln
}
