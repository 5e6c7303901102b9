package learn

// What learning costs, before it starts.

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Cost returns an estimate of the multiplications and additions that Decompose takes, all sweeps used: for r components
// over n legs with a count space of N coefficients at D levels,
//
//	starts · (Σ_i candidates + Σ_i greedy sweeps + sweeps) · (pairs of components) · 4·D·n·N
//
// plus the cores' own polynomials. It is an upper bound in practice: sweeps end early when they stop paying.
func Cost(net *btn.Network, settings btn.Settings) float64 {
	s := learning(settings)
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

// learnShare is what a deadline's budget is worth in flops of Cost: a core does some 5e8 of them in a second, and contraction shall have its time.
const learnShare = 1.0 / 16

// afford is Economise; where one component that counts is too much even so, it is one of rank one, whose sweeps take
// time in proportion to the legs.
func afford(net *btn.Network, settings btn.Settings) (Options, string) {
	s, warning := Economise(net, settings)
	o := Options{Settings: s}
	if Cost(net, s) > s.LearnFlops {
		o.Classes = []btn.Class{btn.ClassRankOne}
		warning = fmt.Sprintf("%s; a symmetry-rank-one component takes %.3g, so it is one of rank one", warning, Cost(net, s))
	}
	return o, warning
}

// Economise returns settings under which learning costs at most settings.LearnFlops by Cost: one start, then fewer sweeps,
// then fewer components, each halved until it fits, and a sentence that says so (empty if nothing was reduced). One
// component with one start and one sweep remains whatever it costs.
func Economise(net *btn.Network, settings btn.Settings) (affordable btn.Settings, warning string) {
	s := learning(settings)
	for _, field := range []*int{&s.Starts, &s.Sweeps, &s.Components} {
		for Cost(net, s) > s.LearnFlops && *field > 1 {
			*field /= 2
		}
	}
	if full := learning(settings); s != full {
		warning = fmt.Sprintf("learning was reduced to %d components, %d sweeps and %d starts (of %d, %d and %d) to stay within %.3g flops",
			s.Components, s.Sweeps, s.Starts, full.Components, full.Sweeps, full.Starts, s.LearnFlops)
	}
	return s, warning
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
