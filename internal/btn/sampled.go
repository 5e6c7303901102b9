package btn

// Sampled components: a random decomposition, whose mean over the draws is Z.

import "math"

// Sampled is some components of a random decomposition of B: every one is rank one, the indicator of the state x where a chain ended, and
// its weight is such that α·Z(T^Q) = w/N with E w = Z. The components are the chains From ≤ c < To: what each draws depends on the
// plan and on c alone.
type Sampled struct {
	Along *Sampling `msgpack:"-"`
	From  int64     `msgpack:"from"`
	To    int64     `msgpack:"to"`
}

// Sampling is how components are drawn: annealed importance sampling (package annealing) from uniformly random states.
type Sampling struct {
	// digest of the simplified network's hypergraph: it fits no other
	Shape string `msgpack:"shape"`
	Rungs int    `msgpack:"rungs"` // from independent variables to the model
	// Metropolis says that steps are proposals that are accepted or not, else draws from conditional distributions.
	Metropolis bool `msgpack:"metropolis,omitempty"`
	// Product says that components begin with draws from beliefs, else from uniform distributions.
	Product bool   `msgpack:"product,omitempty"`
	Seed    uint64 `msgpack:"seed"`
	// Spread is the variance of a weight over the square of its mean as the pilot saw it: bounds divide the weights by it, beforehand.
	Spread float64 `msgpack:"spread"`
	// Of is how many components there are altogether where states are drawn among them: then none of the network's variables is summed
	// out beforehand, and Shape is that of its tables of terms. 0: Z and marginals alone.
	Of int64 `msgpack:"of,omitempty"`
}

// MostComponents is how many components of a random decomposition there are at most in one estimate: 2^24.
const MostComponents = int64(1) << 24

// Class implements Part.
func (*Sampled) Class() Class { return ClassSampled }

// Common implements Sharer.
func (p *Sampled) Common() any { return p.Along }

// Share implements Sharer.
func (p *Sampled) Share(common any) (ok bool) {
	p.Along, ok = common.(*Sampling)
	return ok
}

// Fits implements Part. Whether the shape is the simplified network's is for the contraction to say.
func (p *Sampled) Fits(*Network) error {
	switch s := p.Along; {
	case s == nil:
		return misfit("it does not say how it is drawn")
	case s.Rungs < 1 || s.Rungs > 1<<30:
		return misfit("%d rungs", s.Rungs)
	case !(s.Spread >= 0) || math.IsInf(s.Spread, 1):
		return misfit("a spread of %v", s.Spread)
	case p.From < 0 || p.To <= p.From || p.To > MostComponents:
		return misfit("components %d to %d of at most %d", p.From, p.To, MostComponents)
	case s.Of < 0 || s.Of > MostComponents || s.Of > 0 && p.To > s.Of:
		return misfit("components %d to %d of %d", p.From, p.To, s.Of)
	}
	return nil
}

// Describe implements Part.
func (p *Sampled) Describe(r *EstimateResult) {
	r.Family, r.Size, r.Truncated = FamilySampled, p.Along.Rungs, true
}

func (*Sampled) part() {}

// Weights are what sampled components weigh.
type Weights struct {
	// Ln are ln w of every component in sequence, nats, −Inf for 0: Z is their mean.
	Ln []float64 `msgpack:"l"`
	// LnMost is ln of what no weight of these components can exceed, nats; none where nothing bounds them.
	LnMost *float64 `msgpack:"m,omitempty"`
	// Share[offset(v)+a] is Σ e^{Ln−Top} over the components where variable v has value a, Squares the same with e^{2(Ln−Top)}; Domains
	// are those of the variables. None where marginals were not asked for.
	Top     float64   `msgpack:"t"`
	Domains []int     `msgpack:"d,omitempty"`
	Share   []float64 `msgpack:"s,omitempty"`
	Squares []float64 `msgpack:"q,omitempty"`
	Picked  *Picked   `msgpack:"x,omitempty"` // nil where states were not asked for
}
