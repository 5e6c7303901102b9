package families

// Models of spins ±1, value 0 being −1: P(x) ∝ exp(Σ J_ij x_i x_j + Σ h_i x_i).

import (
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// builder collects factors.
type builder struct {
	domains []int
	factors []factorgraph.Factor
}

// add appends a table over a scope, its last variable fastest.
func (b *builder) add(scope []int, entries ...float64) {
	shape := make([]int, len(scope))
	for k, v := range scope {
		shape[k] = b.domains[v]
	}
	b.factors = append(b.factors, factorgraph.Factor{Scope: scope, Table: &tensor.Dense{Shape: shape, Data: entries}})
}

func (b *builder) model() *factorgraph.Model {
	return &factorgraph.Model{Domains: b.domains, Factors: b.factors}
}

// field adds exp(h x_i), and nothing for 0.
func (b *builder) field(i int, h float64) {
	if h != 0 {
		b.add([]int{i}, math.Exp(-h), math.Exp(h))
	}
}

// couple adds exp(J x_i x_j).
func (b *builder) couple(i, j int, coupling float64) {
	same, other := math.Exp(coupling), math.Exp(-coupling)
	b.add([]int{i, j}, same, other, other, same)
}

func spins(n int) builder { return builder{domains: repeat(2, n)} }

func repeat(x, n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = x
	}
	return list
}

// uniform draws from −a to a.
func uniform(r *rand.Rand, a float64) float64 { return a * (2*r.Float64() - 1) }

// weak is the largest field of models that have one to break ties.
const weak = 0.1

// mixed has J ~ U(−Δ, Δ) on these edges and h ~ U(−0.1, 0.1).
func mixed(n int, edges [][2]int, delta float64, r *rand.Rand) *factorgraph.Model {
	b := spins(n)
	for i := range n {
		b.field(i, uniform(r, weak))
	}
	for _, e := range edges {
		b.couple(e[0], e[1], uniform(r, delta))
	}
	return b.model()
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
	r := random(seed, "ferromagnet")
	n, edges := lattice(false, side, side)
	b := spins(n)
	for i := range n {
		b.field(i, uniform(r, 0.02))
	}
	for _, e := range edges {
		b.couple(e[0], e[1], j)
	}
	return b.model(), nil
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
	b := spins(n)
	for i := range n {
		for j := i + 1; j < n; j++ {
			b.couple(i, j, beta*r.NormFloat64()/math.Sqrt(float64(n)))
		}
	}
	return b.model(), nil
}

func rbm(half int, deviation float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "rbm")
	b := spins(2 * half)
	for i := range 2 * half {
		b.field(i, r.NormFloat64()/2)
	}
	for i := range half {
		for j := range half {
			b.couple(i, half+j, deviation*r.NormFloat64())
		}
	}
	return b.model(), nil
}

// glass is a three-dimensional grid with J = ±Δ: 4×4×n open, or n×n×n periodic.
func glass(periodic bool) generator {
	return func(side int, coupling float64, seed uint64) (*factorgraph.Model, error) {
		r := random(seed, "glass")
		sides := []int{side, 4, 4}
		if periodic {
			sides = []int{side, side, side}
		}
		n, edges := lattice(periodic, sides...)
		b := spins(n)
		for _, e := range edges {
			b.couple(e[0], e[1], coupling*float64(1-2*r.IntN(2)))
		}
		return b.model(), nil
	}
}

func randomField(side int, deviation float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "random field")
	n, edges := lattice(false, side, side)
	b := spins(n)
	for i := range n {
		b.field(i, deviation*r.NormFloat64())
	}
	for _, e := range edges {
		b.couple(e[0], e[1], 0.6)
	}
	return b.model(), nil
}

func inField(side int, field float64, seed uint64) (*factorgraph.Model, error) {
	r := random(seed, "field")
	n, edges := lattice(false, side, side)
	b := spins(n)
	for i := range n {
		b.field(i, field)
	}
	for _, e := range edges {
		b.couple(e[0], e[1], uniform(r, 1))
	}
	return b.model(), nil
}

// scaleFree joins every vertex after the first two to two earlier ones, drawn by their degree (Barabási and Albert, 1999).
func scaleFree(n int, delta float64, seed uint64) (*factorgraph.Model, error) {
	if n < 3 {
		return nil, fault.New(fault.BadInput, "families: a scale-free graph of %d", n)
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
		return nil, fault.New(fault.BadInput, "families: a small world of %d", n)
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
