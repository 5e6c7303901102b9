package frobenius

// The cost of learning, before it starts.

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Cost returns an estimate of the multiplications and additions that Learn takes, all sweeps used:
// for r components over n legs with a count space of N coefficients at D levels,
//
//	starts · (Σ_i candidates + Σ_i greedy sweeps + sweeps) · (pairs of components) · 4·D·n·N
//
// plus the cores' own polynomials. It is an upper bound in practice: sweeps end early when they stop
// paying.
func Cost(net *btn.Network, settings query.Settings) float64 {
	s := Settings(settings)
	levels := NetworkLevels(net)
	box := 1.0
	for _, side := range levels.Shape() {
		box *= float64(side)
	}

	n := float64(len(net.Dims))
	pair := 4 * float64(levels.D) * n * box
	core := pair
	for _, c := range net.Cores {
		core += coreCost(c, float64(levels.D))
	}

	candidates, own := effort(len(net.Dims))
	total := 0.0
	for i := 1; i <= s.Components; i++ {
		k := float64(i)
		sweeps := float64(min(s.Sweeps, greedySweeps))
		if i == s.Components {
			sweeps = float64(s.Sweeps)
		}
		total += float64(candidates*(1+own)) * (core + k*pair) // the new component alone
		total += sweeps * 1.5 * k * (core + k*pair)            // all of them, and the extrapolation
		if s.LearnMaps {
			total += sweeps * k * core
		}
	}

	return total * float64(s.Starts)
}

// coreCost is the cost of the polynomials of every leg of a core.
func coreCost(c btn.Core, d float64) float64 {
	n := float64(len(c.Legs))
	entries := 1.0
	for _, dim := range c.T.Dims() {
		entries *= float64(dim)
	}
	switch t := c.T.(type) {
	case *tensor.CP:
		return 8 * d * n * n * float64(len(t.Weights))
	case *tensor.Symmetric:
		return 8 * d * n * math.Pow(n+1, d-1)
	case *tensor.SymmetryCP:
		return 8 * d * n * math.Pow(n+1, d-1) * float64(len(t.Terms))
	}
	return 2 * d * n * entries * math.Pow(n, d-1)
}
