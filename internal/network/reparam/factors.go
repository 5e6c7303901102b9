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

// mapWithInverse is a map with its inverse; the inverse of the identity is nil.
type mapWithInverse struct {
	m       btn.Map
	inverse []float64
}

// addFactors applies the maps to every factor that is a tensor of the network (hasLegs), and adds the result and a leg for each variable of
// its scope. A factor whose form cannot take its maps gets identity maps.
func (b *builder) addFactors(ctx context.Context) error {
	p := pace.New(ctx)
	for j, f := range b.model.Factors {
		if p.Over(64) { // operations for a factor, roughly
			return p.Err()
		}
		if !b.hasLegs(j) {
			continue
		}
		maps, inverses, err := b.mapsOf(j, f)
		if err != nil {
			return err
		}

		// The tensor is t · 2^exp.
		t, exp, err := reparameterise(f.Table, inverses)
		if errors.Is(err, tensor.ErrUnsupportedMap) { // f.Table is symmetric, so exp is 0: it was not moved into a safe range
			t = f.Table
			for k := range maps {
				maps[k] = btn.Identity()
			}
		} else if err != nil {
			return fmt.Errorf("reparam: factor %d: %w", j, err)
		}

		// Add it with its legs, and the power of two to the scale.
		b.net.Scale = b.net.Scale.Mul(scaled.Make(1, exp))
		legs := b.ints.Make(len(f.Scope))
		for k, i := range f.Scope {
			legs[k] = len(b.net.Dims)
			b.legs[i] = append(b.legs[i], legs[k])
			b.addLeg(b.model.Domains[i], maps[k])
		}

		b.factors = append(b.factors, reparameterisedFactor{legs: legs, t: t})
	}

	return nil
}

// reparameterise applies the inverse maps along every mode of a tensor, T̄ = T ×_0 A_0⁻¹ ×_1 A_1⁻¹ … (Lemma 1), and returns mapped = T̄ ·
// 2^−exp. A nil inverse is the identity. It returns t itself if all are.
func reparameterise(t tensor.Tensor, inverses [][]float64) (mapped tensor.Tensor, exp int64, err error) {
	areAllIdentities := !slices.ContainsFunc(inverses, func(inverse []float64) bool { return inverse != nil })
	if areAllIdentities {
		return t, 0, nil
	}
	t, exp = moveIntoSafeRange(t) // now no product with the maps overflows
	mapped, err = tensor.ApplyModes(t, inverses)
	return mapped, exp, err
}

// safeExp bounds the binary exponents of safe numbers: numbers between 2^−safeExp and 2^safeExp keep all their digits in products with
// maps.
const safeExp = 900

// moveIntoSafeRange returns moved = t · 2^−exp. If a number of t is so large or so small that products with maps may overflow or lose
// digits, exp brings the largest numbers near 2^safeExp. Otherwise, and for tensors that are not dense or in CP form, moved is t. Entries
// of a dense table and terms below 2^−1900 of the largest may be lost, and entries of a term's vector below 2^−1022 of the vector's
// largest.
func moveIntoSafeRange(t tensor.Tensor) (moved tensor.Tensor, exp int64) {
	switch t := t.(type) {
	case *tensor.Dense:
		if areSafe(t.Data) {
			return t, 0
		}
		data, exp := shiftExponents(t.Data, safeExp)
		return &tensor.Dense{Shape: t.Shape, Data: data}, exp
	case *tensor.CP:
		hasUnsafe := slices.ContainsFunc(t.Vectors, func(vectors []float64) bool { return !areSafe(vectors) })
		if !hasUnsafe {
			return t, 0
		}
		return moveTermsIntoSafeRange(t)
	}
	return t, 0
}

// moveTermsIntoSafeRange returns moved = t · 2^−exp. It divides every vector of every term by a power of two, so that the vector's largest
// entry is between 1/2 and 1, and multiplies the weight of the term by that power. Then it divides all weights by 2^exp, which brings the
// largest one near 2^safeExp: so large that as few as possible of the small weights are lost. If all weights are 0, it returns t and 0.
func moveTermsIntoSafeRange(t *tensor.CP) (moved tensor.Tensor, exp int64) {
	weights := make([]scaled.Number, len(t.Weights))
	for i, w := range t.Weights {
		weights[i] = scaled.FromFloat(w)
	}

	// The vectors.
	movedCP := &tensor.CP{Shape: t.Shape, Weights: make([]float64, len(weights)), Vectors: make([][]float64, len(t.Vectors))}
	for mode, d := range t.Shape {
		if t.Vectors[mode] == nil {
			continue // all entries of its vectors are 1
		}
		for i := range weights {
			vector, vectorExp := shiftExponents(t.Vectors[mode][i*d:(i+1)*d], 0)
			weights[i] = weights[i].Mul(scaled.Make(1, vectorExp))
			movedCP.Vectors[mode] = append(movedCP.Vectors[mode], vector...)
		}
	}

	// The weights.
	exp = math.MinInt64
	for _, w := range weights {
		if !w.IsZero() {
			exp = max(exp, w.Exp-safeExp) // w = w.Mant · 2^w.Exp
		}
	}
	if areAllZero := exp == math.MinInt64; areAllZero {
		return t, 0
	}
	for i, w := range weights {
		movedCP.Weights[i] = w.Mul(scaled.Make(1, -exp)).Float64()
	}
	return movedCP, exp
}

// areSafe reports whether the absolute value of every number that is not 0 is between 2^−safeExp and 2^safeExp.
func areSafe(list []float64) bool {
	return !slices.ContainsFunc(list, func(x float64) bool {
		x = math.Abs(x)
		return x != 0 && !(x >= 0x1p-900 && x <= 0x1p900)
	})
}

// shiftExponents returns shifted = list · 2^−exp, with exp such that the largest absolute value in shifted is at least 2^(top−1) and below
// 2^top. Entries far below the largest may lose digits. If all numbers are 0, it returns the list itself and 0.
func shiftExponents(list []float64, top int) (shifted []float64, exp int64) {
	largest := 0.0
	for _, x := range list {
		largest = max(largest, math.Abs(x))
	}
	if largest == 0 {
		return list, 0
	}
	_, largestExp := math.Frexp(largest)
	shifted = make([]float64, len(list))
	for i, x := range list {
		shifted[i] = math.Ldexp(x, top-largestExp)
	}
	return shifted, int64(largestExp - top)
}

// mapsOf returns the maps on the legs of factor j, by position in its scope, and their inverses. Maps that the options do not give are
// chosen by mapOf. A factor of one variable has the identity, whose inverse is nil. Both lists share memory with b and are valid until the
// next call.
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

// mapOf returns the map of one leg of dimension d, of the kind that the options ask for, with its inverse. For the kinds "given" and "bp"
// it is the given map, or the identity if given.A is nil; an inverse that is not given is computed. For the kind "identity" it is the
// identity.
func (b *builder) mapOf(d int, given GivenMap) (mapWithInverse, error) {
	switch b.options.Maps {
	case query.MapOrthogonal: // one for each dimension, so that equal maps are the same slice
		if cached, ok := b.orthogonalMaps[d]; ok {
			return cached, nil
		}
		m, err := withInverse(btn.Orthogonal(d), d)
		if b.orthogonalMaps == nil {
			b.orthogonalMaps = map[int]mapWithInverse{}
		}
		b.orthogonalMaps[d] = m // also after an error, with which the whole build ends
		return m, err
	case query.MapGiven, query.MapBP:
		m := btn.Map{Kind: b.options.Maps, A: given.A}
		switch {
		case given.A != nil && given.Inverse != nil:
			return mapWithInverse{m: m, inverse: given.Inverse}, nil
		case given.A != nil:
			return withInverse(m, d)
		}
	}

	return mapWithInverse{m: btn.Identity()}, nil
}

// withInverse returns a map of dimension d with its inverse. The error is that of btn.Map.Inverse.
func withInverse(m btn.Map, d int) (mapWithInverse, error) {
	inverse, err := m.Inverse(d)
	return mapWithInverse{m: m, inverse: inverse}, err
}

// hasLegs reports whether factor j is a tensor of the network. Other factors are of order one or zero, and become weights of a variable or
// a number.
func (b *builder) hasLegs(j int) bool {
	order := len(b.model.Factors[j].Scope)
	isSeparate := order == 1 && b.isSeparate != nil && b.isSeparate[j]
	return b.options.Parametric || order >= 2 || isSeparate
}
