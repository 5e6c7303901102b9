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

// Annealing is components that are the ends of chains from independent variables to the model (package annealing).
type Annealing struct {
	Base
	Rungs int `msgpack:"rungs,omitempty"` // from independent variables to the model
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
	// beforehand, and Shape is the shape of its tables of terms (WalkOf). 0: only Z and marginals are asked for.
	Of int64 `msgpack:"of,omitempty"`

	extraStarts [][][]float64 // of further chains of each draw, see AnnealedMixture
}

// MostKnots bounds the knots of a ladder.
const MostKnots = 64

// Fits implements Sampling.
func (s *Annealing) Fits(_ *btn.Network, end int64) error {
	switch {
	case s.Rungs < 1 || s.Rungs > 1<<30:
		return btn.Misfit("%d rungs", s.Rungs)
	case s.Metropolis && s.Forests:
		return btn.Misfit("steps of single values and of forests")
	case !isRising(s.Knots):
		return btn.Misfit("%d knots from 0 to 1 that do not rise, or too many", len(s.Knots))
	case s.Of < 0 || s.Of > MostComponents || s.Of > 0 && end > s.Of:
		return btn.Misfit("components up to %d of %d", end, s.Of)
	}
	return nil
}

// isRising reports whether the knots rise from above 0 to 1, and are at most MostKnots. No knots are fine.
func isRising(knots []float64) bool {
	last := 0.0
	for _, x := range knots {
		if !(x > last) {
			return false
		}
		last = x
	}
	return len(knots) == 0 || len(knots) <= MostKnots && last == 1
}

// Describe implements Sampling.
func (s *Annealing) Describe(r *query.EstimateResult) { r.Size = s.Rungs }

// Takes implements Sampling.
func (s *Annealing) Takes(c *Chains) (each, setup float64) { return s.flops(c.Model) }

// Bytes implements Sampling.
func (s *Annealing) Bytes(c *Chains, components int64, marginals bool) float64 {
	return c.Model.Bytes(s.Path(), components, 1, marginals)
}

// Path returns the options of package annealing for these chains.
func (s *Annealing) Path() annealing.Path {
	path := annealing.Path{Rungs: s.Rungs, Product: s.Product, Knots: s.Knots, Seed: s.Seed, Modes: s.Modes, Given: s.extraStarts}
	switch {
	case s.Metropolis:
		path.Step = annealing.Metropolis
	case s.Forests:
		path.Step = annealing.Forests
	}
	return path
}

// flops returns the flops of all chains of a component, and those of the preparation before the first component of a part.
func (s *Annealing) flops(m *annealing.Model) (each, setup float64) {
	if s.Forests {
		setup = m.ForestFlops()
	}
	if s.Modes > 0 {
		setup += m.ModesFlops()
	}
	path := s.Path()
	return m.Flops(path.Step, path.Rungs) * path.Starts(), setup
}

// rungsFor returns the number of rungs for which all chains of a component take the given flops. It is a whole number, rounded down.
func (s *Annealing) rungsFor(m *annealing.Model, flops float64) float64 {
	path := s.Path()
	return m.Rungs(path.Step, flops/path.Starts())
}

// Draw implements Sampling.
func (s *Annealing) Draw(ctx context.Context, p *problem.Problem, from, to int64, want btn.Want) (btn.Value, error) {
	if s.Of > 0 {
		return s.drawStates(ctx, p, from, to, want)
	}
	chains, err := ChainsOf(ctx, p, want.Marginals)
	if err != nil {
		return btn.Value{}, err
	}
	if shape := chains.Prepared.Shape(); shape != s.Shape {
		return btn.Value{}, fault.New(fault.Internal, "the components are drawn for a network of another shape")
	}
	w, v, err := s.runChains(ctx, p, chains.Model, from, to, want.Marginals, 0)
	if err != nil || !want.Marginals || math.IsInf(w.Top, -1) {
		return v, err
	}
	v.Weights.Top = w.Top
	return v, setShares(v.Weights, chains.Prepared, w.Share, w.Squares)
}

// runChains carries the chains of the components from ≤ c < to, and returns their weights and a value with Z, flops and ln weights. It
// takes as many threads as fit the memory next to otherBytes, which the caller needs. The weights do not depend on the number of threads.
// The error is over budget if one thread does not fit.
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
	each, _ := s.flops(m)
	return weights, btn.Value{
		Z: scaled.FromLog(sampling.LnMean(weights.Ln)), Flops: each * float64(to-from), Weights: &btn.Weights{Ln: weights.Ln},
	}, nil
}

// Chains are the simplified network and the model that chains walk over.
type Chains struct {
	Prepared *truncated.Prepared
	Model    *annealing.Model
}

// Slots of a problem, in which it keeps the chains and the model of a walk.
type (
	chainsSlot struct{ marginals bool }
	walkSlot   struct{}
)

// unsignedBytes bounds the tables in which terms of both signs are added up before components are sampled. It is enough for clauses of
// about sixteen literals.
// Chosen.
const unsignedBytes = 1 << 24

// ChainsOf returns the simplified network of a problem and the model over it that chains walk over. If the network has entries below 0,
// terms of both signs are added up first; if that takes too much memory, the error is that of annealing.New, which refuses the signs.
// Other errors: those of truncated.Of and of annealing.New.
func ChainsOf(ctx context.Context, p *problem.Problem, marginals bool) (*Chains, error) {
	return problem.Form(ctx, p, chainsSlot{marginals}, nil, func() (*Chains, error) {
		prepared, err := truncated.Of(ctx, p, marginals)
		if err != nil {
			return nil, err
		}
		e := prepared.Expression()
		if e.Signed() {
			e, err = descent.Unsigned(ctx, e, prepared.Deciding(), min(p.Memory, unsignedBytes))
			if fault.CodeOf(err) == fault.OverBudget {
				e, err = prepared.Expression(), nil // which annealing refuses
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

// WalkOf returns the model that chains walk over if the question asks for states, and the tables of terms (package descent) that it is
// over. None of their indices is summed out. Errors: those of descent.Of and of annealing.New.
func WalkOf(ctx context.Context, p *problem.Problem) (*descent.Prepared, *annealing.Model, error) {
	terms, err := descent.Of(ctx, p, btn.AskSamples, nil)
	if err != nil {
		return nil, nil, err
	}
	model, err := problem.Form(ctx, p, walkSlot{}, nil, func() (*annealing.Model, error) { return annealing.New(terms.Terms()) })
	return terms, model, err
}
