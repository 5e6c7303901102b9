package oracle

// Brute force over all entries of a base tensor network.

import (
	"math/big"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// NetworkZ returns Z = Scale · Σ_x Π_c B^(c)[x] Π_j L^(j)[x] by enumerating all entries, and the sum of the
// terms' absolute values, against which the rounding of a correct computation is to be measured.
func NetworkZ(n *btn.Network) (z, sumAbs *big.Float) {
	return NetworkZWith(n, func(x []int) *big.Float {
		product := fromFloat(1)
		for _, c := range n.Cores {
			product.Mul(product, Entry(c.T, pick(x, c.Legs)))
		}
		return product
	})
}

// NetworkZWith is NetworkZ with the base tensor replaced by any function of the legs' values.
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
			term.Mul(term, Entry(l.T, pick(x, l.Legs)))
		}
		z.Add(z, term)
		sumAbs.Add(sumAbs, newFloat().Abs(term))
	})
	return z, sumAbs
}

func pick(x, legs []int) []int {
	at := make([]int, len(legs))
	for k, l := range legs {
		at[k] = x[l]
	}
	return at
}
