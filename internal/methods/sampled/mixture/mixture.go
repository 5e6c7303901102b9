// Package mixture has mixtures of components S ∘ R as probability densities, and learns them from weighted states.
//
//	q(x) = Σ_m a_m S_m(k_m(x)) Π_i r_mi(x_i),   k_m(x) = the number of indices that are not at the centre of component m
//
// Component m is the paper's symmetry-rank-one tensor with two levels, {centre, all other values}, normalised; without S it is rank one. A
// state is drawn exactly: a component, the count, then index by index by Poisson's binomial recursion. A mixture learned by expectation
// maximisation (Dempster, Laird, Rubin, 1977) minimises the cross-entropy to the distribution that the states are drawn from.
package mixture

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/pkg/fault"
)

// MaxComponents is the largest number of components of a mixture.
const MaxComponents = 16

// MaxCountedIndices is the largest number of indices of components with counts: their recursion has a table of its square. Chosen: half a
// megabyte each.
const MaxCountedIndices = 256

// Component is one component of a mixture.
type Component struct {
	Weight float64     `msgpack:"weight"`
	Values [][]float64 `msgpack:"values"` // r by index: probabilities of the values
	// Counts[k] is the probability that k indices are not at the centre, Centre the values of the centre. They are nil for a component of
	// rank one.
	Counts []float64 `msgpack:"counts,omitempty"`
	Centre []int     `msgpack:"centre,omitempty"`
}

// Mixture is a density over the states of some indices.
type Mixture struct {
	Components []Component `msgpack:"components"`
}

// IsRankOne reports whether the mixture has a valid number of components, and none of them has counts.
func (m *Mixture) IsRankOne() bool {
	return len(m.Components) > 0 && len(m.Components) <= MaxComponents &&
		!slices.ContainsFunc(m.Components, func(c Component) bool { return c.Counts != nil })
}

// Values returns the probabilities of single values in every component: values[k][i][a] for value a of index i in component k.
func (m *Mixture) Values() (values [][][]float64) {
	for k := range m.Components {
		values = append(values, m.Components[k].Values)
	}
	return values
}

// ParameterCount returns the number of parameters: for each component its weight, its counts and its probabilities of values.
func (m *Mixture) ParameterCount() (n int) {
	for _, c := range m.Components {
		n += 1 + len(c.Counts)
		for _, row := range c.Values {
			n += len(row)
		}
	}
	return n
}

// Flops returns the time of a draw with its density in flops, at 3e9 a second.
func (m *Mixture) Flops() float64 {
	indices := float64(len(m.Components[0].Values))
	return 60 * (indices + 1) * float64(len(m.Components)+4) // estimates: 60 for an index, and the draw as 4 densities
}

// Sampler draws from a mixture. It does not change and may be used by several goroutines.
type Sampler struct {
	dims       []int
	components []component
}

// component is a component of a mixture with what its density needs.
type component struct {
	weight   float64
	lnWeight float64
	values   [][]float64   // r, by index
	lnValues [][]float64   // ln r
	counts   *countDensity // nil for rank one
}

// New returns a sampler of a mixture over indices that have dims[i] values. Errors: bad input if the mixture does not fit them, or if
// weights, probabilities or counts are below 0 or do not add up to 1.
func New(m *Mixture, dims []int) (*Sampler, error) {
	s := &Sampler{dims: dims}
	total := 0.0
	for k := range m.Components {
		c, err := newComponent(&m.Components[k], dims)
		if err != nil {
			return nil, err
		}
		total += c.weight
		s.components = append(s.components, c)
	}
	if len(m.Components) > MaxComponents || !isNearOne(total) {
		return nil, fault.New(fault.BadInput, "mixture: weights of %d components add up to %v", len(m.Components), total)
	}
	return s, nil
}

// isNearOne reports whether the sum of probabilities is 1, apart from rounding.
func isNearOne(total float64) bool { return math.Abs(total-1) <= 1e-9 }

// newComponent checks a component and computes the logarithms of its probabilities, and the recursion of its counts if it has counts.
// Errors: those of New.
func newComponent(c *Component, dims []int) (component, error) {
	result := component{weight: c.Weight, values: c.Values, lnWeight: math.Log(c.Weight), lnValues: make([][]float64, len(dims))}
	if len(c.Values) != len(dims) || !(c.Weight >= 0) {
		return result, fault.New(fault.BadInput,
			"mixture: a component of weight %v over %d of %d indices", c.Weight, len(c.Values), len(dims))
	}
	for i, row := range c.Values {
		if len(row) != dims[i] || !isDistribution(row) {
			return result, fault.New(fault.BadInput, "mixture: index %d has no distribution of %d values", i, dims[i])
		}
		result.lnValues[i] = make([]float64, len(row))
		for a, p := range row {
			result.lnValues[i][a] = math.Log(p)
		}
	}
	if c.Counts == nil { // rank one
		return result, nil
	}
	var err error
	result.counts, err = c.countDensity(dims)
	return result, err
}

// countDensity checks the counts and the centre of a component, and computes the recursion of its counts. Errors: those of New.
func (c *Component) countDensity(dims []int) (*countDensity, error) {
	if len(c.Counts) != len(dims)+1 || len(c.Centre) != len(dims) || len(dims) > MaxCountedIndices || !isDistribution(c.Counts) {
		return nil, fault.New(fault.BadInput,
			"mixture: no distribution of the counts of %d indices, at most %d", len(dims), MaxCountedIndices)
	}
	away := make([]float64, len(dims)) // probability that an index is not at the centre
	for i, a := range c.Centre {
		if a < 0 || a >= dims[i] {
			return nil, fault.New(fault.BadInput, "mixture: value %d of %d is no centre", a, dims[i])
		}
		away[i] = 1 - c.Values[i][a]
	}
	return newCountDensity(c.Centre, away, c.Counts), nil
}

// isDistribution reports whether p are probabilities that add up to 1.
func isDistribution(p []float64) bool {
	total := 0.0
	for _, x := range p {
		if !(x >= 0) {
			return false
		}
		total += x
	}
	return isNearOne(total)
}

// Draw draws a state into x, from one component that it draws by weight. It returns ln of the state's density q in the whole mixture, nats.
// Cost: Flops.
func (s *Sampler) Draw(r *rand.Rand, x []int) float64 {
	c := &s.components[drawNumber(r, len(s.components), func(k int) float64 { return s.components[k].weight })]
	if c.counts == nil { // the indices are independent
		for i, row := range c.values {
			x[i] = drawNumber(r, len(row), func(a int) float64 { return row[a] })
		}
	} else { // they depend on each other: the number of indices that are not at the centre has a distribution of its own
		c.counts.draw(r, c.values, x)
	}
	return s.LnDensity(x)
}

// drawNumber draws a number 0 ≤ k < n with probability p(k). If the probabilities add up to a little less than 1 by rounding, the last one
// above 0 has the difference.
func drawNumber(r *rand.Rand, n int, p func(k int) float64) (chosen int) {
	remaining := r.Float64()
	for k := range n {
		if x := p(k); x > 0 {
			if chosen = k; remaining < x {
				break
			}
			remaining -= x
		}
	}
	return chosen
}

// LnDensity returns ln q of a state, nats, −Inf if q is 0. The density q of the mixture is the sum of the components' densities times their
// weights.
func (s *Sampler) LnDensity(x []int) float64 {
	var buffer [MaxComponents]float64
	ln := buffer[:len(s.components)]
	for k := range s.components {
		ln[k] = s.components[k].lnDensity(x) // with ln of the component's weight
	}
	return floats.LnSum(ln)
}

// lnDensity returns ln of the component's weight times its density at state x. The density is the product of the probabilities of the
// values of x. For a component with counts, that is multiplied by a factor (lnS) for the number of indices that are not at the component's
// centre.
func (c *component) lnDensity(x []int) float64 {
	ln := c.lnWeight
	for i, a := range x {
		ln += c.lnValues[i][a]
	}
	if c.counts != nil {
		ln += c.counts.lnS[c.counts.countAway(x)]
	}
	return ln
}
