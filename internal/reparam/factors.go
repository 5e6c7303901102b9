package reparam

// Factors: those of order ≥ 2 get legs and maps, the others become weights.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/arena"
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/pace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// mapPair is a map with its inverse; the inverse of the identity is nil.
type mapPair struct {
	m       btn.Map
	inverse []float64
}

// factors makes a piece of every factor of order ≥ 2, and its legs.
func (b *builder) factors(ctx context.Context) error {
	p := pace.New(ctx)
	for j, f := range b.model.Factors {
		if p.Over(64) {
			return p.Err()
		}
		if !b.hasLegs(j) {
			continue
		}
		maps, inverses, err := b.mapsOf(j, f)
		if err != nil {
			return err
		}
		t, err := reparameterise(f.Table, inverses)
		if errors.Is(err, tensor.ErrUnsupportedMap) {
			t = f.Table
			for k := range maps {
				maps[k] = btn.Identity()
			}
		} else if err != nil {
			return fmt.Errorf("reparam: factor %d: %w", j, err)
		}
		legs := b.ints.Make(len(f.Scope))
		for k, i := range f.Scope {
			legs[k] = len(b.net.Dims)
			b.legs[i] = append(b.legs[i], legs[k])
			b.net.Dims = append(b.net.Dims, b.model.Domains[i])
			b.net.Maps = append(b.net.Maps, maps[k])
		}
		b.pieces = append(b.pieces, piece{legs: legs, t: t})
	}
	return nil
}

// reparameterise applies the inverse maps along every mode: T̄ = T ×_0 A_0⁻¹ ×_1 A_1⁻¹ … (Lemma 1).
func reparameterise(t tensor.Tensor, inverses [][]float64) (tensor.Tensor, error) {
	for _, a := range inverses {
		if a != nil {
			return tensor.ApplyModes(t, inverses)
		}
	}
	return t, nil
}

// mapsOf returns the maps of factor j's incidences with their inverses, until the next call.
func (b *builder) mapsOf(j int, f factorgraph.Factor) ([]btn.Map, [][]float64, error) {
	b.maps, b.inverses = b.maps[:0], b.inverses[:0]
	if len(f.Scope) == 1 {
		return append(b.maps, btn.Identity()), append(b.inverses, nil), nil
	}
	if b.gauge != nil {
		for _, p := range b.gauge.maps(j, isSymmetric(f.Table)) {
			b.maps, b.inverses = append(b.maps, p.m), append(b.inverses, p.inverse)
		}
		return b.maps, b.inverses, nil
	}
	for _, i := range f.Scope {
		p, err := b.mapOf(i, j)
		if err != nil {
			return nil, nil, fmt.Errorf("reparam: factor %d, variable %d: %w", j, i, err)
		}
		b.maps, b.inverses = append(b.maps, p.m), append(b.inverses, p.inverse)
	}
	return b.maps, b.inverses, nil
}

func isSymmetric(t tensor.Tensor) bool {
	switch t.(type) {
	case *tensor.Symmetric, *tensor.SymmetryCP:
		return true
	}
	return false
}

func (b *builder) mapOf(i, j int) (mapPair, error) {
	d := b.model.Domains[i]
	switch b.options.Maps {
	case btn.MapOrthogonal: // one pair per dimension, so that equal maps are the same slice
		if p, ok := b.shared[d]; ok {
			return p, nil
		}
		p, err := pair(btn.Orthogonal(d), d)
		if b.shared == nil {
			b.shared = map[int]mapPair{}
		}
		b.shared[d] = p
		return p, err
	case btn.MapGiven:
		if a := b.options.Given(i, j); a != nil {
			return pair(btn.Map{Kind: btn.MapGiven, A: a}, d)
		}
	}
	return mapPair{m: btn.Identity()}, nil
}

func pair(m btn.Map, d int) (mapPair, error) {
	inverse, err := m.Inverse(d)
	return mapPair{m: m, inverse: inverse}, err
}

// weights multiplies the factors of order one into w_i, and those of order zero into Scale.
func (b *builder) weights() ([][]float64, error) {
	numbers := make([][]scaled.Number, len(b.model.Domains))
	var slab arena.Slab[scaled.Number]
	for i, d := range b.model.Domains {
		numbers[i] = slab.Make(d)
		for x := range numbers[i] {
			numbers[i][x] = scaled.One
		}
	}
	signed := slices.ContainsFunc(b.model.Factors, func(f factorgraph.Factor) bool { return tensor.Signed(f.Table) })
	for j, f := range b.model.Factors {
		b.absorb(j, f, numbers, signed)
	}
	weights := make([][]float64, len(numbers))
	for i := range numbers {
		w, exp, err := btn.FitWeights(numbers[i])
		if err != nil {
			return nil, fmt.Errorf("reparam: variable %d: %w", i, err)
		}
		weights[i] = w
		b.net.Scale = b.net.Scale.Mul(scaled.Make(1, exp))
	}
	return weights, nil
}

// sums says whether entries of a factor of order one are sums or products of its numbers, which were rounded.
func sums(t tensor.Tensor) bool {
	switch t := t.(type) {
	case *tensor.CP:
		return t.Vectors[0] != nil
	case *tensor.SymmetryCP:
		return true
	}
	return false
}

// hasLegs says whether factor j is a tensor of the network.
func (b *builder) hasLegs(j int) bool {
	order := len(b.model.Factors[j].Scope)
	return order >= 2 || order == 1 && b.apart != nil && b.apart[j]
}

// absorb multiplies factor j into the weights of its variable, or into Scale. Where terms of both signs may cancel no weight is rounded.
func (b *builder) absorb(j int, f factorgraph.Factor, numbers [][]scaled.Number, signed bool) {
	switch len(f.Scope) {
	case 0:
		b.net.Scale = b.net.Scale.Mul(tensor.At(f.Table, nil))
	case 1:
		w, at := numbers[f.Scope[0]], []int{0}
		product, exact := make([]scaled.Number, len(w)), !sums(f.Table)
		for x := range w {
			at[0] = x
			factor := tensor.At(f.Table, at)
			product[x] = w[x].Mul(factor)
			exact = exact && math.FMA(w[x].Mant, factor.Mant, -float64(w[x].Mant*factor.Mant)) == 0
		}
		if _, _, err := btn.FitWeights(product); err == nil && (exact || !signed) {
			copy(w, product)
			return
		}
		if b.apart == nil {
			b.apart = make([]bool, len(b.model.Factors))
		}
		b.apart[j] = true
	}
}
