package preprocess

// Exact sums of products.

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// maxExactFactors bounds exactSum, whose cost doubles with every factor.
const maxExactFactors = 4

// exactSum returns the sum of the products of factors at the next n values, correctly rounded from the
// exact one: every product is written as a sum of numbers that are exact. The result may be beyond
// float64: ±Inf, or too small.
func exactSum(at *sumproduct.Walk, factors [][]float64, n int) float64 {
	var terms []scaled.Number
	for range n {
		from := len(terms)
		terms = append(terms, scaled.One)
		for k, f := range factors {
			x := scaled.FromFloat(f[at.At[k]])
			for t, y := range terms[from:] { // a product, and its rounding loss
				high := float64(x.Mant * y.Mant)
				terms[from+t] = scaled.Make(high, x.Exp+y.Exp)
				terms = append(terms, scaled.Make(math.FMA(x.Mant, y.Mant, -high), x.Exp+y.Exp))
			}
		}
		at.Next()
	}
	return scaled.Sum(terms).Float64()
}
