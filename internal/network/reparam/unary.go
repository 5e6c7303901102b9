package reparam

// Factors of order one and zero: weights of variables, and a number.

import (
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/arena"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Unary is the product of a model's factors of order one and zero, Scale · Π_i w_i(x_i).
type Unary struct {
	Of    [][]float64 // w_i, as btn.FitWeights leaves them
	Scale scaled.Number
	apart []bool // by factor: one of order one that does not fit the weights, and has a leg; nil for none
}

// AbsorbUnary multiplies the factors of order one of a valid model into weights of its variables,
// and the factors of order zero into a number. Errors wrap btn.ErrRange. Cost: linear in the
// entries of those factors.
func AbsorbUnary(m *factorgraph.Model) (*Unary, error) {
	numbers := make([][]scaled.Number, len(m.Domains))
	var slab arena.Slab[scaled.Number]
	for i, d := range m.Domains {
		numbers[i] = slab.Make(d)
		for x := range numbers[i] {
			numbers[i][x] = scaled.One
		}
	}

	u := &Unary{Of: make([][]float64, len(numbers)), Scale: scaled.One}
	signed := slices.ContainsFunc(m.Factors, func(f factorgraph.Factor) bool {
		return tensor.Signed(f.Table)
	})
	for j, f := range m.Factors {
		switch len(f.Scope) {
		case 0:
			u.Scale = u.Scale.Mul(tensor.At(f.Table, nil))
		case 1:
			if absorb(f.Table, numbers[f.Scope[0]], signed) {
				continue
			}
			if u.apart == nil {
				u.apart = make([]bool, len(m.Factors))
			}
			u.apart[j] = true
		}
	}

	for i := range numbers {
		w, exp, err := btn.FitWeights(numbers[i])
		if err != nil {
			return nil, fmt.Errorf("reparam: variable %d: %w", i, err)
		}
		u.Of[i] = w
		u.Scale = u.Scale.Mul(scaled.Make(1, exp))
	}

	return u, nil
}

// absorb multiplies a table of order one into weights. It does not where the product spans more than
// weights hold, nor where terms of both signs may cancel (signed) and a weight would be rounded.
func absorb(table tensor.Tensor, w []scaled.Number, signed bool) bool {
	at := []int{0}
	product := make([]scaled.Number, len(w))
	exact := !sums(table)
	for x := range w {
		at[0] = x
		factor := tensor.At(table, at)
		product[x] = w[x].Mul(factor)
		exact = exact && math.FMA(w[x].Mant, factor.Mant, -float64(w[x].Mant*factor.Mant)) == 0
	}
	if _, _, err := btn.FitWeights(product); err != nil || !exact && signed {
		return false
	}
	copy(w, product)
	return true
}

// sums says whether entries of a factor of order one are sums or products of its numbers, which were
// rounded.
func sums(t tensor.Tensor) bool {
	switch t := t.(type) {
	case *tensor.CP:
		return t.Vectors[0] != nil
	case *tensor.SymmetryCP:
		return true
	}
	return false
}
