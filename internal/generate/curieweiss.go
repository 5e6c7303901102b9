package generate

// The Curie–Weiss model: one symmetric core that is also a product of pairwise factors over all
// pairs.

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// CurieWeiss returns a model of n ≥ 2 binary variables, x = ±1 (value 0 is −1), with
//
//	P(x) ∝ exp(J Σ_{i<j} x_i x_j) · Π_j L^(j)[x],
//
// random positive dense links L^(j) of 1 to widest variables dealt as in Tractable, and its Z. The
// Network has one symmetric core, S_c = exp(J (m² − n)/2) with m = 2c − n. The Model writes the same
// product as a table per pair: dense factors only, treewidth n − 1, and Z known at any n.
// Errors: ErrOptions, those of contract.Part.
func CurieWeiss(ctx context.Context, n int, coupling float64, widest int, seed uint64) (*Planted, error) {
	const maxPairs = 3000 // variables: 4.5 million pair tables
	if n < 2 || n > maxPairs {
		return nil, fmt.Errorf("%w: %d variables, 2 to %d are possible", ErrOptions, n, maxPairs)
	}
	if widest < 1 || widest > maxWidest {
		return nil, fmt.Errorf("%w: widest link %d, 1 to %d are possible", ErrOptions, widest, maxWidest)
	}
	if !(math.Abs(coupling) <= maxCoupling) {
		return nil, fmt.Errorf("%w: coupling %v, at most %v", ErrOptions, coupling, float64(maxCoupling))
	}

	dims := make([]int, n)
	for l := range dims {
		dims[l] = 2
	}
	s := countspace.New([]int{n + 1})
	for c := range n + 1 {
		m := float64(2*c - n)
		s.Set([]int{c}, scaled.FromLog(coupling*(m*m-float64(n))/2))
	}

	levels := countspace.TwoLevels(dims)
	core := &tensor.Symmetric{Shape: dims, Levels: levels, Values: s.Coef}
	d := drawer{rng: rand.New(rand.NewPCG(seed, 0x6377))}
	net := &btn.Network{
		Dims:  dims,
		Cores: []btn.Core{{Legs: upTo(n), T: core}},
		Links: d.links(dims, widest),
		Scale: scaled.One,
	}
	model := &factorgraph.Model{
		Domains: dims,
		Factors: make([]factorgraph.Factor, 0, n*(n-1)/2+len(net.Links)),
	}
	for _, l := range net.Links {
		model.Factors = append(model.Factors, factorgraph.Factor{Scope: l.Legs, Table: l.T})
	}

	pair := pairTable(coupling)
	for i := range n {
		for j := i + 1; j < n; j++ {
			model.Factors = append(model.Factors, factorgraph.Factor{Scope: []int{i, j}, Table: pair})
		}
	}

	exact := &btn.Estimate{
		Rule: btn.Linear, Slices: 1, Quality: &btn.Quality{Exact: true, LnNormError: math.Inf(-1)},
		Parts: []btn.Part{&btn.SymmetryRankOne{Frame: &btn.Frame{Closed: true, Levels: levels}, S: s}},
	}
	return answer(ctx, &Planted{Network: net, Estimate: exact, Model: model})
}
