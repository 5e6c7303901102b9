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
	Weights [][]float64 // by variable: w_i, as btn.FitWeights returns them
	Scale   scaled.Number
	// isSeparate tells, by factor, whether it is of order one and not in the weights, because its product with them does not fit or would
	// be rounded. Such a factor gets a leg. nil: there is none.
	isSeparate []bool
}

// AbsorbUnary multiplies the factors of order one of a valid model into weights of its variables, and the factors of order zero into a
// number, Scale. A factor of order one that weights cannot take without loss (multiplyIntoWeights) stays a factor, marked in isSeparate.
// Errors wrap btn.ErrRange. Cost: linear in the entries of those factors.
func AbsorbUnary(m *factorgraph.Model) (*Unary, error) {
	numbers := unitNumbers(m.Domains) // the weights, by variable and value
	u := &Unary{Weights: make([][]float64, len(numbers)), Scale: scaled.One}
	hasNegative := slices.ContainsFunc(m.Factors, func(f factorgraph.Factor) bool {
		return tensor.Signed(f.Table)
	})
	for j, f := range m.Factors {
		switch len(f.Scope) {
		case 0:
			u.Scale = u.Scale.Mul(tensor.At(f.Table, nil))
		case 1:
			if isAbsorbed := multiplyIntoWeights(f.Table, numbers[f.Scope[0]], hasNegative); isAbsorbed {
				continue
			}
			if u.isSeparate == nil {
				u.isSeparate = make([]bool, len(m.Factors))
			}
			u.isSeparate[j] = true
		}
	}

	// Write the weights as float64; powers of two go into the scale.
	for i := range numbers {
		w, exp, err := btn.FitWeights(numbers[i])
		if err != nil {
			return nil, fmt.Errorf("reparam: variable %d: %w", i, err)
		}
		u.Weights[i] = w
		u.Scale = u.Scale.Mul(scaled.Make(1, exp))
	}

	return u, nil
}

// unitNumbers returns a list of ones for each variable, with one entry for each value.
func unitNumbers(domains []int) [][]scaled.Number {
	numbers := make([][]scaled.Number, len(domains))
	var slab arena.Slab[scaled.Number]
	for i, d := range domains {
		numbers[i] = slab.Make(d)
		for x := range numbers[i] {
			numbers[i][x] = scaled.One
		}
	}
	return numbers
}

// multiplyIntoWeights multiplies the weights w of a variable by a table over that variable, in place. It returns false, and leaves w as it
// is, if the product spans more than weights hold, or if a weight would be rounded in a model with an entry below 0, where terms of both
// signs may cancel.
func multiplyIntoWeights(table tensor.Tensor, w []scaled.Number, hasNegative bool) (ok bool) {
	position := []int{0} // of an entry of the table
	product := make([]scaled.Number, len(w))
	isExact := !isRounded(table)
	for x := range w {
		position[0] = x
		factor := tensor.At(table, position)
		product[x] = w[x].Mul(factor)
		// A product of two mantissas is exact if the fused multiplication finds no remainder.
		isExact = isExact && math.FMA(w[x].Mant, factor.Mant, -float64(w[x].Mant*factor.Mant)) == 0
	}
	if _, _, err := btn.FitWeights(product); err != nil || !isExact && hasNegative { // err: the weights span too much
		return false
	}
	copy(w, product)
	return true
}

// isRounded reports whether entries of t, a tensor of order one, may have been rounded: whether they are sums or products of its numbers.
// In CP form with nil vectors (the identity) the entries are the weights themselves. Entries of other forms are numbers of the form.
func isRounded(t tensor.Tensor) bool {
	switch t := t.(type) {
	case *tensor.CP:
		return t.Vectors[0] != nil
	case *tensor.SymmetryCP:
		return true
	}
	return false
}
