package sampled

// Chains from components that are learned.

import (
	"context"

	"github.com/basetensor/basetensor/internal/methods/sampled/annealing"
	"github.com/basetensor/basetensor/internal/methods/sampled/mixture"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/query"
)

// ByAnnealedMixture is the kind of AnnealedMixture.
const ByAnnealedMixture Kind = "annealed mixture"

// AnnealedMixture is Annealing with further chains: every draw has one more chain from each component of a learned mixture of rank one. A
// chain counts only near its start (package annealing), so that a component that misses a mode does no harm.
type AnnealedMixture struct {
	Annealing
	Learned *mixture.Mixture `msgpack:"mixture,omitempty"`
}

// chains returns the annealing of s, with a further chain of each draw from every component of the mixture.
func (s *AnnealedMixture) chains() *Annealing {
	chains := s.Annealing
	chains.extraStarts = s.Learned.Values()
	return &chains
}

// Fits implements Sampling. It refuses chains for states (s.Of > 0), and components that are not product distributions.
func (s *AnnealedMixture) Fits(n *btn.Network, end int64) error {
	if s.Of > 0 || s.Learned == nil || !s.Learned.IsRankOne() {
		return btn.Misfit("chains from components that are not of rank one, or too many")
	}
	return s.Annealing.Fits(n, end)
}

// Cost implements Sampling. It returns the flops of a component (one chain from each start), and those before the first.
func (s *AnnealedMixture) Cost(c *Chains) (componentFlops, setupFlops float64) {
	return s.chains().Cost(c)
}

// Bytes implements Sampling. It returns the memory that the chains of the components take on one thread.
func (s *AnnealedMixture) Bytes(c *Chains, components int64, marginals bool) float64 {
	return s.chains().Bytes(c, components, marginals)
}

// Draw implements Sampling. It carries the chains of the components from ≤ c < to. It also returns the error of mixture.New: bad input
// if the learned components do not fit the simplified network.
func (s *AnnealedMixture) Draw(ctx context.Context, p *problem.Problem, from, to int64, want btn.Want) (btn.Value, error) {
	chains, err := PrepareChains(ctx, p, want.Marginals)
	if err != nil {
		return btn.Value{}, err
	}
	if _, err := mixture.New(s.Learned, chains.Prepared.Expression().Dims); err != nil {
		return btn.Value{}, err
	}
	return s.chains().Draw(ctx, p, from, to, want)
}

// pilotMixtureChains returns chains that also begin at the components of a learned mixture, with the kind of steps of base. A pilot chooses
// their number of rungs (steps) and measures their spread. The result is nil if the pilot would take more than pilotShare of the budget, or
// the chains would exceed the memory.
func pilotMixtureChains(
	ctx context.Context, c *Chains, base *Annealing, learned *mixture.Mixture, s query.Settings,
) (*AnnealedMixture, error) {
	const firstComponent = 16 * productChains // the mixture was learned from the chains of lower numbers
	result := &AnnealedMixture{Annealing: *base, Learned: learned}
	result.Kind, result.Shape = ByAnnealedMixture, c.Prepared.Shape()
	chains := result.chains()
	chains.Seed, chains.Rungs = ^s.Seed, pilotRungs // not the seed of components

	// Halve the rungs until the pilot's chains fit its share of the budget.
	path := chains.Path()
	components := wholeGroups(pilotChains / path.Starts())
	pilotFlops := func() float64 {
		componentFlops, _ := chains.flops(c.Model)
		return componentFlops * float64(components)
	}
	for chains.Rungs > 4 && pilotFlops() > pilotShare*s.Budget {
		chains.Rungs /= 2 // pilotFlops reads it
	}
	const marginals = true // the larger memory
	if pilotFlops() > pilotShare*s.Budget || chains.Bytes(c, annealing.GroupSize, marginals) > float64(s.Memory) {
		return nil, nil
	}

	w, err := c.Model.Run(ctx, chains.Path(), firstComponent, firstComponent+components, pilotThreads, keepStates)
	if err != nil {
		return nil, err
	}
	pilotedRungs := chains.Rungs
	chains.setRungs(c.Model, s, pilotedRungs, lnVariance(w.Ln))
	result.Rungs, result.Spread = chains.Rungs, chains.Spread
	return result, nil
}
