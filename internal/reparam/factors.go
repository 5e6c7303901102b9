package reparam

// Factors: those of order ≥ 2 get legs and maps, the others become weights.

import (
	"context"
	"errors"
	"fmt"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/pace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
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
	var given []GivenMap
	if b.options.Given != nil {
		given = b.options.Given(j)
	}
	for k, i := range f.Scope {
		var own GivenMap
		if k < len(given) {
			own = given[k]
		}
		p, err := b.mapOf(b.model.Domains[i], own)
		if err != nil {
			return nil, nil, fmt.Errorf("reparam: factor %d, variable %d: %w", j, i, err)
		}
		b.maps, b.inverses = append(b.maps, p.m), append(b.inverses, p.inverse)
	}

	return b.maps, b.inverses, nil
}

// mapOf returns the map of an incidence of dimension d; given is that of maps "given" and "bp".
func (b *builder) mapOf(d int, given GivenMap) (mapPair, error) {
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
	case btn.MapGiven, btn.MapBP:
		m := btn.Map{Kind: b.options.Maps, A: given.A}
		switch {
		case given.A != nil && given.Inverse != nil:
			return mapPair{m: m, inverse: given.Inverse}, nil
		case given.A != nil:
			return pair(m, d)
		}
	}

	return mapPair{m: btn.Identity()}, nil
}

func pair(m btn.Map, d int) (mapPair, error) {
	inverse, err := m.Inverse(d)
	return mapPair{m: m, inverse: inverse}, err
}

// hasLegs says whether factor j is a tensor of the network.
func (b *builder) hasLegs(j int) bool {
	order := len(b.model.Factors[j].Scope)
	return b.options.Parametric || order >= 2 || order == 1 && b.apart != nil && b.apart[j]
}
