package modeltest

// The named families, from grids to parity codes: a model of each follows from a size, a strength and a seed.

import (
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// Family names a kind of models. Members listed by these sizes and strengths have exact answers within a second or so.
type Family struct {
	Name      string
	About     string // the models, with the meaning of size and strength
	Sizes     [3]int
	Strengths [3]float64
	draw      generator
}

// generator draws a model of a family from its size, its strength and a seed.
type generator func(size int, strength float64, seed uint64) (*factorgraph.Model, error)

// Families lists all families in the order in which tables of results show them: the soft ones, then those of Hard.
func Families() []Family { return slices.Concat(soft, Hard()) }

// Hard lists the families that are hard for estimates: with modes that few samples find, weights over many orders of magnitude, or hard
// constraints.
func Hard() []Family { return hard }

// unlisted are the families without members that have exact answers within a second.
var unlisted = []Family{
	{Name: "glass-3d-periodic", draw: spinModels("glass", torus, withStrength(0, constantLaw), randomSign)},
	{Name: "denoise", draw: denoise},
	{Name: "radio", draw: radio},
	{Name: "warehouses", draw: warehouses},
}

// Draw returns the model of the family of this name for a size, a strength and a seed. Beside those of Families, names are those of the
// families whose ln Z is known at every size (solvable), and of large ones without a known answer:
//
//   - glass-3d-periodic: side of the cube, coupling;
//   - denoise: side of the image, standard deviation of the noise;
//   - radio: number of links, interfering links of each;
//   - warehouses: number of shops, cost of opening a warehouse.
//
// It is an error if no family has the name, or if the family has no model of this size and strength.
func Draw(name string, size int, strength float64, seed uint64) (*factorgraph.Model, error) {
	for _, f := range slices.Concat(Families(), solvable, unlisted) {
		if f.Name == name {
			if size < 1 {
				return nil, fmt.Errorf("modeltest: %s of size %d", name, size)
			}
			return f.draw(size, strength, seed)
		}
	}
	return nil, fmt.Errorf("modeltest: no family %q", name)
}

// soft are sized so that the exact answer takes a second at most and yet does not fit into some hundred kilobytes.
var soft = []Family{
	{"grid-mixed", "grids n×n, J ~ U(−Δ, Δ), h ~ U(−0.1, 0.1)", [3]int{12, 14, 16}, [3]float64{0.5, 1, 2}, grid(false)},
	{"grid-attractive", "grids n×n, J ~ |U(−Δ, Δ)|, h ~ U(−0.1, 0.1)", [3]int{12, 14, 16}, [3]float64{0.5, 1, 2}, grid(true)},
	{"grid-frustrated", "periodic grids n×n, J = ±Δ, no field", [3]int{8, 9, 10}, [3]float64{0.7, 1, 1.5}, frustrated},
	{"ferromagnet", "grids n×n, J = Δ near criticality (0.4407), h ~ U(−0.02, 0.02)", [3]int{14, 16, 18}, [3]float64{0.42, 0.4407, 0.46},
		spinModels("ferromagnet", square, withStrength(0.02, uniformLaw), constantLaw)},
	{"triangular", "triangular grids n×n, J ~ U(−Δ, Δ), h ~ U(−0.1, 0.1)", [3]int{10, 12, 14}, [3]float64{0.5, 1, 2},
		spinModels("triangular", triangles, withStrength(weakField, uniformLaw), uniformLaw)},
	{"regular-3", "random 3-regular graphs of n spins, J ~ U(−Δ, Δ)", [3]int{100, 120, 140}, [3]float64{0.5, 1, 2}, regular(3)},
	{"regular-4", "random 4-regular graphs of n spins, J ~ U(−Δ, Δ)", [3]int{54, 60, 66}, [3]float64{0.5, 1, 2}, regular(4)},
	{"complete", "complete graphs of n spins, J ~ U(−Δ, Δ)", [3]int{17, 18, 20}, [3]float64{0.3, 0.6, 1},
		func(n int, delta float64, seed uint64) (*factorgraph.Model, error) {
			return generate.Complete(n, generate.Ising{Delta: delta, Seed: seed})
		}},
	{"sherrington-kirkpatrick", "complete graphs, J ~ N(0, β²/n), no field", [3]int{17, 18, 20}, [3]float64{0.7, 1, 2},
		spinModels("sherrington", allPairs, withStrength(0, constantLaw), sherringtonLaw)},
	{"rbm", "Boltzmann machines of n + n units, weights N(0, σ²), fields N(0, ¼)", [3]int{15, 16, 17}, [3]float64{0.3, 0.6, 1},
		spinModels("rbm", halves, withStrength(0.5, normalLaw), normalLaw)},
	{"potts", "three-state Potts grids n×n, couplings U(0, 2J)", [3]int{9, 10, 11}, [3]float64{0.7, 1.005, 1.5}, potts},
	{"soft-sat", "3-clauses over n variables, two per variable, e^−w where violated", [3]int{36, 40, 44}, [3]float64{1, 2, 4}, softSAT},
	{"arity-4", "random tables over four of n variables, two each, their ln U(−Δ, Δ)", [3]int{42, 46, 50}, [3]float64{0.5, 1, 2},
		func(n int, delta float64, seed uint64) (*factorgraph.Model, error) {
			return generate.Random(generate.RandomOptions{Variables: n, Arity: 4, MaxDomain: 2, Strength: delta, Seed: seed})
		}},
	{"qmr", "n diseases of prior p, as many positive findings as there are diseases, noisy-or of four each", [3]int{26, 28, 30},
		[3]float64{0.05, 0.1, 0.2}, qmr},
	{"glass-3d", "open grids 4×4×n, J = ±Δ, no field", [3]int{4, 5, 6}, [3]float64{0.4, 0.7, 1},
		spinModels("glass", slab, withStrength(0, constantLaw), randomSign)},
	{"ldpc", "parity codes of n bits, three checks of six each, behind a channel that flips with probability p", [3]int{36, 42, 48},
		[3]float64{0.03, 0.06, 0.1}, Parity},
	{"random-field", "grids n×n, J = 0.6, h ~ N(0, σ²)", [3]int{12, 14, 16}, [3]float64{0.3, 0.6, 1},
		spinModels("random field", square, normalLaw, withStrength(0.6, constantLaw))},
	{"scale-free", "graphs by preferential attachment of n spins, two edges each, J ~ U(−Δ, Δ)",
		[3]int{90, 110, 130}, [3]float64{0.5, 1, 2},
		spinModels("scale-free", scaleFree, withStrength(weakField, uniformLaw), uniformLaw)},
	{"small-world", "rings of n spins, two neighbours a side, a fifth of the edges rewired, J ~ U(−Δ, Δ)", [3]int{70, 80, 90},
		[3]float64{0.5, 1, 2}, spinModels("small world", smallWorld, withStrength(weakField, uniformLaw), uniformLaw)},
	{"bayesian-network", "n variables of two or three values, up to four parents close before, rows Dirichlet(a), a fifth observed",
		[3]int{56, 64, 72}, [3]float64{1, 0.5, 0.2}, bayesian},
	{"dbn", "ten steps of n binary chains, each with itself and two neighbours as parents, rows Beta(a, a), a third observed",
		[3]int{14, 16, 18}, [3]float64{1, 0.5, 0.2}, dynamic},
	{"colouring", "random graphs of n vertices and c·n edges, three colours", [3]int{42, 46, 50}, [3]float64{1.7, 1.9, 2.1}, colouring},
	{"hard-core", "independent sets of 3-regular graphs of n vertices, fugacity λ", [3]int{80, 90, 100}, [3]float64{1, 4, 10}, hardCore},
	{"ising-field", "grids n×n, J ~ U(−1, 1), h = H everywhere", [3]int{12, 14, 16}, [3]float64{0.1, 0.3, 1},
		spinModels("field", square, constantLaw, withStrength(1, uniformLaw))},
}

var hard = []Family{
	{"hidden", "two modes on 3-regular graphs of n spins, J ~ U(−0.3, 0.3): a switch ties all to one state, e^δ times the rest",
		[3]int{50, 70, 90}, [3]float64{0.5, 1, 2}, hidden("hidden", 6, regularEdges)},
	{"hidden-dense", "the same on complete graphs, J ~ N(0, 0.49/n)", [3]int{18, 19, 20}, [3]float64{0.5, 1, 2},
		hidden("hidden dense", 10, denseEdges)},
	{"hidden-three", "grids n×n with a switch of three values: wide, narrow in a half of the spins, narrow", [3]int{8, 10, 12},
		[3]float64{0.5, 1, 2}, hiddenThree},
	{"hidden-pair", "3-regular graphs of n spins with a switch for either half, four modes", [3]int{50, 70, 90}, [3]float64{0.5, 1, 2},
		hiddenPair},
	{"needle", "3-regular graphs of n spins, J ~ U(−0.4, 0.4), and one state that weighs e^δ times all others", [3]int{26, 30, 34},
		[3]float64{-1, 0, 1}, needle},
	{"spike-slab", "which of n features count in a regression, coefficients ±s", [3]int{18, 19, 20}, [3]float64{0.5, 1, 2}, spikeSlab},
	{"number-partitioning", "e^−β(Σ a x)², n spins, a ~ U(0, 1)", [3]int{18, 19, 20}, [3]float64{0.5, 3, 20}, numberPartitioning},
	{"blume-capel", "grids 9×n of spins −1, 0, 1, coupling J, near the transition between order and zeros", [3]int{9, 10, 11},
		[3]float64{1.2, 1.5, 1.8}, blumeCapel},
	{"dimers", "coverings of grids 14×n by dimers, ln weights U(−Δ, Δ)", [3]int{10, 12, 14}, [3]float64{0.1, 1, 2}, dimers},
	{"ice", "six-vertex models on tori 6×n, turning arrows weigh e^c, weak fields", [3]int{4, 5, 6}, [3]float64{0, 0.5, 1}, ice},
	{"permanent", "n variables of n values that all differ, ln weights U(−Δ, Δ)", [3]int{8, 10, 12}, [3]float64{0.5, 1, 3},
		latin("permanent", oneRow)},
	{"latin-squares", "Latin squares of order n, ln weights of cells U(−Δ, Δ)", [3]int{4, 5, 6}, [3]float64{0.1, 0.5, 1},
		latin("latin", allRows)},
	{"triples-sparse", "1.5 n triples of n spins, J ~ U(−Δ, Δ), h ~ U(−0.1, 0.1)", [3]int{38, 40, 42}, [3]float64{0.7, 1.5, 3},
		tripleModels("sparse triples", someTriples, withStrength(weakField, uniformLaw), uniformLaw)},
	{"triples-dense", "all triples of n spins, J ~ N(0, 3β²/n²)", [3]int{15, 16, 17}, [3]float64{0.7, 1, 2},
		tripleModels("dense triples", allTriples, withStrength(0, constantLaw), threeSpinLaw)},
	{"hopfield", "n spins that remember three patterns, inverse temperature β", [3]int{18, 19, 20}, [3]float64{1, 2, 4}, hopfield},
	{"rbm-strong", "Boltzmann machines of n + n units, weights N(0, σ²), fields N(0, ¼)", [3]int{13, 14, 15}, [3]float64{1.5, 2, 3},
		spinModels("rbm", halves, withStrength(0.5, normalLaw), normalLaw)},
	{"independent-sets", "independent sets of grids n×n, fugacity λ, ordered from 3.8 on", [3]int{14, 15, 16}, [3]float64{2, 4, 8},
		independent},
	{"xor-soft", "1.5 n parities of three of n bits, e^−w where violated", [3]int{38, 40, 42}, [3]float64{1, 2, 4},
		tripleModels("soft parity", someTriples, withStrength(0, constantLaw), parityLaw)},
	{"xor-hard", "s·n parities of three of n bits, of a planted state", [3]int{60, 70, 80}, [3]float64{0.6, 0.75, 0.9}, hardParity},
	{"communities", "two groups of n vertices, edges e^s times as likely within one", [3]int{18, 19, 20}, [3]float64{0.5, 1, 2},
		communities},
	{"noisy-gates", "circuits of n wires, gates flipped with probability ε, a fifth observed", [3]int{44, 50, 56},
		[3]float64{0.01, 0.05, 0.15}, noisyGates},
	{"ferromagnet-strong", "3-regular graphs of n spins, J everywhere, h = 0.002", [3]int{60, 80, 100}, [3]float64{1, 2, 3},
		strongFerromagnet},
	{"potts-strong", "three-state Potts models on 3-regular graphs of n vertices, coupling J", [3]int{40, 50, 60}, [3]float64{2, 3, 4},
		strongPotts},
	{"curie-weiss", "complete graphs of n spins, J = β/n, h ~ U(−0.02, 0.02)", [3]int{18, 19, 20}, [3]float64{1.2, 2, 4}, curieWeiss},
	{"solid-on-solid", "interfaces of five heights over grids 6×n, e^−β|difference|, pinned at random",
		[3]int{6, 8, 10}, [3]float64{0.5, 1, 2},
		solidOnSolid},
}

// frustrated returns the Edwards–Anderson spin glass with couplings ±J on a periodic grid of n × n spins.
func frustrated(n int, j float64, seed uint64) (*factorgraph.Model, error) {
	return Frustrated(n, n, j, seed), nil
}

// grid returns a generator of Ising models on grids of n × n spins, with couplings U(−Δ, Δ), or |U(−Δ, Δ)| if attractive.
func grid(attractive bool) generator {
	return func(n int, delta float64, seed uint64) (*factorgraph.Model, error) {
		return generate.Grid(n, n, generate.Ising{Delta: delta, Attractive: attractive, Seed: seed})
	}
}

// regular returns a generator of Ising models on random graphs of n spins with this degree, with couplings U(−Δ, Δ).
func regular(degree int) generator {
	return func(n int, delta float64, seed uint64) (*factorgraph.Model, error) {
		return generate.RandomRegular(n, degree, generate.Ising{Delta: delta, Seed: seed})
	}
}
