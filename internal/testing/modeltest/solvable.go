package modeltest

// Models of any size whose ln Z mathematics gives, while no elimination reaches them.

import (
	"math/rand/v2"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// solvable lists the families of models of any size whose ln Z mathematics gives. Z of a planar glass without fields is a determinant,
// as is that of dimers (Kasteleyn, 1961; Kac and Ward, 1952).
var solvable = []Family{
	{Name: "planar-glass", About: "grids n×n, J ~ U(−Δ, Δ), no field",
		draw: spinModels("planar glass", square, withStrength(0, constantLaw), uniformLaw)},
	{Name: "planar-strip", About: "grids 40×n, J ~ U(−Δ, Δ), no field",
		draw: spinModels("planar strip", strip(40), withStrength(0, constantLaw), uniformLaw)},
	{Name: "field-strip", About: "grids 24×n, J ~ U(−Δ, Δ), h ~ U(−0.1, 0.1)",
		draw: spinModels("field strip", strip(24), withStrength(weakField, uniformLaw), uniformLaw)},
	{Name: "dimers-square", About: "coverings of grids n×n by dimers, ln weights U(−Δ, Δ)",
		draw: func(n int, delta float64, seed uint64) (*factorgraph.Model, error) {
			return dimersOn("dimers on a square", n, n, delta, seed)
		}},
	{Name: "parities", About: "0.97 n parities of three of n bits, e^−w where violated",
		draw: tripleModels("parities", almostAsManyTriples, withStrength(0, constantLaw), parityLaw)},
	{Name: "rbm-narrow", About: "Boltzmann machines of 150 visible and n hidden units, weights N(0, σ²), fields N(0, ¼)",
		draw: spinModels("narrow rbm", visibleAndHidden, withStrength(0.5, normalLaw), normalLaw)},
	{Name: "rank-two", About: "complete graphs of n spins, J = β/n (u u + v v), u and v ~ N(0, 1), h ~ U(−0.1, 0.1)", draw: rankTwo},
}

// almostAsManyTriples draws 0.97 n random triples of n variables.
func almostAsManyTriples(n int, seed uint64) [][]int { return randomTriples(n, 97*n/100, seed) }

// strip returns the graphs that are grids of this width; their size is the length.
func strip(width int) graph {
	return func(length int, _ *rand.Rand) (int, [][2]int) { return openLattice(length, width) }
}

// visibleAndHidden returns the complete bipartite graph of 150 visible units, which come first, and this number of hidden ones.
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

// Directions returns the vectors u and v, N(0, 1) in each entry, of the rank-two model of n spins with this seed. Its couplings are
// J_ij = β/n (u_i u_j + v_i v_j), from which its ln Z can be computed.
func Directions(n int, seed uint64) (u, v []float64) {
	r := newStream(seed, "rank two")
	u, v = make([]float64, n), make([]float64, n)
	for i := range n {
		u[i], v[i] = r.NormFloat64(), r.NormFloat64()
	}
	return u, v
}

// rankTwo returns n spins with the couplings J_ij = β/n (u_i u_j + v_i v_j), of rank two, and weak fields.
func rankTwo(n int, beta float64, seed uint64) (*factorgraph.Model, error) {
	u, v := Directions(n, seed)
	fields, b := newStream(seed, "rank two: fields"), newBuilder(n, 2)
	for i := range n {
		b.addField(i, uniform(fields, weakField))
		for j := range i {
			b.addCoupling(j, i, beta/float64(n)*(u[i]*u[j]+v[i]*v[j]))
		}
	}
	return &b.Model, nil
}
