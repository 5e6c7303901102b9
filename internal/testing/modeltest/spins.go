package modeltest

// Models of spins ±1, value 0 being −1: P(x) ∝ exp(Σ J_ij x_i x_j + Σ h_i x_i).

import (
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// graph returns the number of vertices and the edges of a graph of this size; random graphs are drawn from r.
type graph func(size int, r *rand.Rand) (n int, edges [][2]int)

// law draws one field or coupling of a model of n spins from a distribution of this strength.
type law func(r *rand.Rand, n int, strength float64) float64

// constantLaw returns x.
func constantLaw(_ *rand.Rand, _ int, x float64) float64 { return x }

// uniformLaw draws from U(−a, a).
func uniformLaw(r *rand.Rand, _ int, a float64) float64 { return uniform(r, a) }

// normalLaw draws from N(0, σ²).
func normalLaw(r *rand.Rand, _ int, sigma float64) float64 { return sigma * r.NormFloat64() }

// sherringtonLaw draws from N(0, σ²/n), so that the couplings of one spin with all others add up to a finite variance.
func sherringtonLaw(r *rand.Rand, n int, sigma float64) float64 {
	return sigma * r.NormFloat64() / math.Sqrt(float64(n))
}

// randomSign draws +x or −x, with probability ½ each.
func randomSign(r *rand.Rand, _ int, x float64) float64 { return x * float64(1-2*r.IntN(2)) }

// withStrength returns the law l at a fixed strength, instead of that of the model.
func withStrength(strength float64, l law) law {
	return func(r *rand.Rand, n int, _ float64) float64 { return l(r, n, strength) }
}

// spinModels returns a generator of Ising models on a graph: P(x) ∝ exp(Σ h_i x_i + Σ J_ij x_i x_j). It draws the graph, then h of every
// spin, then J of every edge, from the stream of this name.
func spinModels(stream string, g graph, field, coupling law) generator {
	return func(size int, strength float64, seed uint64) (*factorgraph.Model, error) {
		r := newStream(seed, stream)
		n, edges := g(size, r)
		b := newBuilder(n, 2)
		for i := range n {
			b.addField(i, field(r, n, strength))
		}
		for _, e := range edges {
			b.addCoupling(e[0], e[1], coupling(r, n, strength))
		}
		return &b.Model, nil
	}
}

// openLattice returns the number of vertices and the edges of a grid with these sides; see lattice for the numbering of the vertices.
func openLattice(sides ...int) (n int, edges [][2]int) { return lattice(false, sides...) }

// periodicLattice is openLattice with periodic boundaries.
func periodicLattice(sides ...int) (n int, edges [][2]int) { return lattice(true, sides...) }

// lattice returns the number of vertices and the edges of a grid of any dimension. Vertices are numbered row-major: in a grid of
// sides a × b × c, vertex i has the coordinates (i/(b·c), i/c % b, i % c).
// If periodic, the last vertex of each line is joined to the first one, unless the side is 2, where that edge exists already.
func lattice(periodic bool, sides ...int) (n int, edges [][2]int) {
	n = product(sides)
	for i := range n {
		stride := n
		for _, s := range sides {
			stride /= s
			coordinate := i / stride % s
			switch {
			case coordinate+1 < s:
				edges = append(edges, [2]int{i, i + stride})
			case periodic && s > 2:
				first := i - coordinate*stride
				edges = append(edges, [2]int{first, i})
			}
		}
	}
	return n, edges
}

// square returns an open grid of side × side vertices.
func square(side int, _ *rand.Rand) (int, [][2]int) { return openLattice(side, side) }

// slab returns an open grid of side × 4 × 4 vertices.
func slab(side int, _ *rand.Rand) (int, [][2]int) { return openLattice(side, 4, 4) }

// torus returns a periodic grid of side³ vertices.
func torus(side int, _ *rand.Rand) (int, [][2]int) { return periodicLattice(side, side, side) }

// triangles returns a grid of side × side vertices with one diagonal in each square.
func triangles(side int, _ *rand.Rand) (int, [][2]int) {
	n, edges := openLattice(side, side)
	for row := range side - 1 {
		for column := range side - 1 {
			edges = append(edges, [2]int{row*side + column, (row+1)*side + column + 1})
		}
	}
	return n, edges
}

// allPairs returns the complete graph of n vertices.
func allPairs(n int, _ *rand.Rand) (int, [][2]int) {
	var edges [][2]int
	for i := range n {
		for j := i + 1; j < n; j++ {
			edges = append(edges, [2]int{i, j})
		}
	}
	return n, edges
}

// halves returns the complete bipartite graph of half + half vertices: each of the first half is joined to each of the second.
func halves(half int, _ *rand.Rand) (int, [][2]int) {
	var edges [][2]int
	for i := range half {
		for j := range half {
			edges = append(edges, [2]int{i, half + j})
		}
	}
	return 2 * half, edges
}

// scaleFree returns a graph of n vertices by preferential attachment (Barabási and Albert, 1999): every vertex after the first two is
// joined to two different earlier ones, drawn in proportion to their degree.
func scaleFree(n int, r *rand.Rand) (int, [][2]int) {
	var edges [][2]int
	ends := []int{0, 1} // each vertex as often as it has edges, and the first two once more, so that they can be drawn at all
	for v := 2; v < n; v++ {
		a := ends[r.IntN(len(ends))]
		b := a
		for b == a {
			b = ends[r.IntN(len(ends))]
		}
		edges = append(edges, [2]int{a, v}, [2]int{b, v})
		ends = append(ends, a, b, v, v)
	}
	return n, edges
}

// smallWorld returns a small-world graph (Watts and Strogatz, 1998) of n vertices, at least six: a ring in which each vertex is joined to
// the two next ones, and then a fifth of the edges get another far end, drawn at random.
func smallWorld(n int, r *rand.Rand) (int, [][2]int) {
	const neighbours, rewired = 2, 0.2
	n = max(n, 2*neighbours+2)
	sorted := func(i, j int) [2]int { return [2]int{min(i, j), max(i, j)} }

	// The ring: edges neighbours·i to neighbours·i + neighbours − 1 start at vertex i.
	exists, edges := map[[2]int]bool{}, make([][2]int, 0, neighbours*n)
	for i := range n {
		for k := 1; k <= neighbours; k++ {
			edges = append(edges, sorted(i, (i+k)%n))
			exists[edges[len(edges)-1]] = true
		}
	}

	// Rewire: draw the far end j until the edge is no loop and not in the graph.
	for k, e := range edges {
		if r.Float64() >= rewired {
			continue
		}
		delete(exists, e)
		i := k / neighbours
		for j := i; j == i || exists[e]; e = sorted(i, j) {
			j = r.IntN(n)
		}
		edges[k], exists[e] = e, true
	}
	return n, edges
}
