package generate

// Pairwise models on grids, trees, complete, complete bipartite and random regular graphs: Ising, and
// tables of any domain.

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// Ising describes the couplings of P(x) ∝ exp(Σ_ij J_ij x_i x_j + Σ_i h_i x_i), x = ±1, value 0
// being −1.
type Ising struct {
	Delta      float64 // J ~ U(−Δ, Δ), mixed signs; 0 to 500
	Attractive bool    // |J| instead
	Seed       uint64  // of J, h and the graph
	// Domain 0 is Ising. Otherwise every variable has this many values, 2 to 64, and J_ij(x, y) ~
	// U(−Δ, Δ), h_i(x) are drawn for every entry on its own; Attractive is then refused.
	Domain int
}

const (
	maxCoupling = 500 // exp(±J) stays in the range of float64
	maxSpins    = 1_000_000
	maxEdges    = 10_000_000
)

// Grid returns the Ising model on a rows × cols grid with open boundary; variable r·cols + c is at
// row r, column c. Factors: one per variable, then one per edge, in the order of their first
// variable, right before down.
func Grid(rows, cols int, o Ising) (*factorgraph.Model, error) {
	if rows < 1 || cols < 1 || rows > maxSpins/cols {
		return nil, fmt.Errorf("%w: a grid of %d × %d, 1 to %d variables are possible",
			ErrOptions, rows, cols, maxSpins)
	}
	edges := make([][2]int, 0, 2*rows*cols-rows-cols)
	for i := range rows * cols {
		if hasRight := i%cols+1 < cols; hasRight {
			edges = append(edges, [2]int{i, i + 1})
		}
		if hasBelow := i+cols < rows*cols; hasBelow {
			edges = append(edges, [2]int{i, i + cols})
		}
	}
	return isingOnEdges(rows*cols, edges, o)
}

// Complete returns the Ising model on the complete graph of n variables; edges in lexicographic
// order.
func Complete(n int, o Ising) (*factorgraph.Model, error) {
	if n < 1 || n > 4000 {
		return nil, fmt.Errorf("%w: a complete graph of %d variables, 1 to 4000 are possible", ErrOptions, n)
	}
	return isingOnEdges(n, complementEdges(n, nil), o)
}

// Bipartite returns the Ising model on the complete bipartite graph of a + b variables: each of the
// first a with each of the others. Edges in lexicographic order.
func Bipartite(a, b int, o Ising) (*factorgraph.Model, error) {
	if a < 1 || b < 1 || a > maxSpins-b || a > maxEdges/b {
		return nil, fmt.Errorf("%w: a bipartite graph of %d + %d variables, 1 + 1 to %d edges are possible",
			ErrOptions, a, b, maxEdges)
	}
	edges := make([][2]int, 0, a*b) // at most maxEdges
	for i := range a {
		for j := range b {
			edges = append(edges, [2]int{i, a + j})
		}
	}
	return isingOnEdges(a+b, edges, o)
}

// RandomRegular returns the Ising model on a random simple graph in which every variable has the
// given degree; n·degree must be even. Edges in lexicographic order.
func RandomRegular(n, degree int, o Ising) (*factorgraph.Model, error) {
	if n < 1 || n > maxSpins || degree < 0 || degree >= n || n*degree%2 != 0 ||
		n > 2*maxEdges/max(1, degree) {
		return nil, fmt.Errorf("%w: no simple graph of %d variables of degree %d (or too many edges)",
			ErrOptions, n, degree)
	}
	return isingOnEdges(n, drawRegularGraph(rand.New(rand.NewPCG(o.Seed, 0x7267)), n, degree), o)
}

// Tree returns the Ising model on a random tree of n variables: each is joined to one of those before it, any with equal probability. Edges
// by their second variable.
func Tree(n int, o Ising) (*factorgraph.Model, error) {
	if n < 1 || n > maxSpins {
		return nil, fmt.Errorf("%w: a tree of %d variables, 1 to %d are possible", ErrOptions, n, maxSpins)
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0x7472)) // "tr"
	edges := make([][2]int, n-1)
	for k := range edges {
		edges[k] = [2]int{rng.IntN(k + 1), k + 1}
	}
	return isingOnEdges(n, edges, o)
}

// isingOnEdges returns the model with these edges. It draws the fields of all variables, then the couplings of all edges, from one stream.
func isingOnEdges(n int, edges [][2]int, o Ising) (*factorgraph.Model, error) {
	if !(o.Delta >= 0 && o.Delta <= maxCoupling) {
		return nil, fmt.Errorf("%w: Δ = %v, 0 to %v are possible", ErrOptions, o.Delta, float64(maxCoupling))
	}
	if o.Domain != 0 {
		return tablesOnEdges(n, edges, o)
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0x6973))                                                // "is"
	b := newBuilder(slices.Repeat([]int{2}, n), n+len(edges), 2*n+4*len(edges), n+2*len(edges)) // factors, entries, variables in scopes
	for i := range n {
		b.addField(i, uniform(rng, weakField))
	}
	for _, e := range edges {
		coupling := uniform(rng, o.Delta)
		if o.Attractive {
			coupling = math.Abs(coupling)
		}
		b.addCoupling(e[0], e[1], coupling)
	}
	return b.model(), nil
}

// tablesOnEdges returns the model of variables with o.Domain values and these edges. It draws an entry for each value
// of each variable, then one for each pair of values of each edge.
func tablesOnEdges(n int, edges [][2]int, o Ising) (*factorgraph.Model, error) {
	d := o.Domain
	if d < 2 || d > maxDim || o.Attractive {
		return nil, fmt.Errorf("%w: domain %d, attractive %v: 0, or 2 to %d and not attractive",
			ErrOptions, d, o.Attractive, maxDim)
	}

	entries := n*d + len(edges)*d*d // at most 1e7·64², which an int holds
	if entries > maxEntries {
		return nil, fmt.Errorf("%w: tables of %d entries, at most %d", ErrOptions, entries, maxEntries)
	}
	rng := rand.New(rand.NewPCG(o.Seed, 0x7074))                                       // "pt"
	b := newBuilder(slices.Repeat([]int{d}, n), n+len(edges), entries, n+2*len(edges)) // factors, entries, variables in scopes
	for i := range n {
		b.addRandom(rng, weakField, i)
	}
	for _, e := range edges {
		b.addRandom(rng, o.Delta, e[0], e[1])
	}
	return b.model(), nil
}
