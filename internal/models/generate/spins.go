package generate

// Models of spins ±1, value 0 being −1: P(x) ∝ exp(Σ J_ij x_i x_j + Σ h_i x_i).

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// weak is the largest field of models that have one to break ties.
const weak = 0.1

// pairs draws h of every spin, then J of every edge; a field of 0 is no factor.
func pairs(n int, edges [][2]int, h, j func() float64) *factorgraph.Model {
	b := room(slices.Repeat([]int{2}, n), n+len(edges), 2*n+4*len(edges), n+2*len(edges))
	for i := range n {
		b.field(i, h())
	}
	for _, e := range edges {
		b.couple(e[0], e[1], j())
	}
	return b.model()
}

// mixed has J ~ U(−Δ, Δ) on these edges and h ~ U(−0.1, 0.1).
func mixed(n int, edges [][2]int, delta float64, r *rand.Rand) *factorgraph.Model {
	return pairs(n, edges, between(r, weak), between(r, delta))
}

// always returns x.
func always(x float64) func() float64 { return func() float64 { return x } }

// between draws from U(−a, a).
func between(r *rand.Rand, a float64) func() float64 { return func() float64 { return uniform(r, a) } }

// normal draws from N(0, deviation²).
func normal(r *rand.Rand, deviation float64) func() float64 {
	return func() float64 { return deviation * r.NormFloat64() }
}

// sign draws ±x.
func sign(r *rand.Rand, x float64) func() float64 {
	return func() float64 { return x * float64(1-2*r.IntN(2)) }
}

// lattice returns the edges of a grid of any dimension, variable i having the coordinates of i in mixed radix, the last fastest.
// Periodic ones take sides of 3 at least: shorter ones would have an edge twice.
func lattice(periodic bool, sides ...int) (n int, edges [][2]int) {
	n = 1
	for _, s := range sides {
		n *= s
	}
	for i := range n {
		stride := n
		for _, s := range sides {
			stride /= s
			at := i / stride % s
			switch {
			case at+1 < s:
				edges = append(edges, [2]int{i, i + stride})
			case periodic && s > 2:
				edges = append(edges, [2]int{i - at*stride, i})
			}
		}
	}
	return n, edges
}

func ferromagnet(side int, j float64, seed uint64) (*factorgraph.Model, error) {
	n, edges := lattice(false, side, side)
	return pairs(n, edges, between(random(seed, "ferromagnet"), 0.02), always(j)), nil
}

func triangular(side int, delta float64, seed uint64) (*factorgraph.Model, error) {
	n, edges := lattice(false, side, side)
	for row := range side - 1 {
		for column := range side - 1 {
			edges = append(edges, [2]int{row*side + column, (row+1)*side + column + 1})
		}
	}
	return mixed(n, edges, delta, random(seed, "triangular")), nil
}

func sherrington(n int, beta float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "sherrington")
	return pairs(n, without(n, nil), always(0), func() float64 { return beta * r.NormFloat64() / math.Sqrt(float64(n)) }), nil
}

func rbm(half int, deviation float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "rbm")
	return pairs(2*half, halves(half, half), normal(r, 0.5), normal(r, deviation)), nil
}

// glass is a three-dimensional grid with J = ±Δ: 4×4×n open, or n×n×n periodic.
func glass(periodic bool) generator {
	return func(side int, coupling float64, seed uint64) (*factorgraph.Model, error) {
		sides := []int{side, 4, 4}
		if periodic {
			sides = []int{side, side, side}
		}
		n, edges := lattice(periodic, sides...)
		return pairs(n, edges, always(0), sign(random(seed, "glass"), coupling)), nil
	}
}

func randomField(side int, deviation float64, seed uint64) (*factorgraph.Model, error) {
	n, edges := lattice(false, side, side)
	return pairs(n, edges, normal(random(seed, "random field"), deviation), always(0.6)), nil
}

func inField(side int, field float64, seed uint64) (*factorgraph.Model, error) {
	n, edges := lattice(false, side, side)
	return pairs(n, edges, always(field), between(random(seed, "field"), 1)), nil
}

// scaleFree joins every vertex after the first two to two earlier ones, drawn by their degree (Barabási and Albert, 1999).
func scaleFree(n int, delta float64, seed uint64) (*factorgraph.Model, error) {
	if n < 3 {
		return nil, fmt.Errorf("%w: a scale-free graph of %d", ErrOptions, n)
	}
	r := random(seed, "scale-free")
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
	return mixed(n, edges, delta, r), nil
}

// smallWorld rewires the far end of a fifth of the edges of a ring with two neighbours a side (Watts and Strogatz, 1998).
func smallWorld(n int, delta float64, seed uint64) (*factorgraph.Model, error) {
	const side, rewired = 2, 0.2
	if n < 2*side+2 {
		return nil, fmt.Errorf("%w: a small world of %d", ErrOptions, n)
	}
	r := random(seed, "small world")
	taken := map[[2]int]bool{}
	key := func(i, j int) [2]int { return [2]int{min(i, j), max(i, j)} }
	for i := range n {
		for k := 1; k <= side; k++ {
			taken[key(i, (i+k)%n)] = true
		}
	}
	var edges [][2]int
	for i := range n {
		for k := 1; k <= side; k++ {
			e := key(i, (i+k)%n)
			if r.Float64() < rewired {
				delete(taken, e)
				for j := r.IntN(n); ; j = r.IntN(n) {
					if e = key(i, j); j != i && !taken[e] {
						break
					}
				}
				taken[e] = true
			}
			edges = append(edges, e)
		}
	}
	return mixed(n, edges, delta, r), nil
}
