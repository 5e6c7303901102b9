// Package sampled is the family of unbiased estimates by random components: independent draws and annealed chains, whose weights have
// the mean Z. A pilot chooses the kind with the least variance for its work. A kind is a type with a file of its own; the sampling
// itself is in packages importance, engine/annealing, engine/beliefs, engine/cutset and engine/mixture.
package sampled

// Parts that are drawn at random, and the kinds of drawing them.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/query"
)

// kinds are the ways of drawing components. The independent ones are tried by a pilot in this sequence, after mini-buckets. A new kind is
// a line here, and a type of its own.
var kinds = []struct {
	name Kind
	make func() Sampling // empty, to be decoded into
	try  func(context.Context, *trial) error
}{
	{ByAnnealing, func() Sampling { return new(Annealing) }, nil},
	{ByMiniBuckets, func() Sampling { return new(MiniBuckets) }, nil},
	{BySlices, func() Sampling { return new(Slices) }, trySlices},
	{ByBeliefs, func() Sampling { return new(Beliefs) }, tryBeliefs},
	{BySweep, func() Sampling { return new(Sweep) }, trySweeps},
	{ByStructure, func() Sampling { return new(Structure) }, nil},
	{ByMixture, func() Sampling { return new(Mixture) }, nil},
	{ByAnnealedMixture, func() Sampling { return new(AnnealedMixture) }, nil},
}

// Kind names a way of drawing components.
type Kind string

// Sampling is how components are drawn: a pointer to a struct whose fields have msgpack tags, Base among them.
type Sampling interface {
	// About returns the fields of all kinds.
	About() *Base
	// Fits checks the kind's own fields for parts whose last component is before end. See btn.Part.
	Fits(n *btn.Network, end int64) error
	// Describe fills in what the kind says of an estimate beside its name.
	Describe(*query.EstimateResult)
	// Takes returns the flops of a component, and before the first of a part.
	Takes(*Chains) (each, setup float64)
	// Bytes returns the memory of a part of so many components on one thread.
	Bytes(c *Chains, components int64, marginals bool) float64
	// Missed is the share of draws that may weigh almost nothing, so that a pilot has not seen them; 0 for chains.
	Missed() float64
	// Draw weighs the components from ≤ c < to: Value.Weights. Errors: internal where it was chosen for another network; over budget;
	// those of the engine; the context's.
	Draw(ctx context.Context, p *problem.Problem, from, to int64, want btn.Want) (btn.Value, error)
}

// Base is what all kinds of Sampling have.
type Base struct {
	Kind Kind `msgpack:"kind"`
	// digest of the simplified network's hypergraph: it fits no other
	Shape string `msgpack:"shape"`
	Seed  uint64 `msgpack:"seed"`
	// Spread is the variance of a weight over the square of its mean as the pilot saw it: bounds divide the weights by it, beforehand.
	Spread float64 `msgpack:"spread"`
	// Modes is the number of starts beside the chains' own, at most: uniform draws, if their own are from beliefs, and modes
	// from a search. A component is one chain from each start. Other kinds keep the number that was chosen for chains.
	Modes int `msgpack:"modes,omitempty"`
}

// MostModes is the largest number of starts beside the chains' own.
const MostModes = 32

// About implements Sampling.
func (b *Base) About() *Base { return b }

// Describe implements Sampling.
func (*Base) Describe(*query.EstimateResult) {}

// Missed implements Sampling.
func (*Base) Missed() float64 { return 0 }

// Sampled is some components of a random decomposition of B: every one is rank one, the indicator of a state x that was drawn, and its
// weight is such that α·Z(T^Q) = w/N with E w = Z. The components are the draws From ≤ c < To: each depends on the plan and on c
// alone.
type Sampled struct {
	Along Sampling `msgpack:"-"`
	From  int64    `msgpack:"from"`
	To    int64    `msgpack:"to"`
}

// MostComponents bounds the components of a random decomposition in one estimate: 2^24.
const MostComponents = int64(1) << 24

// Class implements Part.
func (*Sampled) Class() btn.Class { return btn.ClassSampled }

// About implements btn.Part.
func (p *Sampled) About() btn.About {
	about := btn.About{Rule: btn.Pooled, KeepsRange: true, Shared: &p.Along, SharedKind: newKind} // weights are logarithms
	if p.Along == nil {
		return about
	}
	sampling := p.Along.About()
	about.Result = query.EstimateResult{Family: query.FamilySampled, Kind: string(sampling.Kind), Truncated: true}
	p.Along.Describe(&about.Result)
	about.Sample = btn.Sample{
		Components: p.To - p.From, Spread: sampling.Spread, Missed: p.Along.Missed(), Modes: sampling.Modes > 0,
	}
	return about
}

// newKind returns an empty sampling of a kind. It returns nil for a kind that this version does not know.
func newKind(name string) any {
	for _, k := range kinds {
		if string(k.name) == name {
			return k.make()
		}
	}
	return nil
}

// Fits implements Part. Whether the shape is the simplified network's is for the contraction to say.
func (p *Sampled) Fits(n *btn.Network) error {
	if p.Along == nil {
		return btn.Misfit("it does not say how it is drawn")
	}
	switch s := p.Along.About(); {
	case newKind(string(s.Kind)) == nil:
		return btn.Misfit("%.40q is no kind of this version", s.Kind)
	case s.Modes < 0 || s.Modes > MostModes:
		return btn.Misfit("%d modes, at most %d", s.Modes, MostModes)
	case !(s.Spread >= 0) || math.IsInf(s.Spread, 1):
		return btn.Misfit("a spread of %v", s.Spread)
	case p.From < 0 || p.To <= p.From || p.To > MostComponents:
		return btn.Misfit("components %d to %d of at most %d", p.From, p.To, MostComponents)
	}
	return p.Along.Fits(n, p.To)
}

// Contract implements contraction.Contractor. Z is the mean of the weights.
func (p *Sampled) Contract(ctx context.Context, on *problem.Problem, want btn.Want) (btn.Value, error) {
	if err := contraction.NoJoint(want); err != nil {
		return btn.Value{}, err
	}
	return p.Along.Draw(ctx, on, p.From, p.To, want)
}
