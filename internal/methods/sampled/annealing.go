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
	// Metropolis says that steps are proposals that are accepted or not, else draws from conditional distributions.
	Metropolis bool `msgpack:"metropolis,omitempty"`
	// Forests says that spins whose couplings among themselves make no cycle are drawn together, given all others.
	Forests bool `msgpack:"forests,omitempty"`
	// Knots are β at as many equal parts of the rungs, rising, the last of them 1, and β is linear between them; none: from 0 to 1.
	Knots []float64 `msgpack:"knots,omitempty"`
	// Product says that components begin with draws from beliefs, else from uniform distributions.
	Product bool `msgpack:"product,omitempty"`
	// Of is the total number of components where states are drawn among them: then none of the network's variables is summed out
	// beforehand, and Shape is the shape of its tables of terms. 0: Z and marginals alone.
	Of int64 `msgpack:"of,omitempty"`

	given [][][]float64 // further starts, see AnnealedMixture
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
	case !rising(s.Knots):
		return btn.Misfit("%d knots from 0 to 1 that do not rise, or too many", len(s.Knots))
	case s.Of < 0 || s.Of > MostComponents || s.Of > 0 && end > s.Of:
		return btn.Misfit("components up to %d of %d", end, s.Of)
	}
	return nil
}

// rising reports whether knots rise from above 0 to 1.
func rising(knots []float64) bool {
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

// Path is how chains are carried.
func (s *Annealing) Path() annealing.Path {
	path := annealing.Path{Rungs: s.Rungs, Product: s.Product, Knots: s.Knots, Seed: s.Seed, Modes: s.Modes, Given: s.given}
	switch {
	case s.Metropolis:
		path.Step = annealing.Metropolis
	case s.Forests:
		path.Step = annealing.Forests
	}
	return path
}

// flops returns the flops of a component's chains, and of the setup before the first component of a part.
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

// rungs is the number of rungs for which a component's chains take so many flops, rounded down.
func (s *Annealing) rungs(m *annealing.Model, flops float64) float64 {
	path := s.Path()
	return m.Rungs(path.Step, flops/path.Starts())
}

// Draw implements Sampling.
func (s *Annealing) Draw(ctx context.Context, p *problem.Problem, from, to int64, want btn.Want) (btn.Value, error) {
	if s.Of > 0 {
		return s.states(ctx, p, from, to, want)
	}
	chains, err := ChainsOf(ctx, p, want.Marginals)
	if err != nil {
		return btn.Value{}, err
	}
	if shape := chains.Prepared.Shape(); shape != s.Shape {
		return btn.Value{}, fault.New(fault.Internal, "the components are drawn for a network of another shape")
	}
	w, v, err := s.run(ctx, p, chains.Model, from, to, want.Marginals, 0)
	if err != nil || !want.Marginals || math.IsInf(w.Top, -1) {
		return v, err
	}
	v.Weights.Top = w.Top
	return v, shares(v.Weights, chains.Prepared, w.Share, w.Squares)
}

// run carries the chains of some components on the threads that the memory holds with so many bytes beside them; plans assume one. Weights
// do not depend on it.
func (s *Annealing) run(
	ctx context.Context, p *problem.Problem, m *annealing.Model, from, to int64, marginals bool, beside float64,
) (*annealing.Weights, btn.Value, error) {
	path, threads := s.Path(), sumproduct.Threads(p.Threads)
	need := m.Bytes(path, to-from, threads, marginals) + beside
	for ; threads > 1 && need > float64(p.Memory); threads-- {
		need = m.Bytes(path, to-from, threads-1, marginals) + beside
	}
	if need > float64(p.Memory) {
		return nil, btn.Value{}, fault.New(fault.OverBudget, "%w: chains need %.3g bytes, %d are allowed", contraction.ErrMemory, need, p.Memory)
	}
	w, err := m.Run(ctx, path, from, to, threads, marginals)
	if err != nil {
		return nil, btn.Value{}, err
	}
	each, _ := s.flops(m)
	return w, btn.Value{
		Z: scaled.FromLog(sampling.LnMean(w.Ln)), Flops: each * float64(to-from), Weights: &btn.Weights{Ln: w.Ln},
	}, nil
}

// Chains are the simplified network and the model that chains walk over.
type Chains struct {
	Prepared *truncated.Prepared
	Model    *annealing.Model
}

// Places among the forms of a problem.
type (
	chainsSlot struct{ marginals bool }
	walkSlot   struct{}
)

// unsignedBytes bounds the tables in which terms of both signs are summed for components that are sampled: clauses of some
// sixteen literals.
// Chosen.
const unsignedBytes = 1 << 24

// ChainsOf returns the chains that components of a problem are drawn from. Errors: those of truncated.Of and of annealing.New.
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

// WalkOf returns the model that chains walk over where their states are asked for: over the tables of terms of package descent, of which
// no index is summed out. Errors: those of descent.Of and of annealing.New.
func WalkOf(ctx context.Context, p *problem.Problem) (*descent.Prepared, *annealing.Model, error) {
	terms, err := descent.Of(ctx, p, btn.AskSamples, nil)
	if err != nil {
		return nil, nil, err
	}
	model, err := problem.Form(ctx, p, walkSlot{}, nil, func() (*annealing.Model, error) { return annealing.New(terms.Terms()) })
	return terms, model, err
}
