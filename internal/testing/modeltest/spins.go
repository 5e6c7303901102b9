package modeltest

// Models of spins ±1, value 0 being −1: P(x) ∝ exp(Σ J_ij x_i x_j + Σ h_i x_i).

import (
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// graph is a graph of a size, drawn where it is random.
type graph func(size int, r *rand.Rand) (n int, edges [][2]int)

// law is a distribution of fields or couplings of n spins.
type law func(r *rand.Rand, n int, strength float64) float64

// The laws.
func constant(_ *rand.Rand, _ int, x float64) float64   { return x }
func within(r *rand.Rand, _ int, a float64) float64     { return uniform(r, a) }
func normal(r *rand.Rand, _ int, sigma float64) float64 { return sigma * r.NormFloat64() }
func sherrington(r *rand.Rand, n int, sigma float64) float64 {
	return sigma * r.NormFloat64() / math.Sqrt(float64(n))
}
func eitherSign(r *rand.Rand, _ int, x float64) float64 { return x * float64(1-2*r.IntN(2)) }

// with is a law of one strength.
func with(strength float64, l law) law {
	return func(r *rand.Rand, n int, _ float64) float64 { return l(r, n, strength) }
}

// spins draws a graph, h of every spin, then J of every edge, from the stream of this name.
func spins(stream string, g graph, field, coupling law) generator {
	return func(size int, strength float64, seed uint64) (*factorgraph.Model, error) {
		r := random(seed, stream)
		n, edges := g(size, r)
		b := variables(n, 2)
		for i := range n {
			b.field(i, field(r, n, strength))
		}
		for _, e := range edges {
			b.couple(e[0], e[1], coupling(r, n, strength))
		}
		return &b.Model, nil
	}
}

// lattice returns the edges of a grid of any dimension, variable i having the coordinates of i in mixed radix, the last fastest.
// Periodic ones take sides of 3 at least: shorter ones would have an edge twice.
func lattice(periodic bool, sides ...int) (n int, edges [][2]int) {
	n = product(sides)
	for i := range n {
		stride := n
		for _, s := range sides {
			stride /= s
			place := i / stride % s
			switch {
			case place+1 < s:
				edges = append(edges, [2]int{i, i + stride})
			case periodic && s > 2:
				edges = append(edges, [2]int{i - place*stride, i})
			}
		}
	}
	return n, edges
}

func square(side int, _ *rand.Rand) (int, [][2]int) { return lattice(false, side, side) }
func slab(side int, _ *rand.Rand) (int, [][2]int)   { return lattice(false, side, 4, 4) }
func torus(side int, _ *rand.Rand) (int, [][2]int)  { return lattice(true, side, side, side) }

func triangles(side int, _ *rand.Rand) (int, [][2]int) {
	n, edges := lattice(false, side, side)
	for row := range side - 1 {
		for column := range side - 1 {
			edges = append(edges, [2]int{row*side + column, (row+1)*side + column + 1})
		}
	}
	return n, edges
}

func allPairs(n int, _ *rand.Rand) (int, [][2]int) {
	var edges [][2]int
	for i := range n {
		for j := i + 1; j < n; j++ {
			edges = append(edges, [2]int{i, j})
		}
	}
	return n, edges
}

// halves joins each of the first half to each of the second.
func halves(half int, _ *rand.Rand) (int, [][2]int) {
	var edges [][2]int
	for i := range half {
		for j := range half {
			edges = append(edges, [2]int{i, half + j})
		}
	}
	return 2 * half, edges
}

// scaleFree joins every vertex after the first two to two earlier ones, drawn by their degree (Barabási and Albert, 1999).
func scaleFree(n int, r *rand.Rand) (int, [][2]int) {
	var edges [][2]int
	ends := []int{0, 1} // each vertex as often as it has edges; the first two once before they have any
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

// smallWorld rewires the far end of a fifth of the edges of a ring, of six vertices at least, with two neighbours a side (Watts and
// Strogatz, 1998).
func smallWorld(n int, r *rand.Rand) (int, [][2]int) {
	const side, rewired = 2, 0.2
	n = max(n, 2*side+2)
	key := func(i, j int) [2]int { return [2]int{min(i, j), max(i, j)} }
	taken, edges := map[[2]int]bool{}, make([][2]int, 0, side*n)
	for i := range n {
		for k := 1; k <= side; k++ {
			edges = append(edges, key(i, (i+k)%n))
			taken[edges[len(edges)-1]] = true
		}
	}
	for k, e := range edges {
		if r.Float64() >= rewired {
			continue
		}
		delete(taken, e)
		i := k / side
		for j := i; j == i || taken[e]; e = key(i, j) {
			j = r.IntN(n)
		}
		edges[k], taken[e] = e, true
	}
	return n, edges
}
