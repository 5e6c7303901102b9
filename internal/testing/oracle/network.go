package oracle

// Brute force over all entries of a base tensor network.

import (
	"math/big"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// NetworkZ returns Z = Scale · Σ_x Π_c B^(c)[x] Π_j L^(j)[x] by enumerating the values x of all legs, where B^(c) are the cores of the
// network and L^(j) its links. sumAbs is the sum of the absolute values of the terms, against which rounding errors are measured.
func NetworkZ(n *btn.Network) (z, sumAbs *big.Float) {
	return NetworkZWith(n, func(x []int) *big.Float {
		product := fromFloat(1)
		for _, c := range n.Cores {
			product.Mul(product, Entry(c.T, valuesOf(x, c.Legs)))
		}
		return product
	})
}

// NetworkZWith is NetworkZ with base(x) in place of the product of the cores, Π_c B^(c)[x].
func NetworkZWith(n *btn.Network, base func(x []int) *big.Float) (z, sumAbs *big.Float) {
	z, sumAbs = newFloat(), newFloat()
	scale := fromFloat(n.Scale.Mant)
	scale.SetMantExp(scale, int(n.Scale.Exp))
	Each(n.Dims, func(x []int) {
		term := newFloat().Mul(scale, base(x))
		for _, l := range n.Links {
			if term.Sign() == 0 {
				return
			}
			term.Mul(term, Entry(l.T, valuesOf(x, l.Legs)))
		}
		z.Add(z, term)
		sumAbs.Add(sumAbs, newFloat().Abs(term))
	})
	return z, sumAbs
}

// valuesOf returns the values of these legs, where x has the values of all legs.
func valuesOf(x, legs []int) []int {
	values := make([]int, len(legs))
	for k, leg := range legs {
		values[k] = x[leg]
	}
	return values
}
