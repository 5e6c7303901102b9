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

// AnnealedMixture is chains as those of Annealing, and for every draw one more chain from each component of a learned mixture of rank one.
// A chain counts near its start (package annealing), so a component that misses a mode does no harm.
type AnnealedMixture struct {
	Annealing
	Learned *mixture.Mixture `msgpack:"mixture,omitempty"`
}

// chains are the chains with their further starts.
func (s *AnnealedMixture) chains() *Annealing {
	own := s.Annealing
	own.given = s.Learned.Values()
	return &own
}

// Fits implements Sampling.
func (s *AnnealedMixture) Fits(n *btn.Network, end int64) error {
	if s.Of > 0 || s.Learned == nil || !s.Learned.RankOne() {
		return btn.Misfit("chains from components that are not of rank one, or too many")
	}
	return s.Annealing.Fits(n, end)
}

// Takes implements Sampling.
func (s *AnnealedMixture) Takes(c *Chains) (each, setup float64) { return s.chains().Takes(c) }

// Bytes implements Sampling.
func (s *AnnealedMixture) Bytes(c *Chains, components int64, marginals bool) float64 {
	return s.chains().Bytes(c, components, marginals)
}

// Draw implements Sampling.
func (s *AnnealedMixture) Draw(ctx context.Context, p *problem.Problem, from, to int64, want btn.Want) (btn.Value, error) {
	chains, err := ChainsOf(ctx, p, want.Marginals)
	if err != nil {
		return btn.Value{}, err
	}
	if _, err := mixture.New(s.Learned, chains.Prepared.Expression().Dims); err != nil {
		return btn.Value{}, err
	}
	return s.chains().Draw(ctx, p, from, to, want)
}

// annealed returns such chains with the steps of others, and their rungs and spread by a pilot of their own; nil where that would take
// more than pilotShare of the budget.
func annealed(
	ctx context.Context, c *Chains, of *Annealing, learned *mixture.Mixture, s query.Settings,
) (*AnnealedMixture, error) {
	const first = 16 * productChains // other chains than those the mixture was learned from
	found := &AnnealedMixture{Annealing: *of, Learned: learned}
	found.Kind, found.Shape = ByAnnealedMixture, c.Prepared.Shape()
	own := found.chains()
	own.Seed, own.Rungs = ^s.Seed, pilotRungs
	path := own.Path()
	components := groups(pilotChains / path.Starts())
	takes := func() float64 {
		each, _ := own.flops(c.Model)
		return each * float64(components)
	}
	for ; own.Rungs > 4 && takes() > pilotShare*s.Budget; own.Rungs /= 2 {
	}
	if takes() > pilotShare*s.Budget || own.Bytes(c, annealing.Group, true) > float64(s.Memory) {
		return nil, nil
	}
	w, err := c.Model.Run(ctx, own.Path(), first, first+components, 1, true)
	if err != nil {
		return nil, err
	}
	few := own.Rungs
	own.ladder(c.Model, s, few, lnVariance(w.Ln))
	found.Rungs, found.Spread = own.Rungs, own.Spread
	return found, nil
}
