// Package reparam turns a factor graph into a base tensor network (Lemma 1): one leg with an
// invertible map per incidence, factors as reparameterised tensors, variables as tensors in CP form.
package reparam

// Build: the order of legs, the two choices of cores.

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/base/arena"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// ErrOptions says that the options name no known maps or cores.
var ErrOptions = errors.New("reparam: options")

// Options choose among the networks of one model. The zero value is identity maps with the factors
// as cores.
type Options struct {
	Maps  query.MapKind    // default identity
	Cores query.CoreChoice // default factors
	// Given returns the maps of a factor's incidences, along its scope. It is called once per factor
	// of order ≥ 2, and only for maps "given" and "bp"; bp.GaugedNetwork makes the latter.
	Given func(factor int) []GivenMap
	// Parametric makes every factor a tensor of the network, also of order one and zero: its
	// numbers are then distinct from evidence and from each other.
	Parametric bool
}

// GivenMap is the map A of one incidence with its inverse, both d×d and row-major. The rows of A are x, its columns x̄. If A is nil, the
// map is the identity. If only Inverse is nil, it is computed.
type GivenMap struct{ A, Inverse []float64 }

// Build returns the base tensor network of m, with Z(network) = Z(m) for every choice of maps:
//
//	Z = Scale · Σ_x̄ Π_j T̄^(j)[x̄] Π_i V^(i)[x̄],   V^(i)[x̄] = Σ_x w_i(x) Π_{j∈N(i)} A^(i:j)[x, x̄_i:j]
//
// Legs are the incidences of factors of order ≥ 2, by factor and then by position in its scope.
// Factors of order one, in any form, are multiplied into w_i, and those of order zero into Scale. A factor of order one gets a leg
// with the identity instead if its product with the other weights spans more than weights hold, or is rounded in a model with an
// entry below 0. With Options.Parametric every factor is a tensor of the network. A variable without legs becomes a link without legs
// whose value is Σ_x w_i(x). Variables[i] points at the link that holds w_i.
//
// Cores "factors": B = ⊗_j T̄^(j), one core per factor in their order; link i is V^(i). Cores
// "variables": B = ⊗_i V^(i) with unit weights; each V^(i) has one more leg, after all incidences
// and in the order of the variables, which joins it to the order-one link w_i. The links are the
// factors and then the variables' weights.
//
// A factor whose form cannot take its maps (a large symmetric one under unequal maps, say) keeps its
// entries, and its legs have identity maps: Maps[ℓ].Kind says so.
//
// Rows of conditional probability tables are divided by their sums first (Model.Normalised). The warnings of the network report that, and
// which rows are kept as they are (Rounding.Warnings).
//
// Errors: from Model.Validate and Map.Inverse (btn.ErrIllConditioned for a singular map,
// btn.ErrMap), ErrOptions, btn.ErrRange; the context's. Cost: the application of a d×d
// matrix along every mode of every factor. Source: Hamid and Braun, Lemma 1.
func Build(ctx context.Context, m *factorgraph.Model, o Options) (*btn.Network, error) {
	if err := o.setDefaults(); err != nil {
		return nil, err
	}
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("reparam: %w", err)
	}

	// Multiply factors of order one and zero into weights and the scale, unless each factor has to be a tensor.
	m, rounding := m.Normalised()
	absorbed := m
	if o.Parametric {
		absorbed = &factorgraph.Model{Domains: m.Domains} // no factor: nothing to multiply
	}
	unary, err := AbsorbUnary(absorbed)
	if err != nil {
		return nil, err
	}

	// Make the tensors of the other factors, then those of the variables.
	b := builder{model: m, options: o, isSeparate: unary.isSeparate}
	b.net = &btn.Network{Scale: unary.Scale, Choice: o.Cores, Variables: make([]btn.Variable, len(m.Domains))}
	b.allocate()
	if err := b.addFactors(ctx); err != nil {
		return nil, err
	}
	if o.Cores == query.CoresAreVariables {
		b.makeVariablesCores(unary.Weights)
	} else {
		b.makeFactorsCores(unary.Weights)
	}

	// The scale of a Bayesian network is 1, and its cores are the conditional probability tables.
	b.net.Directed = o.Cores == query.CoresAreFactors && b.net.Scale == scaled.One && m.Directed()
	b.net.Warnings = append(b.net.Warnings, rounding.Warnings(m)...)
	return b.net, nil
}

// setDefaults replaces empty options by the defaults. It returns ErrOptions for unknown ones, and if maps are to be given and are not.
func (o *Options) setDefaults() error {
	switch o.Maps {
	case "":
		o.Maps = query.MapIdentity
	case query.MapIdentity, query.MapOrthogonal:
	case query.MapGiven, query.MapBP:
		if o.Given == nil {
			return fmt.Errorf("%w: maps are %q, but none are given", ErrOptions, o.Maps)
		}
	default:
		return fmt.Errorf("%w: unknown maps %q (identity, orthogonal, bp, given)", ErrOptions, o.Maps)
	}

	switch o.Cores {
	case "":
		o.Cores = query.CoresAreFactors
	case query.CoresAreFactors, query.CoresAreVariables:
	default:
		return fmt.Errorf("%w: unknown cores %q (factors, variables)", ErrOptions, o.Cores)
	}

	return nil
}

// reparameterisedFactor is a reparameterised factor T̄^(j) on its legs.
type reparameterisedFactor struct {
	legs []int
	t    tensor.Tensor
}

// builder is a network under construction.
type builder struct {
	model          *factorgraph.Model
	options        Options
	net            *btn.Network
	legs           [][]int // per variable, its legs in the order of the factors
	factors        []reparameterisedFactor
	orthogonalMaps map[int]mapWithInverse // orthogonal maps by dimension
	// isSeparate is that of Unary.
	isSeparate []bool

	maps       []btn.Map   // of the current factor
	inverses   [][]float64 // of maps
	ints       arena.Slab[int]
	vectors    arena.Slab[[]float64]
	identities [][]float64 // nil vectors, which stand for the identity, as many as any variable has legs
	links      arena.Slab[tensor.CP]
}

// allocate makes the lists of legs, maps and factors with the capacity that they will need, and b.identities with one nil vector for each
// leg of the variable that has most. A factor that becomes weights or a number has no legs. Every other factor has a leg for every
// variable of its scope.
func (b *builder) allocate() {
	degree := make([]int, len(b.model.Domains)) // by variable: the number of its legs
	factorCount, legCount := 0, 0
	for j := range b.model.Factors {
		if !b.hasLegs(j) {
			continue
		}
		scope := b.model.Factors[j].Scope
		factorCount, legCount = factorCount+1, legCount+len(scope)
		for _, i := range scope {
			degree[i]++
		}
	}

	memory := make([]int, legCount)
	b.legs = make([][]int, len(degree))
	for i, d := range degree {
		if d > 0 {
			b.legs[i], memory = memory[:0:d], memory[d:]
		}
	}

	b.factors = make([]reparameterisedFactor, 0, factorCount)
	b.net.Dims = make([]int, 0, legCount)
	if b.options.Maps != query.MapIdentity {
		b.net.Maps = make([]btn.Map, 0, legCount)
	}
	b.identities = make([][]float64, slices.Max(append(degree, 0))+1) // 1 for the leg between the variable and its weights
}

// makeFactorsCores makes a core of every reparameterised factor, and of every variable a link, which joins its legs and has its weights.
// weights are by variable.
func (b *builder) makeFactorsCores(weights [][]float64) {
	b.net.Cores = make([]btn.Core, len(b.factors))
	for c, p := range b.factors {
		b.net.Cores[c] = btn.Core{Legs: p.legs, T: p.t}
	}
	b.net.Links = make([]btn.Link, len(weights))
	for i, w := range weights {
		b.net.Links[i] = btn.Link{Legs: b.legs[i], T: b.variableTensor(i, w, b.legs[i])}
		b.net.Variables[i] = btn.Variable{Domain: b.model.Domains[i], Link: i}
	}
}

// makeVariablesCores makes a link of every reparameterised factor and a core of every variable, a tensor with weights 1. A further leg
// joins the core to another link, which has the weights of the variable. A variable without legs has no core: it is only the link of its
// weights, without legs.
func (b *builder) makeVariablesCores(weights [][]float64) {
	b.net.Cores = []btn.Core{}
	b.net.Links = make([]btn.Link, 0, len(b.factors)+len(weights))
	for _, p := range b.factors {
		b.net.Links = append(b.net.Links, btn.Link{Legs: p.legs, T: p.t})
	}
	for i, w := range weights {
		d := b.model.Domains[i]
		var legs []int
		if len(b.legs[i]) > 0 {
			weightLeg := len(b.net.Dims)
			b.addLeg(d, btn.Identity())
			coreLegs := append(append([]int(nil), b.legs[i]...), weightLeg)
			b.net.Cores = append(b.net.Cores, btn.Core{Legs: coreLegs, T: b.variableTensor(i, ones(d), coreLegs)})
			legs = []int{weightLeg}
		}
		b.net.Variables[i] = btn.Variable{Domain: d, Link: len(b.net.Links)}
		b.net.Links = append(b.net.Links, btn.Link{Legs: legs, T: b.variableTensor(i, w, legs)})
	}
}

// variableTensor returns the tensor Σ_x w(x) ⊗_ℓ A_ℓ[x, :] of variable i over the legs ℓ with the maps A_ℓ, in CP form with one term per
// value x. The vectors of the terms on a leg are the rows of its map. A vector list that is nil stands for the identity, as does a map
// that is nil. The tensor shares memory with w and the maps.
func (b *builder) variableTensor(i int, w []float64, legs []int) *tensor.CP {
	cp := &b.links.Make(1)[0]
	cp.Shape, cp.Weights, cp.Vectors = b.ints.Make(len(legs)), w, b.identities[:len(legs):len(legs)]
	for k := range legs {
		cp.Shape[k] = b.model.Domains[i]
	}
	if b.net.Maps != nil {
		cp.Vectors = b.vectors.Make(len(legs))
		for k, leg := range legs {
			cp.Vectors[k] = b.net.Maps[leg].A
		}
	}
	return cp
}

// addLeg adds a leg of the given dimension with the map m to the network. A network without maps has the identity on all legs.
func (b *builder) addLeg(dim int, m btn.Map) {
	b.net.Dims = append(b.net.Dims, dim)
	if b.net.Maps != nil {
		b.net.Maps = append(b.net.Maps, m)
	}
}

// ones returns a vector of d ones.
func ones(d int) []float64 { return slices.Repeat([]float64{1}, d) }
