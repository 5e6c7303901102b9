package modeltest

// Models of any size whose ln Z mathematics gives, while no elimination reaches them.

import (
	"math/rand/v2"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// solvable are those families. Without fields a planar glass is a determinant, as dimers are (Kasteleyn, 1961; Kac and Ward, 1952).
var solvable = []Family{
	{Name: "planar-glass", About: "grids n×n, J ~ U(−Δ, Δ), no field", draw: spins("planar glass", square, with(0, constant), within)},
	{Name: "planar-strip", About: "grids 40×n, J ~ U(−Δ, Δ), no field", draw: spins("planar strip", strip(40), with(0, constant), within)},
	{Name: "field-strip", About: "grids 24×n, J ~ U(−Δ, Δ), h ~ U(−0.1, 0.1)",
		draw: spins("field strip", strip(24), with(weak, within), within)},
	{Name: "dimers-square", About: "coverings of grids n×n by dimers, ln weights U(−Δ, Δ)",
		draw: func(n int, delta float64, seed uint64) (*factorgraph.Model, error) {
			return dimersOn("dimers on a square", n, n, delta, seed)
		}},
	{Name: "parities", About: "0.97 n parities of three of n bits, e^−w where violated",
		draw: triples("parities", func(n int, seed uint64) [][]int { return randomTriples(n, 97*n/100, seed) }, with(0, constant), clause)},
	{Name: "rbm-narrow", About: "Boltzmann machines of 150 visible and n hidden units, weights N(0, σ²), fields N(0, ¼)",
		draw: spins("narrow rbm", visibleAndHidden, with(0.5, normal), normal)},
	{Name: "rank-two", About: "complete graphs of n spins, J = β/n (u u + v v), u and v ~ N(0, 1), h ~ U(−0.1, 0.1)", draw: rankTwo},
}

// strip is a grid of this width and of a length.
func strip(width int) graph {
	return func(length int, _ *rand.Rand) (int, [][2]int) { return lattice(false, length, width) }
}

// visibleAndHidden joins each of 150 units to each of the hidden ones, which come last.
func visibleAndHidden(hidden int, _ *rand.Rand) (int, [][2]int) {
	const visible = 150
	var edges [][2]int
	for i := range visible {
		for j := range hidden {
			edges = append(edges, [2]int{i, visible + j})
		}
	}
	return visible + hidden, edges
}

// Directions returns the vectors u and v that the model of rank-two of this size and seed is drawn with, for its truth.
func Directions(n int, seed uint64) (u, v []float64) {
	r := random(seed, "rank two")
	u, v = make([]float64, n), make([]float64, n)
	for i := range n {
		u[i], v[i] = r.NormFloat64(), r.NormFloat64()
	}
	return u, v
}

// rankTwo couples spins by two directions.
func rankTwo(n int, beta float64, seed uint64) (*factorgraph.Model, error) {
	u, v := Directions(n, seed)
	fields, b := random(seed, "rank two: fields"), variables(n, 2)
	for i := range n {
		b.field(i, uniform(fields, weak))
		for j := range i {
			b.couple(j, i, beta/float64(n)*(u[i]*u[j]+v[i]*v[j]))
		}
	}
	return &b.Model, nil
}
