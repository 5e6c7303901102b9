package evaluate

// The random models of the experiments.

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
)

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
