package generate

// The Curie–Weiss model as a table per pair of variables.

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// CurieWeiss returns a model of n ≥ 2 spins x = ±1, value 0 being −1, of treewidth n − 1:
//
//	P(x) ∝ exp(J Σ_{i<j} x_i x_j) · Π_j L^(j)[x],
//
// with tables L^(j), entries U(½, 3/2), that divide the variables at random into groups of 1 to widest. Errors: ErrOptions.
func CurieWeiss(n int, coupling float64, widest int, seed uint64) (*factorgraph.Model, error) {
	const maxPairs, maxWidest = 3000, 12 // variables: 4.5 million pair tables
	if n < 2 || n > maxPairs {
		return nil, fmt.Errorf("%w: %d variables, 2 to %d are possible", ErrOptions, n, maxPairs)
	}
	if widest < 1 || widest > maxWidest {
		return nil, fmt.Errorf("%w: widest link %d, 1 to %d are possible", ErrOptions, widest, maxWidest)
	}
	if !(math.Abs(coupling) <= maxCoupling) {
		return nil, fmt.Errorf("%w: coupling %v, at most %v", ErrOptions, coupling, float64(maxCoupling))
	}

	b, rng := spins(n), rand.New(rand.NewPCG(seed, 0x6377))
	for rest := rng.Perm(n); len(rest) > 0; {
		k := min(1+rng.IntN(widest), len(rest))
		entries := b.table(rest[:k]...)
		for x := range entries {
			entries[x] = 0.5 + rng.Float64()
		}
		rest = rest[k:]
	}
	for i := range n {
		for j := i + 1; j < n; j++ {
			b.couple(i, j, coupling)
		}
	}
	return b.model(), nil
}
