package evaluate

// The random models of the experiments: families, at sizes and strengths.

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// family makes models of one kind. size is the argument of its generator: rows, variables, or variables of a half.
type family struct {
	name string
	make func(size int, o generate.Ising) (*factorgraph.Model, error)
}

var (
	grids = family{"grid", func(size int, o generate.Ising) (*factorgraph.Model, error) {
		return generate.Grid(size, size, o)
	}}
	complete = family{"complete", generate.Complete}
	regular  = family{"regular", func(size int, o generate.Ising) (*factorgraph.Model, error) {
		return generate.RandomRegular(size, 3, o)
	}}
	bipartite = family{"bipartite", func(size int, o generate.Ising) (*factorgraph.Model, error) {
		return generate.Bipartite(size, size, o)
	}}
	narrow = family{"grid 20×14", func(_ int, o generate.Ising) (*factorgraph.Model, error) {
		return generate.Grid(20, 14, o)
	}}
	weiss = family{"Curie–Weiss", func(size int, o generate.Ising) (*factorgraph.Model, error) {
		return modeltest.CurieWeiss(size, o.Delta, 1, o.Seed), nil
	}}
	// random has factors of three variables, two per variable, over domains of 2 to 5.
	random = family{"random", func(size int, o generate.Ising) (*factorgraph.Model, error) {
		return generate.Random(generate.RandomOptions{Variables: size, Strength: o.Delta, Seed: o.Seed})
	}}

	// Of constraints: Δ is the noise of a parity code's channel, the edges per vertex of a graph that takes three colours, the share of a
	// table that is forbidden, and the coupling ±J of a periodic grid.
	parities = family{"parity", func(size int, o generate.Ising) (*factorgraph.Model, error) {
		return modeltest.Parity(size, o.Delta, o.Seed)
	}}
	colourings = family{"colouring", func(size int, o generate.Ising) (*factorgraph.Model, error) {
		return modeltest.Colouring(size, int(o.Delta*float64(size)), 3, o.Seed), nil
	}}
	satisfactions = family{"constraints", func(size int, o generate.Ising) (*factorgraph.Model, error) {
		return generate.Constraints(generate.ConstraintOptions{
			Variables: size, Constraints: 3 * size / 2, Forbidden: o.Delta, Strength: 1, Seed: o.Seed,
		})
	}}
	frustrated = family{"frustrated", func(size int, o generate.Ising) (*factorgraph.Model, error) {
		return modeltest.Frustrated(size, size, o.Delta, o.Seed), nil
	}}
)

// sweep is a family at all sizes and strengths of an experiment. A short run has its own, and leaves out families without strengths.
type sweep struct {
	family           family
	size, shortSize  sizes
	strengths, short []float64
	signs            signs
}

// sizes gives the size of the model of a seed.
type sizes func(seed int) int

func fixed(n int) sizes           { return func(int) int { return n } }
func spread(low, high int) sizes  { return func(seed int) int { return low + seed*7%(high-low+1) } }
func stepped(low, step int) sizes { return func(seed int) int { return low + seed%3*step } }

// even makes the next even size of an odd one.
func even(s sizes) sizes { return func(seed int) int { return s(seed) + s(seed)%2 } }

// signs says of which seeds couplings are attractive.
type signs int

const (
	mixed signs = iota
	attractive
	inTurn // of odd ones
)

// The models of the experiments.
var (
	deltas, shortDeltas = []float64{0.1, 0.25, 0.5, 0.75, 1, 1.5, 2, 3}, []float64{0.5, 2}
	strengthModels      = []sweep{
		{grids, fixed(15), fixed(6), deltas, shortDeltas, mixed},
		{complete, fixed(15), fixed(10), deltas, shortDeltas, mixed},
		{regular, fixed(100), fixed(24), deltas, shortDeltas, mixed},
		{random, fixed(30), fixed(14), deltas, shortDeltas, mixed},
		{grids, fixed(15), fixed(6), deltas, shortDeltas, attractive},
	}

	strengthOne     = []float64{1}
	componentModels = []sweep{
		{complete, fixed(5), fixed(5), strengthOne, strengthOne, mixed},
		{grids, fixed(3), fixed(3), strengthOne, strengthOne, mixed},
		{grids, fixed(4), nil, strengthOne, nil, mixed},
		{grids, fixed(4), nil, strengthOne, nil, attractive},
		{weiss, fixed(8), nil, []float64{0.1}, nil, mixed},
	}

	sixDeltas         = []float64{0.2, 0.5, 1, 1.5, 2, 3}
	calibrationModels = []sweep{
		{grids, spread(14, 18), spread(9, 12), sixDeltas, shortDeltas, inTurn},
		{regular, even(spread(90, 130)), even(spread(60, 86)), sixDeltas, shortDeltas, inTurn},
		{complete, spread(18, 21), spread(12, 14), sixDeltas, shortDeltas, inTurn},
		{bipartite, spread(14, 16), spread(9, 10), sixDeltas, shortDeltas, inTurn},
		{random, spread(40, 64), spread(26, 42), sixDeltas, shortDeltas, mixed},
	}
	sparseModels = []sweep{calibrationModels[0], calibrationModels[1], calibrationModels[4]}
	denseModels  = calibrationModels[2:4]

	codeModels       = []sweep{{parities, stepped(36, 6), stepped(18, 6), []float64{0.03, 0.08}, []float64{0.03}, mixed}}
	constraintModels = []sweep{
		{colourings, stepped(30, 4), stepped(12, 4), []float64{1.8, 2.1}, []float64{1.8}, mixed},
		{satisfactions, stepped(30, 4), stepped(12, 4), []float64{0.13, 0.3}, []float64{0.13}, mixed},
		{frustrated, stepped(8, 1), stepped(4, 1), []float64{0.7, 1.5}, []float64{0.7}, mixed},
	}
	attractiveModels = []sweep{{grids, stepped(10, 2), stepped(4, 2), []float64{0.5, 1, 2}, []float64{0.5}, attractive}}
)

// drawnFrom lists the models of sweeps, one setting after the other.
func drawnFrom(sweeps []sweep, o Options) (list []instance) {
	for _, s := range sweeps {
		if o.Short {
			s.size, s.strengths = s.shortSize, s.short
		}
		for _, strength := range s.strengths {
			for seed := range o.seeds(usualSeeds, shortSeeds) {
				list = append(list, instance{
					family: s.family, size: s.size(seed), strength: strength, seed: uint64(seed),
					attractive: s.signs == attractive || s.signs == inTurn && seed%2 == 1,
				})
			}
		}
	}
	return list
}

// instance is one model before it is made.
type instance struct {
	family     family
	size       int
	strength   float64
	attractive bool
	seed       uint64
}

func (x instance) String() string {
	size, kind := "", ""
	if x.size > 0 {
		size = fmt.Sprint(" ", x.size)
	}
	if x.attractive {
		kind = " attractive"
	}
	return fmt.Sprintf("%s%s%s Δ=%g seed %d", x.family.name, size, kind, x.strength, x.seed)
}

// row starts a row with the instance's fields.
func (x instance) row(variables int) Row {
	return Row{
		Family:     x.family.name,
		Attractive: x.attractive,
		Variables:  variables,
		Strength:   x.strength,
		Seed:       x.seed,
		Step:       math.NaN(),
	}
}

func (x instance) build() (*factorgraph.Model, error) {
	return x.family.make(x.size, generate.Ising{Delta: x.strength, Attractive: x.attractive, Seed: x.seed})
}
