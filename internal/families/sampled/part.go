package sampled

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/families/structured"
	"github.com/basetensor/basetensor/internal/families/truncated"
)

// Parts that are drawn at random.

// Sampled is some components of a random decomposition of B: every one is rank one, the indicator of a state x that was drawn, and its
// weight is such that α·Z(T^Q) = w/N with E w = Z. The components are the draws From ≤ c < To: each depends on the plan and on c
// alone.
type Sampled struct {
	Along *Sampling `msgpack:"-"`
	From  int64     `msgpack:"from"`
	To    int64     `msgpack:"to"`
}

// Kind is a way of drawing components.
type Kind string

// The kinds of Sampling.
const (
	// ByAnnealing: the ends of chains from independent variables to the model (package annealing).
	ByAnnealing Kind = "annealing"
	// ByMiniBuckets: independent draws from mini-buckets (package importance). Weights are bounded.
	ByMiniBuckets Kind = "mini-buckets"
	// BySweep: likewise from the states of a truncated sweep, mixed with mini-buckets. Weights are bounded.
	BySweep Kind = "sweep"
	// BySlices: independent draws of the values of a cut-set from mini-buckets, whose slices are contracted (package cutset).
	// Weights are bounded.
	BySlices Kind = "slices"
	// ByBeliefs: independent draws, index by index, from messages of belief propagation (package beliefs), mixed with mini-buckets.
	// Weights are bounded.
	ByBeliefs Kind = "beliefs"
	// ByStructure: the ends of chains from the low-rank part of the network's tables, which is drawn from exactly (package structured).
	ByStructure Kind = "structure"
)

var samplingKinds = []Kind{ByAnnealing, ByMiniBuckets, BySweep, BySlices, ByBeliefs, ByStructure}

// Sampling is how components are drawn.
type Sampling struct {
	Kind Kind `msgpack:"kind"`
	// digest of the simplified network's hypergraph: it fits no other
	Shape string `msgpack:"shape"`
	Seed  uint64 `msgpack:"seed"`
	// Spread is the variance of a weight over the square of its mean as the pilot saw it: bounds divide the weights by it, beforehand.
	Spread float64 `msgpack:"spread"`

	Rungs int `msgpack:"rungs,omitempty"` // annealing: from independent variables to the model
	// Metropolis says that steps are proposals that are accepted or not, else draws from conditional distributions.
	Metropolis bool `msgpack:"metropolis,omitempty"`
	// Forests says that spins whose couplings among themselves make no cycle are drawn together, given all others.
	Forests bool `msgpack:"forests,omitempty"`

	// Knots are β at as many equal parts of the rungs, rising, the last of them 1, and β is linear between them; none: from 0 to 1.
	Knots []float64 `msgpack:"knots,omitempty"`
	// Product says that components begin with draws from beliefs, else from uniform distributions.
	Product bool `msgpack:"product,omitempty"`
	// Modes is the number of starts beside the chains' own, at most: uniform draws, if their own are from beliefs, and modes
	// from a search. A component is one chain from each start. Other kinds keep the number that was chosen for chains.
	Modes int `msgpack:"modes,omitempty"`
	// Of is the total number of components where states are drawn among them: then none of the network's variables is summed out
	// beforehand, and Shape is the shape of its tables of terms. 0: Z and marginals alone.
	Of int64 `msgpack:"of,omitempty"`

	Order   []int   `msgpack:"order,omitempty"`   // mini-buckets: indices in the order they are eliminated
	Entries float64 `msgpack:"entries,omitempty"` // mini-buckets: of a product at most
	// Rest is the number of indices summed out for slices, the first of Order; all others are drawn.
	Rest int `msgpack:"rest,omitempty"`
	// Sweep is the plan of a sweep, with its maximum number of values on a leg.
	Sweep *truncated.TruncatedPlan `msgpack:"sweep,omitempty"`
	Bond  int                      `msgpack:"bond,omitempty"`
	// Follow is the change of a message, where values are drawn from beliefs, beyond which its dependants are updated; 0: none does.
	Follow float64 `msgpack:"follow,omitempty"`
	// Defence is the share of mini-buckets in the mixture, and the share of values which a truncation or messages may have lost.
	Defence float64 `msgpack:"defence,omitempty"`
	// Each is the cost of a draw, Setup the cost before the first, flops; of kinds with mini-buckets.
	Each  float64 `msgpack:"each,omitempty"`
	Setup float64 `msgpack:"setup,omitempty"`
	// Structure is the path of chains from a low-rank part.
	Structure *structured.Path `msgpack:"structure,omitempty"`
}

// MostComponents bounds the components of a random decomposition in one estimate: 2^24.
const MostComponents = int64(1) << 24

// Class implements Part.
func (*Sampled) Class() btn.Class { return btn.ClassSampled }

// Common implements Sharer.
func (p *Sampled) Common() any { return p.Along }

// Share implements Sharer.
func (p *Sampled) Share(common any) (ok bool) {
	p.Along, ok = common.(*Sampling)
	return ok
}

// Fits implements Part. Whether the shape is the simplified network's is for the contraction to say.
func (p *Sampled) Fits(n *btn.Network) error {
	switch s := p.Along; {
	case s == nil:
		return btn.Misfit("it does not say how it is drawn")
	case s.Kind == ByAnnealing && (s.Rungs < 1 || s.Rungs > 1<<30):
		return btn.Misfit("%d rungs", s.Rungs)
	case s.Modes < 0 || s.Modes > MostModes:
		return btn.Misfit("%d modes, at most %d", s.Modes, MostModes)
	case s.Metropolis && s.Forests:
		return btn.Misfit("steps of single values and of forests")
	case !rising(s.Knots):
		return btn.Misfit("%d knots from 0 to 1 that do not rise, or too many", len(s.Knots))
	case s.Kind == BySweep && (s.Sweep == nil || s.Sweep.Family != btn.FamilySweep || s.Bond < 1 || !(s.Defence > 0 && s.Defence < 1)):
		return btn.Misfit("a sweep of bond %d with a defence of %v, or none", s.Bond, s.Defence)
	case s.Kind == ByBeliefs && !(s.Follow >= 0 && s.Follow <= 1 && s.Defence > 0 && s.Defence < 1):
		return btn.Misfit("beliefs that follow by %v with a defence of %v", s.Follow, s.Defence)
	case s.Kind == BySlices && (s.Rest < 1 || s.Rest > len(s.Order)):
		return btn.Misfit("%d of %d indices are summed out", s.Rest, len(s.Order))
	case s.Kind == ByStructure && (s.Structure == nil || s.Of > 0):
		return btn.Misfit("chains from a low-rank part that is not there, or whose states are asked for")
	case s.Kind == ByStructure && s.Structure.Fits(n) != nil:
		return s.Structure.Fits(n)
	case !slices.Contains(samplingKinds, s.Kind):
		return btn.Misfit("%.40q is no kind of this version", s.Kind)
	case !(s.Entries >= 0) || !(s.Each >= 0) || !(s.Setup >= 0) || s.Each+s.Setup+s.Entries > math.MaxFloat64:
		return btn.Misfit("%v entries, %v and %v flops", s.Entries, s.Each, s.Setup)
	case !(s.Spread >= 0) || math.IsInf(s.Spread, 1):
		return btn.Misfit("a spread of %v", s.Spread)
	case p.From < 0 || p.To <= p.From || p.To > MostComponents:
		return btn.Misfit("components %d to %d of at most %d", p.From, p.To, MostComponents)
	case s.Of < 0 || s.Of > MostComponents || s.Of > 0 && p.To > s.Of:
		return btn.Misfit("components %d to %d of %d", p.From, p.To, s.Of)
	}
	return nil
}

// MostModes is the largest number of starts beside the chains' own.
const MostModes = 16

// MostKnots bounds the knots of a ladder.
const MostKnots = 64

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

// Describe implements Part.
func (p *Sampled) Describe(r *btn.EstimateResult) {
	r.Family, r.Kind, r.Size, r.Bond, r.Truncated = btn.FamilySampled, string(p.Along.Kind), p.Along.Rungs, p.Along.Bond, true
}

// Bundles returns the range first ≤ k < end of those of n bundles of all components that the part has a share in.
func (p *Sampled) Bundles(n int64) (first, end int64) {
	return p.From * n / p.Along.Of, (p.To*n + p.Along.Of - 1) / p.Along.Of
}

// Bundle returns the components of the k-th of n bundles that are the part's.
func (p *Sampled) Bundle(k, n int64) (from, to int64) {
	of := p.Along.Of
	return max(p.From, (k*of+n-1)/n), min(p.To, ((k+1)*of+n-1)/n)
}

// Rule implements btn.Ruled.
func (*Sampled) Rule() btn.Rule { return btn.Pooled }
