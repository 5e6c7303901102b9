package sampled

// Independent draws from components S ∘ R that are learned.

import (
	"context"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/sampled/annealing"
	"github.com/basetensor/basetensor/internal/methods/sampled/importance"
	"github.com/basetensor/basetensor/internal/methods/sampled/mixture"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/query"
)

// ByMixture is the kind of Mixture.
const ByMixture Kind = "mixture"

// Mixture is independent draws from components S ∘ R that are learned from annealed draws (package mixture), mixed with mini-buckets.
type Mixture struct {
	Independent
	Learned *mixture.Mixture `msgpack:"mixture,omitempty"`
	// Defence is the share of mini-buckets in the mixture, and the share of values which components may have lost.
	Defence float64 `msgpack:"defence,omitempty"`
}

// Fits implements Sampling. It returns an error if a field of the kind is out of its range.
func (s *Mixture) Fits(n *btn.Network, end int64) error {
	if s.Learned == nil || len(s.Learned.Components) == 0 || !(s.Defence > 0 && s.Defence < 1) {
		return btn.Misfit("a mixture without components, or with a defence of %v", s.Defence)
	}
	return s.Independent.Fits(n, end)
}

// Describe implements Sampling. It sets the size to the number of learned components.
func (s *Mixture) Describe(r *query.EstimateResult) { r.Size = len(s.Learned.Components) }

// UnseenShare implements Sampling. It returns twice s.Defence, which is also taken as the share of values that the learned components miss.
func (s *Mixture) UnseenShare() float64 { return 2 * s.Defence }

// Draw implements Sampling. It makes the independent draws from ≤ c < to and returns their weights in Value.Weights.
func (s *Mixture) Draw(ctx context.Context, p *problem.Problem, from, to int64, want btn.Want) (btn.Value, error) {
	return drawIndependent(ctx, p, s, from, to, want)
}

// distribution implements independent. It returns the distribution that draws from the learned components, mixed with mini-buckets.
func (s *Mixture) distribution(_ context.Context, m material) (*importance.Proposal, error) {
	e := m.prepared.Expression()
	learned, err := mixture.New(s.Learned, e.Dims)
	if err != nil {
		return nil, err
	}
	return importance.NewMixture(e, m.bound, learned, s.Defence)
}

// LearnSampling is a chooser, as ChooseSampling is. It learns mixtures from the ends of the chains that a pilot chooses. It returns the
// kind with the smallest predicted variance at the rest of the budget: draws from a mixture, or chains from the components of one. If all
// chains weigh 0, it returns draws from mini-buckets. If no draws can be made, it returns the chains.
func LearnSampling(ctx context.Context, c *Chains, s query.Settings) (sampler Sampling, isComplete bool, err error) {
	chains, isComplete, err := c.pilot(ctx, s)
	if err != nil {
		return nil, false, err
	}
	t, mixtures, err := learnMixtures(ctx, c, chains, s)
	if err != nil || t == nil || t.best == nil {
		return chains, isComplete, err
	}

	// Compare with chains that begin at the components of each mixture.
	sampler, leastVariance := Sampling(t.best), t.leastVariance
	for _, learned := range mixtures {
		candidate, err := pilotMixtureChains(ctx, c, chains, learned, s)
		if err != nil {
			return nil, false, err
		}
		if candidate == nil {
			continue
		}
		if variance := predictVariance(candidate, c, s.Budget); variance < leastVariance {
			sampler, leastVariance = candidate, variance
		}
	}
	return sampler, isComplete, nil
}

// mixtureShare is the share of a budget that learning mixtures may take. Half of it is for the annealed draws that they are learned from,
// at most mixtureChains.
// Chosen.
const (
	mixtureShare  = 0.25
	mixtureChains = 4096
)

// LearningWork returns the flops that learning mixtures may take.
func LearningWork(s query.Settings) float64 { return mixtureShare * s.Budget }

// learnMixtures learns mixtures from the ends of chains, and makes pilot draws from each. It returns the trial, which has the best kind of
// draws, and the mixtures whose components have rank one. The trial is nil if nothing can be drawn from. If all chains weigh 0, it learns
// no mixtures and tries draws from mini-buckets instead.
func learnMixtures(ctx context.Context, c *Chains, chains *Annealing, s query.Settings) (t *trial, mixtures []*mixture.Mixture, err error) {
	chainEnds, err := drawChainEnds(ctx, c.Model, chains, s)
	if err != nil {
		return nil, nil, err
	}
	flops := LearningWork(s)
	remaining := s
	remaining.Budget -= flops
	t, err = newTrial(ctx, c.Prepared, remaining, proposalShare*s.Budget, chainEnds)
	switch {
	case err != nil || t == nil:
		return nil, nil, err
	case chainEnds == nil:
		err = tryMiniBuckets(ctx, t)
	default:
		mixtures, err = t.tryMixtures(ctx, c.Model, chains, flops)
	}
	if t.best != nil { // draws keep the number of modes that was chosen for chains
		t.best.About().Modes = chains.Modes
	}
	return t, mixtures, err
}

// tryMixtures learns mixtures from the ends of chains and makes pilot draws from each. It learns two of each number of components in
// policy.MixtureSizes, up to c.settings.Components. In the first, components are of rank one: products of a factor for each index. In the
// second, they also have a factor for the count of indices that are not at the component's centre. Half of flops is for the chains, half
// for learning. A mixture that exceeds what is left of it is passed over, except for the first one, of a single component, so that there is
// one to draw from. It returns the mixtures of rank one.
func (c *trial) tryMixtures(
	ctx context.Context, m *annealing.Model, chains *Annealing, flops float64,
) (mixtures []*mixture.Mixture, err error) {
	states, lnWeights, err := c.drawExamples(ctx, m, chains, flops/2)
	if err != nil {
		return nil, err
	}
	weights, dims := temperedWeights(lnWeights), c.prepared.Expression().Dims
	base := Mixture{Independent: c.initial, Defence: policy.BeliefsDefence}
	if base.Kind = ByMixture; proposal.HasConstraint(c.prepared.Expression()) {
		base.Defence = policy.BeliefsHardDefence
	}

	remaining := flops / 2
	for _, size := range policy.MixtureSizes {
		if size > c.settings.Components {
			continue
		}
		for _, counted := range []bool{false, true} { // counted: components have the factor for the count, too
			o := mixture.Options{Components: size, Counted: counted, Seed: c.settings.Seed}
			work := mixture.Work(o, len(states), dims)
			isFirst := c.best == nil // tryMixture has set it once a mixture was tried
			if !isFirst && work > remaining {
				continue
			}
			remaining -= work
			learned, err := mixture.Fit(ctx, dims, states, weights, o)
			if err != nil {
				return nil, err
			}
			if !counted {
				mixtures = append(mixtures, learned)
			}
			if err := c.tryMixture(ctx, base, learned); err != nil {
				return nil, err
			}
		}
	}
	return mixtures, nil
}

// tryMixture makes pilot draws from a learned mixture, with the other fields of base.
func (c *trial) tryMixture(ctx context.Context, base Mixture, learned *mixture.Mixture) error {
	candidate := base // the trial keeps a pointer to it
	candidate.Learned = learned
	candidate.Each = c.plan.Draw + learned.Flops() // flops of a draw: the density of mini-buckets, and the mixture
	distribution, err := candidate.distribution(ctx, c.material)
	if err != nil {
		return err
	}
	_, err = c.tryKind(ctx, &candidate, distribution)
	return err
}

// drawExamples returns the states where chains end, which mixtures are learned from, and ln of their weights. The chains take at most
// flops, and there are at most mixtureChains. If there would be fewer than pilotChains, the chains have fewer rungs (steps) instead.
func (c *trial) drawExamples(
	ctx context.Context, m *annealing.Model, chains *Annealing, flops float64,
) (states [][]int, lnWeights []float64, err error) {
	const firstComponent = 8 * productChains // the chains of lower numbers are those of other pilots with the same seed
	path := chains.Path()
	componentFlops := m.Flops(path.Step, path.Rungs) * path.Starts()
	components := wholeGroups(min(flops/componentFlops, mixtureChains/path.Starts()))
	if minComponents := pilotChains / path.Starts(); float64(components) < minComponents {
		components = wholeGroups(minComponents)
		// As many rungs as the flops allow, but no fewer than 4.
		path.Rungs = int(max(4, min(float64(path.Rungs), chains.rungsFor(m, flops/float64(components)))))
	}
	path.Seed = ^c.settings.Seed // not that of components
	w, err := m.Run(ctx, path, firstComponent, firstComponent+components, pilotThreads, keepStates)
	if err != nil {
		return nil, nil, err
	}
	states = make([][]int, len(w.LnContributions))
	for k := range states {
		states[k] = make([]int, m.Indices())
		m.ReadState(w, k, states[k])
	}
	return states, w.LnContributions, nil
}
