package generate

// Ising models: grids, complete graphs, random regular graphs.

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Ising describes the couplings of P(x) ∝ exp(Σ_ij J_ij x_i x_j + Σ_i h_i x_i), x = ±1, value 0 being −1.
type Ising struct {
	Delta      float64 // J ~ U(−Δ, Δ), mixed signs; 0 to 500
	Attractive bool    // |J| instead
	Seed       uint64  // of J, h and the graph
}

const (
	field       = 0.1 // h ~ U(−field, field)
	maxCoupling = 500 // exp(±J) stays in the range of float64
	maxSpins    = 1_000_000
	maxEdges    = 10_000_000
)

// Grid returns the Ising model on a rows × cols grid with open boundary; variable r·cols + c is at row r, column c.
// Factors: one per variable, then one per edge, in the order of their first variable, right before down.
func Grid(rows, cols int, o Ising) (*factorgraph.Model, error) {
	if rows < 1 || cols < 1 || rows > maxSpins/cols {
		return nil, fmt.Errorf("%w: a grid of %d × %d, 1 to %d variables are possible", ErrOptions, rows, cols, maxSpins)
	}
	var edges [][2]int
	for i := range rows * cols {
		if i%cols+1 < cols {
			edges = append(edges, [2]int{i, i + 1})
		}
		if i+cols < rows*cols {
			edges = append(edges, [2]int{i, i + cols})
		}
	}
	return ising(rows*cols, edges, o)
}

// Complete returns the Ising model on the complete graph of n variables; edges in lexicographic order.
func Complete(n int, o Ising) (*factorgraph.Model, error) {
	if n < 1 || n > 4000 {
		return nil, fmt.Errorf("%w: a complete graph of %d variables, 1 to 4000 are possible", ErrOptions, n)
	}
	return ising(n, without(n, nil), o)
}

// RandomRegular returns the Ising model on a random simple graph in which every variable has the given degree; n·degree
// must be even. Edges in lexicographic order.
func RandomRegular(n, degree int, o Ising) (*factorgraph.Model, error) {
	if n < 1 || n > maxSpins || degree < 0 || degree >= n || n*degree%2 != 0 || n > 2*maxEdges/max(1, degree) {
		return nil, fmt.Errorf("%w: no simple graph of %d variables of degree %d (or too many edges)", ErrOptions, n, degree)
	}
	return ising(n, regularGraph(rand.New(rand.NewPCG(o.Seed, 0x7267)), n, degree), o)
}

// ising draws the fields, then the couplings, from one stream.
func ising(n int, edges [][2]int, o Ising) (*factorgraph.Model, error) {
	if !(o.Delta >= 0 && o.Delta <= maxCoupling) {
		return nil, fmt.Errorf("%w: Δ = %v, 0 to %v are possible", ErrOptions, o.Delta, float64(maxCoupling))
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0x6973))
	m := &factorgraph.Model{Domains: make([]int, n), Factors: make([]factorgraph.Factor, 0, n+len(edges))}
	for i := range n {
		m.Domains[i] = 2
		h := field * (2*rng.Float64() - 1)
		unary := &tensor.Dense{Shape: []int{2}, Data: []float64{math.Exp(-h), math.Exp(h)}}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{i}, Table: unary})
	}
	for _, e := range edges {
		coupling := o.Delta * (2*rng.Float64() - 1)
		if o.Attractive {
			coupling = math.Abs(coupling)
		}
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: []int{e[0], e[1]}, Table: pairTable(coupling)})
	}
	return m, nil
}

// pairTable returns exp(J x y).
func pairTable(coupling float64) *tensor.Dense {
	same, other := math.Exp(coupling), math.Exp(-coupling)
	return &tensor.Dense{Shape: []int{2, 2}, Data: []float64{same, other, other, same}}
}
