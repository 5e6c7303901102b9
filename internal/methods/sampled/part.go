// Package sampled is the method of unbiased estimates by random components: independent draws and annealed chains, whose weights have the
// mean Z. A pilot chooses the kind with the smallest variance for its work. Each kind is a type in a file of the same name. The sampling
// itself is in the packages importance, annealing, beliefs, cutset and mixture.
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

// kinds lists the ways of drawing components. A pilot tries those with try in this sequence, after mini-buckets. A new kind is a line
// here and a type.
var kinds = []struct {
	name Kind
	make func() Sampling                     // returns an empty value to decode into
	try  func(context.Context, *trial) error // tries independent draws; nil: not in a trial
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

// Sampling is a way of drawing components with all it needs: a pointer to a struct with msgpack tags that embeds Base.
type Sampling interface {
	// About returns the fields of all kinds.
	About() *Base
	// Fits checks the kind's own fields for parts whose last component is before end. See btn.Part.
	Fits(n *btn.Network, end int64) error
	// Describe sets the fields of a result that depend on the kind.
	Describe(*query.EstimateResult)
	// Cost returns the flops of a component, and those before the first component of a part.
	Cost(*Chains) (componentFlops, setupFlops float64)
	// Bytes returns the memory that a part with the given number of components takes on one thread.
	Bytes(c *Chains, components int64, marginals bool) float64
	// UnseenShare returns the share of draws that a pilot may not have seen, since states there are almost never drawn; 0 for chains.
	UnseenShare() float64
	// Draw draws the components from ≤ c < to and returns their weights in Value.Weights. Errors: internal if the sampling was chosen for
	// another network; over budget; those of the engine; the context's.
	Draw(ctx context.Context, p *problem.Problem, from, to int64, want btn.Want) (btn.Value, error)
}

// Base is what all kinds of Sampling have.
type Base struct {
	Kind Kind `msgpack:"kind"`
	// Shape is the digest of the hypergraph of the simplified network. The sampling fits no other.
	Shape string `msgpack:"shape"`
	Seed  uint64 `msgpack:"seed"`
	// Spread is the variance of a weight over the square of its mean in the pilot. It decides into how many bundles a bound divides
	// weights.
	Spread float64 `msgpack:"spread"`
	// Modes is the largest number of additional starts of chains: uniform draws, if chains begin with beliefs, and modes from a search. A
	// component is one chain from each start. Kinds of independent draws keep the number that was chosen for chains.
	Modes int `msgpack:"modes,omitempty"`
}

// MaxModes is the largest number of additional starts (Base.Modes).
const MaxModes = 32

// About implements Sampling. It returns b itself.
func (b *Base) About() *Base { return b }

// Describe implements Sampling. It sets nothing; kinds with a size or a bond override it.
func (*Base) Describe(*query.EstimateResult) {}

// UnseenShare implements Sampling. It returns 0, for chains.
func (*Base) UnseenShare() float64 { return 0 }

// Sampled is a part with the components From ≤ c < To of a random decomposition of B into N components. Each component has rank one: it
// is the indicator of a state x that is drawn. Its weight w is such that α·Z(T^Q) = w/N, with E w = Z. A component depends only on the
// plan and on c.
type Sampled struct {
	Sampling Sampling `msgpack:"-"`
	From     int64    `msgpack:"from"`
	To       int64    `msgpack:"to"`
}

// MaxComponents bounds the components of a random decomposition in one estimate: 2^24.
const MaxComponents = int64(1) << 24

// Class implements Part.
func (*Sampled) Class() btn.Class { return btn.ClassSampled }

// About implements btn.Part. It describes the result and how the weights of several parts are pooled.
func (p *Sampled) About() btn.About {
	// KeepsRange: weights are logarithms, so that they do not leave the range of float64.
	about := btn.About{Rule: btn.Pooled, KeepsRange: true, Shared: &p.Sampling, SharedKind: newKind}
	if p.Sampling == nil {
		return about
	}
	sampling := p.Sampling.About()
	about.Result = query.EstimateResult{Family: query.FamilySampled, Kind: string(sampling.Kind), Truncated: true}
	p.Sampling.Describe(&about.Result)
	about.Sample = btn.Sample{
		Components: p.To - p.From, Spread: sampling.Spread, Missed: p.Sampling.UnseenShare(), Modes: sampling.Modes > 0,
	}
	return about
}

// newKind returns an empty Sampling of the kind with that name, to decode into. It returns nil if this version does not know the kind.
func newKind(name string) any {
	for _, k := range kinds {
		if string(k.name) == name {
			return k.make()
		}
	}
	return nil
}

// Fits implements Part. It checks the fields of all kinds and those of the part's own kind. It does not check the shape of the simplified
// network, which the contraction does.
func (p *Sampled) Fits(n *btn.Network) error {
	if p.Sampling == nil {
		return btn.Misfit("it does not say how it is drawn")
	}
	switch s := p.Sampling.About(); {
	case newKind(string(s.Kind)) == nil:
		return btn.Misfit("%.40q is no kind of this version", s.Kind)
	case s.Modes < 0 || s.Modes > MaxModes:
		return btn.Misfit("%d modes, at most %d", s.Modes, MaxModes)
	case !(s.Spread >= 0) || math.IsInf(s.Spread, 1):
		return btn.Misfit("a spread of %v", s.Spread)
	case p.From < 0 || p.To <= p.From || p.To > MaxComponents:
		return btn.Misfit("components %d to %d of at most %d", p.From, p.To, MaxComponents)
	}
	return p.Sampling.Fits(n, p.To)
}

// Contract implements contraction.Contractor. Z is the mean of the weights.
func (p *Sampled) Contract(ctx context.Context, on *problem.Problem, want btn.Want) (btn.Value, error) {
	if err := contraction.RefuseJoint(want); err != nil {
		return btn.Value{}, err
	}
	return p.Sampling.Draw(ctx, on, p.From, p.To, want)
}
