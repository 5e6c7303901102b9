package sampled

// Chains, and the network they walk over.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/base/sampling"
	"github.com/basetensor/basetensor/internal/methods/descent"
	"github.com/basetensor/basetensor/internal/methods/sampled/annealing"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// ByAnnealing is the kind of Annealing.
const ByAnnealing Kind = "annealing"

// Annealing draws components as the ends of chains, which walk from independent variables to the model (package annealing).
type Annealing struct {
	Base
	Rungs int `msgpack:"rungs,omitempty"` // steps of a chain from independent variables to the model
	// Metropolis: a step proposes a value and accepts it or not. Otherwise a step draws from a conditional distribution.
	Metropolis bool `msgpack:"metropolis,omitempty"`
	// Forests: a step draws spins whose couplings with each other form no cycle together, given all other spins.
	Forests bool `msgpack:"forests,omitempty"`
	// Knots[k] is β after (k+1)/len(Knots) of the rungs, and β is linear in between. They rise from above 0 to 1. None: β is linear from 0
	// to 1.
	Knots []float64 `msgpack:"knots,omitempty"`
	// Product: a chain begins with a draw from beliefs. Otherwise it begins with a draw from uniform distributions.
	Product bool `msgpack:"product,omitempty"`
	// Of is the number of all components of the plan if the question asks for states. Then no variable of the network is summed out
	// beforehand, and Shape is the shape of its tables of terms (PrepareStateChains). 0: only Z and marginals are asked for.
	Of int64 `msgpack:"of,omitempty"`

	extraStarts [][][]float64 // of further chains of each draw, see AnnealedMixture
}

// MaxKnots bounds the knots of a ladder.
const MaxKnots = 64

// Fits implements Sampling. It checks the rungs, the steps and the knots. If the question asks for states, s.Of is the number of all
// components of the plan, and end, the number of the part's last component plus one, must not exceed it. Otherwise s.Of is 0.
func (s *Annealing) Fits(_ *btn.Network, end int64) error {
	switch {
	case s.Rungs < 1 || s.Rungs > 1<<30:
		return btn.Misfit("%d rungs", s.Rungs)
	case s.Metropolis && s.Forests:
		return btn.Misfit("steps of single values and of forests")
	case !isRising(s.Knots):
		return btn.Misfit("%d knots from 0 to 1 that do not rise, or too many", len(s.Knots))
	case s.Of < 0 || s.Of > MaxComponents || s.Of > 0 && end > s.Of:
		return btn.Misfit("components up to %d of %d", end, s.Of)
	}
	return nil
}

// isRising reports whether the knots are at most MaxKnots numbers above 0 that rise strictly and end with 1, or none at all.
func isRising(knots []float64) bool {
	previous := 0.0
	for _, knot := range knots {
		if !(knot > previous) {
			return false
		}
		previous = knot
	}
	return len(knots) == 0 || len(knots) <= MaxKnots && previous == 1
}

// Describe implements Sampling. It sets the size to the number of rungs.
func (s *Annealing) Describe(r *query.EstimateResult) { r.Size = s.Rungs }

// Cost implements Sampling. It returns the flops of a component (one chain from each start), and those before the first.
func (s *Annealing) Cost(c *Chains) (componentFlops, setupFlops float64) { return s.flops(c.Model) }

// Bytes implements Sampling. It returns the memory that the chains of the components take on one thread.
func (s *Annealing) Bytes(c *Chains, components int64, marginals bool) float64 {
	return c.Model.Bytes(s.Path(), components, 1, marginals)
}

// Path returns the options of package annealing for these chains.
func (s *Annealing) Path() annealing.Path {
	path := annealing.Path{Rungs: s.Rungs, FromBeliefs: s.Product, Knots: s.Knots, Seed: s.Seed, Modes: s.Modes, ExtraStarts: s.extraStarts}
	switch {
	case s.Metropolis:
		path.Step = annealing.Metropolis
	case s.Forests:
		path.Step = annealing.Forests
	}
	return path
}

// flops returns the flops of a component, which has a chain from each start. setupFlops are those of the preparation before the first
// component of a part: the searches for forests and for modes.
func (s *Annealing) flops(m *annealing.Model) (componentFlops, setupFlops float64) {
	if s.Forests {
		setupFlops = m.ForestFlops()
	}
	if s.Modes > 0 {
		setupFlops += m.ModesFlops()
	}
	path := s.Path()
	return m.Flops(path.Step, path.Rungs) * path.Starts(), setupFlops
}

// rungsFor returns the largest whole number of rungs with which all chains of a component take at most the given flops.
func (s *Annealing) rungsFor(m *annealing.Model, flops float64) float64 {
	path := s.Path()
	return m.RungsWithin(path.Step, flops/path.Starts())
}

// Draw implements Sampling. It carries the chains of the components from ≤ c < to. If the question asks for states (s.Of > 0), it also
// returns some states where chains end.
func (s *Annealing) Draw(ctx context.Context, p *problem.Problem, from, to int64, want btn.Want) (btn.Value, error) {
	if s.Of > 0 {
		return s.drawStates(ctx, p, from, to, want)
	}
	chains, err := PrepareChains(ctx, p, want.Marginals)
	if err != nil {
		return btn.Value{}, err
	}
	if shape := chains.Prepared.Shape(); shape != s.Shape {
		return btn.Value{}, fault.New(fault.Internal, "the components are drawn for a network of another shape")
	}
	const otherBytes = 0 // of memory next to the chains
	weights, value, err := s.runChains(ctx, p, chains.Model, from, to, want.Marginals, otherBytes)
	if err != nil || !want.Marginals || math.IsInf(weights.Top, -1) {
		return value, err
	}
	value.Weights.Top = weights.Top
	return value, setShares(value.Weights, chains.Prepared, weights.Share, weights.Squares)
}

// runChains carries the chains of the components from ≤ c < to through model m. It returns their weights, and a value with Z, flops and ln
// of the weights. It uses as many threads as the memory holds, after otherBytes for the caller; the weights do not depend on their number.
// The error is over budget if the memory does not hold one thread.
func (s *Annealing) runChains(
	ctx context.Context, p *problem.Problem, m *annealing.Model, from, to int64, marginals bool, otherBytes float64,
) (*annealing.Weights, btn.Value, error) {
	path, threads := s.Path(), sumproduct.Threads(p.Threads)
	bytes := m.Bytes(path, to-from, threads, marginals) + otherBytes
	for ; threads > 1 && bytes > float64(p.Memory); threads-- {
		bytes = m.Bytes(path, to-from, threads-1, marginals) + otherBytes
	}
	if bytes > float64(p.Memory) {
		return nil, btn.Value{}, fault.New(fault.OverBudget, "%w: chains need %.3g bytes, %d are allowed", contraction.ErrMemory, bytes, p.Memory)
	}
	weights, err := m.Run(ctx, path, from, to, threads, marginals)
	if err != nil {
		return nil, btn.Value{}, err
	}
	componentFlops, _ := s.flops(m)
	return weights, btn.Value{
		Z: scaled.FromLog(sampling.LnMean(weights.Ln)), Flops: componentFlops * float64(to-from), Weights: &btn.Weights{Ln: weights.Ln},
	}, nil
}

// Chains are the simplified network and the model that chains walk over.
type Chains struct {
	Prepared *truncated.Prepared
	Model    *annealing.Model
}

// Keys under which a problem keeps the result of PrepareChains and of PrepareStateChains.
type (
	chainsSlot struct{ marginals bool }
	walkSlot   struct{}
)

// unsignedBytes bounds the tables in which terms of both signs are added up before components are sampled. It is enough for clauses of
// about sixteen literals.
// Chosen.
const unsignedBytes = 1 << 24

// PrepareChains returns the simplified network of a problem and the model that chains walk over. If the network has entries below 0, it
// first sums out indices so that terms of both signs are added up. If that takes too much memory, annealing.New gets the network as it is,
// and its error says that entries are below 0. Other errors: those of truncated.Simplify and of annealing.New.
func PrepareChains(ctx context.Context, p *problem.Problem, marginals bool) (*Chains, error) {
	// The problem keeps the result in the slot for later calls; nil: there are no variants of it.
	return problem.Form(ctx, p, chainsSlot{marginals}, nil, func() (*Chains, error) {
		prepared, err := truncated.Simplify(ctx, p, marginals)
		if err != nil {
			return nil, err
		}
		e := prepared.Expression()
		if e.Signed() {
			e, err = descent.SumOutSigned(ctx, e, prepared.Deciding(), min(p.Memory, unsignedBytes)) // may sum out all other indices
			if fault.CodeOf(err) == fault.OverBudget {
				e, err = prepared.Expression(), nil // annealing.New returns the error
			}
			if err != nil {
				return nil, err
			}
		}
		model, err := annealing.New(e)
		if err != nil {
			return nil, err
		}
		return &Chains{prepared, model}, nil
	})
}

// PrepareStateChains returns the model that chains walk over if the question asks for states, and the tables that the model is made of
// (package descent). Their indices are all that a state needs: none is summed out. Errors: those of descent.PreparedOf and of
// annealing.New.
func PrepareStateChains(ctx context.Context, p *problem.Problem) (*descent.Prepared, *annealing.Model, error) {
	terms, err := descent.PreparedOf(ctx, p, btn.AskSamples, nil) // nil: only a marginal MAP assignment has a set of variables
	if err != nil {
		return nil, nil, err
	}
	model, err := problem.Form(ctx, p, walkSlot{}, nil, func() (*annealing.Model, error) { return annealing.New(terms.Terms()) })
	return terms, model, err
}
