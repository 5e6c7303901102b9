package reparam

// Factors with legs: their maps, and their reparameterised tensors.

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// mapPair is a map with its inverse; the inverse of the identity is nil.
type mapPair struct {
	m       btn.Map
	inverse []float64
}

// addFactors makes a piece and legs of every factor that has legs (hasLegs). A factor whose form cannot take its maps gets identity maps.
func (b *builder) addFactors(ctx context.Context) error {
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

		t, exp, err := reparameterise(f.Table, inverses)
		if errors.Is(err, tensor.ErrUnsupportedMap) {
			t = f.Table
			for k := range maps {
				maps[k] = btn.Identity()
			}
		} else if err != nil {
			return fmt.Errorf("reparam: factor %d: %w", j, err)
		}

		b.net.Scale = b.net.Scale.Mul(scaled.Make(1, exp))
		legs := b.ints.Make(len(f.Scope))
		for k, i := range f.Scope {
			legs[k] = len(b.net.Dims)
			b.legs[i] = append(b.legs[i], legs[k])
			b.addLeg(b.model.Domains[i], maps[k])
		}

		b.pieces = append(b.pieces, piece{legs: legs, t: t})
	}

	return nil
}

// reparameterise applies the inverse maps along every mode, T̄ = T ×_0 A_0⁻¹ ×_1 A_1⁻¹ … (Lemma 1), and returns mapped = T̄ · 2^−exp. A nil
// inverse is the identity. It returns t itself if all are.
func reparameterise(t tensor.Tensor, inverses [][]float64) (mapped tensor.Tensor, exp int64, err error) {
	for _, a := range inverses {
		if a != nil {
			t, exp = centre(t)
			mapped, err = tensor.ApplyModes(t, inverses)
			return mapped, exp, err
		}
	}
	return t, 0, nil
}

// safeExp bounds the exponents of safe numbers: numbers between 2^−safeExp and 2^safeExp keep all their digits in products with maps.
const safeExp = 900

// centre returns t · 2^−exp with its largest numbers near 2^safeExp, if one is so large or so small that products with maps
// may overflow or lose digits: sums of subnormal products are wrong by more than rounding. Other tensors stay as they are.
// It may lose entries of a dense table and terms below 2^−1900 of the largest, and entries of a term's vector below 2^−1022
// of the vector's largest.
func centre(t tensor.Tensor) (centred tensor.Tensor, exp int64) {
	switch t := t.(type) {
	case *tensor.Dense:
		if areSafe(t.Data) {
			return t, 0
		}
		data, exp := shift(t.Data, safeExp)
		return &tensor.Dense{Shape: t.Shape, Data: data}, exp
	case *tensor.CP:
		if !slices.ContainsFunc(t.Vectors, func(v []float64) bool { return !areSafe(v) }) {
			return t, 0
		}
		return centreTerms(t)
	}
	return t, 0
}

// centreTerms returns t · 2^−exp. It scales every vector of every term so that its largest entry is near 1, and multiplies the weight of
// the term by the inverse factor. exp brings the largest weight near 2^safeExp.
func centreTerms(t *tensor.CP) (centred tensor.Tensor, exp int64) {
	weights := make([]scaled.Number, len(t.Weights))
	for i, w := range t.Weights {
		weights[i] = scaled.FromFloat(w)
	}
	out := &tensor.CP{Shape: t.Shape, Weights: make([]float64, len(weights)), Vectors: make([][]float64, len(t.Vectors))}
	for mode, d := range t.Shape {
		if t.Vectors[mode] == nil {
			continue
		}
		for i := range weights {
			v, vectorExp := shift(t.Vectors[mode][i*d:(i+1)*d], 0)
			weights[i] = weights[i].Mul(scaled.Make(1, vectorExp))
			out.Vectors[mode] = append(out.Vectors[mode], v...)
		}
	}
	exp = math.MinInt64
	for _, w := range weights {
		if !w.IsZero() {
			exp = max(exp, w.Exp-safeExp)
		}
	}
	if exp == math.MinInt64 {
		return t, 0
	}
	for i, w := range weights {
		out.Weights[i] = w.Mul(scaled.Make(1, -exp)).Float64()
	}
	return out, exp
}

// areSafe reports whether all numbers but zeros are between 2^−safeExp and 2^safeExp in size.
func areSafe(list []float64) bool {
	return !slices.ContainsFunc(list, func(x float64) bool {
		x = math.Abs(x)
		return x != 0 && !(x >= 0x1p-900 && x <= 0x1p900)
	})
}

// shift returns list · 2^−exp, in which the largest number is between 2^(top−1) and 2^top. It returns the list itself if all numbers are 0.
func shift(list []float64, top int) (out []float64, exp int64) {
	largest := 0.0
	for _, x := range list {
		largest = max(largest, math.Abs(x))
	}
	if largest == 0 {
		return list, 0
	}
	_, e := math.Frexp(largest)
	out = make([]float64, len(list))
	for i, x := range list {
		out[i] = math.Ldexp(x, top-e)
	}
	return out, int64(e - top)
}

// mapsOf returns the maps of the incidences of factor j, and their inverses. Both lists are valid until the next call.
func (b *builder) mapsOf(j int, f factorgraph.Factor) (maps []btn.Map, inverses [][]float64, err error) {
	b.maps, b.inverses = b.maps[:0], b.inverses[:0]
	if len(f.Scope) == 1 {
		return append(b.maps, btn.Identity()), append(b.inverses, nil), nil
	}
	var given []GivenMap
	if b.options.Given != nil {
		given = b.options.Given(j)
	}
	for k, i := range f.Scope {
		var givenMap GivenMap
		if k < len(given) {
			givenMap = given[k]
		}
		p, err := b.mapOf(b.model.Domains[i], givenMap)
		if err != nil {
			return nil, nil, fmt.Errorf("reparam: factor %d, variable %d: %w", j, i, err)
		}
		b.maps, b.inverses = append(b.maps, p.m), append(b.inverses, p.inverse)
	}

	return b.maps, b.inverses, nil
}

// mapOf returns the map of an incidence of dimension d, of the kind that the options ask for. For the kinds "given" and "bp" that is given,
// or the identity if given is empty.
func (b *builder) mapOf(d int, given GivenMap) (mapPair, error) {
	switch b.options.Maps {
	case query.MapOrthogonal: // one pair per dimension, so that equal maps are the same slice
		if p, ok := b.shared[d]; ok {
			return p, nil
		}
		p, err := withInverse(btn.Orthogonal(d), d)
		if b.shared == nil {
			b.shared = map[int]mapPair{}
		}
		b.shared[d] = p
		return p, err
	case query.MapGiven, query.MapBP:
		m := btn.Map{Kind: b.options.Maps, A: given.A}
		switch {
		case given.A != nil && given.Inverse != nil:
			return mapPair{m: m, inverse: given.Inverse}, nil
		case given.A != nil:
			return withInverse(m, d)
		}
	}

	return mapPair{m: btn.Identity()}, nil
}

// withInverse returns a map of dimension d with its inverse. The error is that of btn.Map.Inverse.
func withInverse(m btn.Map, d int) (mapPair, error) {
	inverse, err := m.Inverse(d)
	return mapPair{m: m, inverse: inverse}, err
}

// hasLegs reports whether factor j is a tensor of the network, in contrast to one that becomes weights or a number.
func (b *builder) hasLegs(j int) bool {
	order := len(b.model.Factors[j].Scope)
	return b.options.Parametric || order >= 2 || order == 1 && b.isSeparate != nil && b.isSeparate[j]
}
