package bp_test

// Random expressions and their enumeration.

import (
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// draw returns a table over scope with entries in (0.1, 1.1), or 0 with probability zeros.
func draw(rng *rand.Rand, dims, scope []int, zeros float64) sumproduct.Table {
	size := 1
	for _, i := range scope {
		size *= dims[i]
	}
	t := sumproduct.Table{Scope: scope, Data: make([]float64, size)}
	for a := range t.Data {
		if rng.Float64() >= zeros {
			t.Data[a] = 0.1 + rng.Float64()
		}
	}
	return t
}

// tree returns a forest of tables of order 2 to 4 with tables of order 1, numbered at random.
func tree(rng *rand.Rand, n int, zeros float64) *sumproduct.Expression {
	e := &sumproduct.Expression{Scale: scaled.Make(3, 5000)}
	number := rng.Perm(n)
	for range n {
		e.Dims = append(e.Dims, 1+rng.IntN(3))
	}
	for next := 1; next < n; {
		if rng.IntN(8) == 0 { // a new part
			next++
			continue
		}
		scope := []int{number[rng.IntN(next)]}
		for end := min(n, next+1+rng.IntN(3)); next < end; next++ {
			scope = append(scope, number[next])
		}
		rng.Shuffle(len(scope), func(a, b int) { scope[a], scope[b] = scope[b], scope[a] })
		e.Tables = append(e.Tables, draw(rng, e.Dims, scope, zeros))
	}
	for i := range n {
		if rng.IntN(2) == 0 {
			e.Tables = append(e.Tables, draw(rng, e.Dims, []int{i}, 0))
		}
	}
	e.Tables = append(e.Tables, sumproduct.Table{Data: []float64{0.7}})
	return e
}

// loopy returns tables of order 1 to 4 over random indices.
func loopy(rng *rand.Rand, n, tables int, zeros float64) *sumproduct.Expression {
	e := &sumproduct.Expression{Scale: scaled.One}
	for range n {
		e.Dims = append(e.Dims, 1+rng.IntN(3))
	}
	for range tables {
		e.Tables = append(e.Tables, draw(rng, e.Dims, rng.Perm(n)[:1+rng.IntN(min(4, n))], zeros))
	}
	return e
}

// ising returns an L×L grid, couplings in (−Δ, Δ), or in (0, Δ) when attractive, and fields in
// (−0.1, 0.1).
func ising(rng *rand.Rand, rows, columns int, delta float64, attractive bool) *sumproduct.Expression {
	e := &sumproduct.Expression{Scale: scaled.One}
	coupling := func(i, j int) {
		c := delta * (2*rng.Float64() - 1)
		if attractive {
			c = math.Abs(c)
		}
		p, q := math.Exp(c), math.Exp(-c)
		e.Tables = append(e.Tables, sumproduct.Table{Scope: []int{i, j}, Data: []float64{p, q, q, p}})
	}
	for i := range rows * columns {
		e.Dims = append(e.Dims, 2)
		h := 0.2*rng.Float64() - 0.1
		e.Tables = append(e.Tables, sumproduct.Table{
			Scope: []int{i},
			Data:  []float64{math.Exp(h), math.Exp(-h)},
		})
		if i%columns > 0 {
			coupling(i-1, i)
		}
		if i >= columns {
			coupling(i-columns, i)
		}
	}
	return e
}

// place is the position in a table of the values that x has for scope.
func place(e *sumproduct.Expression, scope, x []int) int {
	at := 0
	for _, i := range scope {
		at = at*e.Dims[i] + x[i]
	}
	return at
}
