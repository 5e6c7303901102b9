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

// Fits implements Sampling.
func (s *Mixture) Fits(n *btn.Network, end int64) error {
	if s.Learned == nil || len(s.Learned.Components) == 0 || !(s.Defence > 0 && s.Defence < 1) {
		return btn.Misfit("a mixture without components, or with a defence of %v", s.Defence)
	}
	return s.Independent.Fits(n, end)
}

// Describe implements Sampling.
func (s *Mixture) Describe(r *query.EstimateResult) { r.Size = len(s.Learned.Components) }

// Missed implements Sampling.
func (s *Mixture) Missed() float64 { return 2 * s.Defence }

// Draw implements Sampling.
func (s *Mixture) Draw(ctx context.Context, p *problem.Problem, from, to int64, want btn.Want) (btn.Value, error) {
	return draw(ctx, p, s, from, to, want)
}

func (s *Mixture) proposal(_ context.Context, b beside) (*importance.Proposal, error) {
	e := b.own.Expression()
	learned, err := mixture.New(s.Learned, e.Dims)
	if err != nil {
		return nil, err
	}
	return importance.NewMixture(e, b.bound, learned, s.Defence)
}

// Learn learns mixtures from the ends of chains of the kind that a pilot chooses, and takes the one with the least error at the rest of the
// budget, by draws from it or by chains from its components; where no chain is alive, mini-buckets alone. It is a choice as Choose is.
func Learn(ctx context.Context, c *Chains, s query.Settings) (along Sampling, whole bool, err error) {
	chains, whole, err := c.pilot(ctx, s)
	if err != nil {
		return nil, false, err
	}
	t, learned, err := learn(ctx, c, chains, s)
	if err != nil || t == nil || t.best == nil {
		return chains, whole, err
	}
	along, least := Sampling(t.best), t.least
	for _, of := range learned {
		own, err := annealed(ctx, c, chains, of, s)
		if err != nil {
			return nil, false, err
		}
		if own == nil {
			continue
		}
		if got := promise(own, c, s.Budget); got < least {
			along, least = own, got
		}
	}
	return along, whole, nil
}

// mixtureShare is the part of a budget that mixtures are learned for, half of it for the annealed draws they are learned from, of which
// there are mixtureChains at most.
// Chosen.
const (
	mixtureShare  = 0.25
	mixtureChains = 4096
)

// LearningWork returns the flops that learning mixtures may take.
func LearningWork(s query.Settings) float64 { return mixtureShare * s.Budget }

// learn returns the trial of draws from mixtures, nil where nothing can be drawn from, and the mixtures of rank one.
func learn(ctx context.Context, c *Chains, chains *Annealing, s query.Settings) (t *trial, learned []*mixture.Mixture, err error) {
	ends, err := endsOf(ctx, c.Model, chains, s)
	if err != nil {
		return nil, nil, err
	}
	work := LearningWork(s)
	left := s
	left.Budget -= work
	t, err = newTrial(ctx, c.Prepared, left, proposalShare*s.Budget, ends)
	switch {
	case err != nil || t == nil:
		return nil, nil, err
	case ends == nil:
		err = tryMiniBuckets(ctx, t)
	default:
		learned, err = t.tryMixtures(ctx, c.Model, chains, work)
	}
	if t.best != nil {
		t.best.About().Modes = chains.Modes
	}
	return t, learned, err
}

// tryMixtures learns mixtures of growing numbers of components, of rank one and with counts, from chains within so much work, and tries
// each. It returns the mixtures of rank one.
func (c *trial) tryMixtures(
	ctx context.Context, m *annealing.Model, chains *Annealing, work float64,
) (learned []*mixture.Mixture, err error) {
	const first = 8 * productChains // other chains than the pilot's
	p := chains.Path()
	each := m.Flops(p.Step, p.Rungs) * p.Starts()
	components := groups(min(work/2/each, mixtureChains/p.Starts()))
	if few := pilotChains / p.Starts(); float64(components) < few {
		components = groups(few)
		p.Rungs = int(max(4, min(float64(p.Rungs), chains.rungs(m, work/2/float64(components)))))
	}
	p.Seed = ^c.s.Seed
	w, err := m.Run(ctx, p, first, first+components, 1, true)
	if err != nil {
		return nil, err
	}
	states := make([][]int, len(w.Each))
	for k := range states {
		states[k] = make([]int, m.Indices())
		m.State(w, k, states[k])
	}
	weights, e := tempered(w.Each), c.own.Expression()
	given := Mixture{Independent: c.given, Defence: policy.BeliefsDefence}
	if given.Kind = ByMixture; proposal.HasConstraint(e) {
		given.Defence = policy.BeliefsHardDefence
	}
	left := work / 2
	for _, size := range policy.MixtureSizes {
		for _, counted := range []bool{false, true} {
			o := mixture.Options{Components: min(size, c.s.Components), Counted: counted, Seed: c.s.Seed}
			if size > c.s.Components || c.best != nil && mixture.Work(o, len(states), e.Dims) > left {
				continue
			}
			left -= mixture.Work(o, len(states), e.Dims)
			own := given
			if own.Learned, err = mixture.Fit(ctx, e.Dims, states, weights, o); err != nil {
				return nil, err
			}
			if !counted {
				learned = append(learned, own.Learned)
			}
			own.Each = c.plan.Draw + own.Learned.Flops()
			q, err := own.proposal(ctx, c.beside)
			if err != nil {
				return nil, err
			}
			if _, err := c.try(ctx, &own, q); err != nil {
				return nil, err
			}
		}
	}
	return learned, nil
}
