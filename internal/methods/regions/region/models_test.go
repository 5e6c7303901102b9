package region

// Models and independent answers for tests.

import (
	"context"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// rounding is the tolerance for numbers that are equal up to rounding.
const rounding = 1e-9

// ising returns exp(Σ J_ij x_i x_j + Σ h_i x_i) on the given edges, J ~ U(−Δ, Δ), h ~ U(−0.1, 0.1):
// a table per edge, and one per index.
func ising(n int, edges [][2]int, delta float64, seed uint64) *sumproduct.Expression {
	rng := rand.New(rand.NewPCG(seed, 4))
	e := &sumproduct.Expression{Dims: make([]int, n), Scale: scaled.One}
	for i := range n {
		e.Dims[i] = 2
		h := 0.1 * (2*rng.Float64() - 1)
		e.Tables = append(e.Tables, sumproduct.Table{
			Scope: []int{i},
			Data:  []float64{math.Exp(-h), math.Exp(h)},
		})
	}
	for _, edge := range edges {
		j := delta * (2*rng.Float64() - 1)
		a, b := math.Exp(j), math.Exp(-j)
		e.Tables = append(e.Tables, sumproduct.Table{Scope: edge[:], Data: []float64{a, b, b, a}})
	}
	return e
}

func gridEdges(rows, cols int) (edges [][2]int) {
	for i := range rows * cols {
		if i%cols+1 < cols {
			edges = append(edges, [2]int{i, i + 1})
		}
		if i+cols < rows*cols {
			edges = append(edges, [2]int{i, i + cols})
		}
	}
	return edges
}

func grid(rows, cols int, delta float64, seed uint64) *sumproduct.Expression {
	return ising(rows*cols, gridEdges(rows, cols), delta, seed)
}

// random returns tables of order 1 to 3 over indices of dimension 2 or 3, entries in [½, 1½) to some
// power.
func random(n, tables int, strength float64, seed uint64) *sumproduct.Expression {
	rng := rand.New(rand.NewPCG(seed, 5))
	e := &sumproduct.Expression{Dims: make([]int, n), Scale: scaled.FromFloat(3)}
	for i := range n {
		e.Dims[i] = 2 + rng.IntN(2)
	}
	for range tables {
		scope := rng.Perm(n)[:1+rng.IntN(3)]
		size := 1
		for _, i := range scope {
			size *= e.Dims[i]
		}
		data := make([]float64, size)
		for k := range data {
			data[k] = math.Pow(0.5+rng.Float64(), strength)
		}
		e.Tables = append(e.Tables, sumproduct.Table{Scope: scope, Data: data})
	}
	return e
}

// exactAnswer returns ln Z and the marginals of an expression, by elimination.
func exactAnswer(t testing.TB, e *sumproduct.Expression) (float64, [][]float64) {
	t.Helper()
	r, _, err := einsum.Marginals(context.Background(), e, orders.MinFill(e.Hypergraph()), einsum.Options{})
	if err != nil {
		t.Fatal(err)
	}
	out := make([][]float64, len(e.Dims))
	for i, row := range r.Marginals {
		for _, m := range row {
			out[i] = append(out[i], m.Div(r.Z).Float64())
		}
	}
	return r.Z.LogAbs(), out
}

func propagate(t testing.TB, e *sumproduct.Expression) *bp.State {
	t.Helper()
	s, err := bp.Run(context.Background(), e, bp.Options{Tolerance: 1e-13})
	if err != nil {
		t.Fatal(err)
	}
	if !s.Converged && s.Change > 1e-9 {
		t.Fatalf("belief propagation has not converged: %g", s.Change)
	}
	return s
}

func planFamily(t testing.TB, e *sumproduct.Expression, o Options) *Family {
	t.Helper()
	f, err := Plan(context.Background(), e.Hypergraph(), o)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func estimate(t testing.TB, e *sumproduct.Expression, o Options) *Estimate {
	t.Helper()
	est, err := Run(context.Background(), e, propagate(t, e), planFamily(t, e, o), 1)
	if err != nil {
		t.Fatal(err)
	}
	return est
}

// meanError returns the mean |P − Q| over all values of all indices.
func meanError(p, q [][]float64) float64 {
	total, n := 0.0, 0
	for i := range p {
		for x := range p[i] {
			total += math.Abs(p[i][x] - q[i][x])
			n++
		}
	}
	return total / float64(n)
}

func unlimitedMoves() *moves { return newMoves(context.Background(), 1<<40) }

func weights(t testing.TB, g *graph, s *store) []int64 {
	t.Helper()
	alpha, err := moebius(g, s, unlimitedMoves())
	if err != nil {
		t.Fatal(err)
	}
	return alpha
}
