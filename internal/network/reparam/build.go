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
	// of order ≥ 2, and only for maps "given" and "bp"; bp.Network makes the latter.
	Given func(factor int) []GivenMap
	// Parametric makes every factor a tensor of the network, also of order one and zero: its
	// numbers are then distinct from evidence and from each other.
	Parametric bool
}

// GivenMap is the map of one incidence with its inverse, both d×d, row-major, rows x and columns x̄
// of A. A nil: the identity; Inverse nil: it is computed.
type GivenMap struct{ A, Inverse []float64 }

// Build returns the base tensor network of m, with Z(network) = Z(m) for every choice of maps:
//
//	Z = Scale · Σ_x̄ Π_j T̄^(j)[x̄] Π_i V^(i)[x̄],   V^(i)[x̄] = Σ_x w_i(x) Π_{j∈N(i)} A^(i:j)[x, x̄_i:j]
//
// Legs are the incidences of factors of order ≥ 2, by factor and then by position in its scope.
// Factors of order one are multiplied into w_i, of order zero into Scale, in every form; one whose
// product with the others spans more than weights hold, or is rounded in a model with an entry below
// 0, gets a leg like the factors of order two, with the identity; all do where the options are
// Parametric. A variable in no factor of order ≥ 2 becomes a link without legs whose value is Σ_x
// w_i(x). Variables[i] points at the link that holds w_i.
//
// Cores "factors": B = ⊗_j T̄^(j), one core per factor in their order; link i is V^(i). Cores
// "variables": B = ⊗_i V^(i) with unit weights; each V^(i) has one more leg, after all incidences
// and in the order of the variables, which joins it to the order-one link w_i. The links are the
// factors and then the variables' weights.
//
// A factor whose form cannot take its maps (a large symmetric one under unequal maps, say) keeps its
// entries, and its legs have identity maps: Maps[ℓ].Kind says so.
//
// Rows of conditional probability tables are divided by their sums (Model.Normalised) first. Warnings of the network are of that, and
// of rows that are kept (Rounding.Warnings).
//
// Errors: from Model.Validate and Map.Inverse (btn.ErrIllConditioned for a singular map,
// btn.ErrMap), ErrOptions, btn.ErrRange; the context's. Cost: the application of a d×d
// matrix along every mode of every factor. Source: Hamid and Braun, Lemma 1.
func Build(ctx context.Context, m *factorgraph.Model, o Options) (*btn.Network, error) {
	if err := o.fill(); err != nil {
		return nil, err
	}
	if err := m.Validate(); err != nil {
		return nil, fmt.Errorf("reparam: %w", err)
	}

	m, rounding := m.Normalised()
	absorbed := m
	if o.Parametric {
		absorbed = &factorgraph.Model{Domains: m.Domains}
	}
	w, err := AbsorbUnary(absorbed)
	if err != nil {
		return nil, err
	}
	b := builder{model: m, options: o, apart: w.apart}
	b.net = &btn.Network{Scale: w.Scale, Choice: o.Cores, Variables: make([]btn.Variable, len(m.Domains))}
	b.room()
	if err := b.factors(ctx); err != nil {
		return nil, err
	}
	if o.Cores == query.CoresAreVariables {
		b.variablesAsCores(w.Of)
	} else {
		b.factorsAsCores(w.Of)
	}

	b.net.Directed = o.Cores == query.CoresAreFactors && b.net.Scale == scaled.One && m.Directed()
	b.net.Warnings = append(b.net.Warnings, rounding.Warnings(m)...)
	return b.net, nil
}

// fill replaces empty options by the defaults and refuses unknown ones.
func (o *Options) fill() error {
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

// piece is a reparameterised factor T̄^(j) on its legs.
type piece struct {
	legs []int
	t    tensor.Tensor
}

// builder is a network under construction.
type builder struct {
	model   *factorgraph.Model
	options Options
	net     *btn.Network
	legs    [][]int // per variable, its legs in the order of the factors
	pieces  []piece
	shared  map[int]mapPair // orthogonal maps by dimension
	// by factor: one of order one that does not fit the weights, and has a leg; nil for none
	apart []bool

	maps     []btn.Map // of the current factor
	inverses [][]float64
	ints     arena.Slab[int]
	vectors  arena.Slab[[]float64]
	none     [][]float64 // the identity on as many legs as a variable has at most
	links    arena.Slab[tensor.CP]
}

// room makes the lists of legs, maps and pieces as long as they will become.
func (b *builder) room() {
	degree, pieces, legs := make([]int, len(b.model.Domains)), 0, 0
	for j := range b.model.Factors {
		if scope := b.model.Factors[j].Scope; b.hasLegs(j) {
			pieces, legs = pieces+1, legs+len(scope)
			for _, i := range scope {
				degree[i]++
			}
		}
	}

	all := make([]int, legs)
	b.legs = make([][]int, len(degree))
	for i, d := range degree {
		if d > 0 {
			b.legs[i], all = all[:0:d], all[d:]
		}
	}

	b.pieces = make([]piece, 0, pieces)
	b.net.Dims = make([]int, 0, legs)
	if b.options.Maps != query.MapIdentity {
		b.net.Maps = make([]btn.Map, 0, legs)
	}
	b.none = make([][]float64, slices.Max(append(degree, 0))+1)
}

// factorsAsCores makes a core of every piece and a link of every variable.
func (b *builder) factorsAsCores(weights [][]float64) {
	b.net.Cores = make([]btn.Core, len(b.pieces))
	for c, p := range b.pieces {
		b.net.Cores[c] = btn.Core{Legs: p.legs, T: p.t}
	}
	b.net.Links = make([]btn.Link, len(weights))
	for i, w := range weights {
		b.net.Links[i] = btn.Link{Legs: b.legs[i], T: b.variableTensor(i, w, b.legs[i])}
		b.net.Variables[i] = btn.Variable{Domain: b.model.Domains[i], Link: i}
	}
}

// variablesAsCores makes a link of every piece and a core of every variable, with one more leg to a
// link of its weights.
func (b *builder) variablesAsCores(weights [][]float64) {
	b.net.Cores = []btn.Core{}
	b.net.Links = make([]btn.Link, 0, len(b.pieces)+len(weights))
	for _, p := range b.pieces {
		b.net.Links = append(b.net.Links, btn.Link{Legs: p.legs, T: p.t})
	}
	for i, w := range weights {
		d := b.model.Domains[i]
		var legs []int
		if len(b.legs[i]) > 0 {
			extra := len(b.net.Dims)
			b.leg(d, btn.Identity())
			all := append(append([]int(nil), b.legs[i]...), extra)
			b.net.Cores = append(b.net.Cores, btn.Core{Legs: all, T: b.variableTensor(i, ones(d), all)})
			legs = []int{extra}
		}
		b.net.Variables[i] = btn.Variable{Domain: d, Link: len(b.net.Links)}
		b.net.Links = append(b.net.Links, btn.Link{Legs: legs, T: b.variableTensor(i, w, legs)})
	}
}

// variableTensor returns Σ_x w(x) ⊗_ℓ A_ℓ[x, :] over the given legs.
func (b *builder) variableTensor(i int, w []float64, legs []int) *tensor.CP {
	cp := &b.links.Make(1)[0]
	cp.Shape, cp.Weights, cp.Vectors = b.ints.Make(len(legs)), w, b.none[:len(legs):len(legs)]
	for k := range legs {
		cp.Shape[k] = b.model.Domains[i]
	}
	if b.net.Maps != nil {
		cp.Vectors = b.vectors.Make(len(legs))
		for k, l := range legs {
			cp.Vectors[k] = b.net.Maps[l].A
		}
	}
	return cp
}

// leg adds a leg.
func (b *builder) leg(dim int, m btn.Map) {
	b.net.Dims = append(b.net.Dims, dim)
	if b.net.Maps != nil {
		b.net.Maps = append(b.net.Maps, m)
	}
}

// ones is the vector of d ones.
func ones(d int) []float64 { return slices.Repeat([]float64{1}, d) }
