package reparam

// Factors of order ≥ 2 get legs and maps, the others become weights.

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
			b.leg(b.model.Domains[i], maps[k])
		}

		b.pieces = append(b.pieces, piece{legs: legs, t: t})
	}

	return nil
}

// reparameterise applies the inverse maps along every mode: T̄ = T ×_0 A_0⁻¹ ×_1 A_1⁻¹ … (Lemma 1), and returns T̄ · 2^−exp.
func reparameterise(t tensor.Tensor, inverses [][]float64) (mapped tensor.Tensor, exp int64, err error) {
	for _, a := range inverses {
		if a != nil {
			t, exp = centred(t)
			mapped, err = tensor.ApplyModes(t, inverses)
			return mapped, exp, err
		}
	}
	return t, 0, nil
}

// Numbers between 2^−middle and 2^middle keep all their digits in products with maps.
const middle = 900

// centred returns t · 2^−exp with its largest numbers near 2^middle, if one is so large or so small that products with maps
// may overflow or lose digits: sums of subnormal products are wrong by more than rounding. Other tensors stay as they are.
// It may lose entries of a dense table and terms below 2^−1900 of the largest, and entries of a term's vector below 2^−1022
// of the vector's largest.
func centred(t tensor.Tensor) (tensor.Tensor, int64) {
	switch t := t.(type) {
	case *tensor.Dense:
		if inside(t.Data) {
			return t, 0
		}
		data, exp := shifted(t.Data, middle)
		return &tensor.Dense{Shape: t.Shape, Data: data}, exp
	case *tensor.CP:
		if !slices.ContainsFunc(t.Vectors, func(v []float64) bool { return !inside(v) }) {
			return t, 0
		}
		return centredTerms(t)
	}
	return t, 0
}

// centredTerms gives every vector a largest entry near 1, and moves the rest into the weights.
func centredTerms(t *tensor.CP) (tensor.Tensor, int64) {
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
			v, exp := shifted(t.Vectors[mode][i*d:(i+1)*d], 0)
			weights[i] = weights[i].Mul(scaled.Make(1, exp))
			out.Vectors[mode] = append(out.Vectors[mode], v...)
		}
	}
	exp := int64(math.MinInt64)
	for _, w := range weights {
		if !w.IsZero() {
			exp = max(exp, w.Exp-middle)
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

// inside reports whether all numbers but 0 are between 2^−middle and 2^middle.
func inside(list []float64) bool {
	return !slices.ContainsFunc(list, func(x float64) bool {
		x = math.Abs(x)
		return x != 0 && !(x >= 0x1p-900 && x <= 0x1p900)
	})
}

// shifted returns list · 2^−exp, the largest of its numbers between 2^(top−1) and 2^top; zeros stay.
func shifted(list []float64, top int) (out []float64, exp int64) {
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

// mapOf returns the map of an incidence of dimension d; given is the map in the cases "given" and "bp".
func (b *builder) mapOf(d int, given GivenMap) (mapPair, error) {
	switch b.options.Maps {
	case query.MapOrthogonal: // one pair per dimension, so that equal maps are the same slice
		if p, ok := b.shared[d]; ok {
			return p, nil
		}
		p, err := pair(btn.Orthogonal(d), d)
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
