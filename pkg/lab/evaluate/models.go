package evaluate

// The random models of the experiments.

import (
	"fmt"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/generate"
)

// family makes models of one kind. size means what its generator takes: rows, variables, or variables of a half.
type family struct {
	name string
	make func(size int, o generate.Ising) (*factorgraph.Model, error)
}

var (
	grids    = family{"grid", func(size int, o generate.Ising) (*factorgraph.Model, error) { return generate.Grid(size, size, o) }}
	complete = family{"complete", generate.Complete}
	regular  = family{"regular", func(size int, o generate.Ising) (*factorgraph.Model, error) {
		return generate.RandomRegular(size, 3, o)
	}}
	bipartite = family{"bipartite", func(size int, o generate.Ising) (*factorgraph.Model, error) { return generate.Bipartite(size, size, o) }}
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
	kind := ""
	if x.attractive {
		kind = " attractive"
	}
	return fmt.Sprintf("%s %d%s Δ=%g seed %d", x.family.name, x.size, kind, x.strength, x.seed)
}

func (x instance) build() (*factorgraph.Model, error) {
	return x.family.make(x.size, generate.Ising{Delta: x.strength, Attractive: x.attractive, Seed: x.seed})
}
