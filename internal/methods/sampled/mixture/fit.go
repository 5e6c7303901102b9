package mixture

// Learning: expectation maximisation on weighted states.

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/base/floats"
)

// Parameters of learning. Chosen.
const (
	maxRounds        = 30   // of expectation and maximisation
	settledGain      = 1e-3 // gain of a round, nats of ln q on average, below which it is the last
	centreRounds     = 4    // of a search for a centre
	balanceSteps     = 4    // to the marginals of a component that counts, in every round
	balanceExponent  = 0.7  // of such a step: 1 would be the whole ratio of odds
	pseudoStates     = 1    // number of states, spread evenly over the values, that every component has seen in addition
	indexFlops       = 12   // of an index of a state in a component and round
	independentShare = 0.05 // of the counts' distribution, for that of independent indices
)

// Options are those of a fit.
type Options struct {
	Components int
	Counted    bool // components have Component.Counts, if there are at most MaxCountedIndices indices
	Seed       uint64
}

// Work returns an upper bound of the cost in flops of a fit to a given number of states. It is the cost of a round times maxRounds. The
// search for a component's centre, centreRounds long, is made once before all rounds, so its cost is divided by maxRounds.
func Work(o Options, states int, dims []int) float64 {
	n := float64(len(dims))
	perRound := indexFlops * n * float64(states)
	if o.Counted {
		// For every index of a state, a round of the search for a centre has a distance and a covariance: twice indexFlops. A step that
		// balances marginals takes 8 flops for each pair of an index and a count.
		perRound += 2*indexFlops*n*float64(states)/maxRounds*centreRounds + 8*balanceSteps*n*n
	}
	return perRound * maxRounds * float64(o.Components)
}

// Fit learns a mixture from states by expectation maximisation, until a round gains less than settledGain. A state has a value per index,
// and the weights of all states add up to 1. The same input gives the same mixture. The error is that of the context. Cost: at most Work.
func Fit(ctx context.Context, dims []int, states [][]int, weights []float64, o Options) (*Mixture, error) {
	// Divide the states between the components: shares[k][j] is the part of state j's weight that component k has.
	f := &fitter{dims: dims, states: states, weights: weights, effectiveStates: effectiveNumber(weights)}
	isCounted := o.Counted && len(dims) <= MaxCountedIndices
	m := &Mixture{Components: make([]Component, min(o.Components, MaxComponents))}
	const stream = 0x6d6978 // "mix": random numbers that nothing else with this seed has
	shares := f.divideStates(len(m.Components), rand.New(rand.NewPCG(o.Seed, stream)))
	for k := range m.Components {
		if isCounted {
			m.Components[k].Centre = f.findCentre(shares[k])
		}
	}

	previousLn := math.Inf(-1)
	for range maxRounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for k := range m.Components {
			f.maximise(&m.Components[k], shares[k])
		}
		f.normaliseWeights(m)
		meanLn, err := f.expect(m, shares)
		if err != nil {
			return nil, err
		}
		if meanLn < previousLn+settledGain {
			break
		}
		previousLn = meanLn
	}
	return m, nil
}

// fitter learns a mixture from weighted states.
type fitter struct {
	dims            []int
	states          [][]int
	weights         []float64 // by state
	effectiveStates float64   // effective number of states
}

// effectiveNumber returns the effective number (Σ w)²/Σ w² of weights: n equal weights have n.
func effectiveNumber(w []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, x := range w {
		sum += x
		squares += x * x
	}
	return sum * sum / squares
}

// divideStates gives every state to one component: it draws one of the states for each component as its seed, and gives every state to the
// component with the nearest seed. Seeds are drawn far from each other (Arthur, Vassilvitskii, k-means++, 2007). shares[k][j] is the weight
// of state j if it is given to component k, and 0 otherwise.
func (f *fitter) divideStates(components int, r *rand.Rand) (shares [][]float64) {
	// Draw each seed with probability proportional to weight times squared distance to the nearest seed so far.
	distances := make([]float64, len(f.states)) // by state: to the nearest seed
	nearest := make([]int, len(f.states))       // by state: the component of the nearest seed
	for k := range components {
		total := 0.0
		for j, w := range f.weights {
			if k == 0 {
				distances[j] = 1
			}
			total += w * distances[j] * distances[j]
		}
		if !(total > 0) {
			break // all states are seeds
		}
		probability := func(j int) float64 { return f.weights[j] * distances[j] * distances[j] / total }
		seed := f.states[drawNumber(r, len(f.states), probability)]
		for j, x := range f.states {
			if d := hammingDistance(x, seed); k == 0 || d < distances[j] {
				distances[j], nearest[j] = d, k
			}
		}
	}

	shares = make([][]float64, components)
	for k := range shares {
		shares[k] = make([]float64, len(f.states))
	}
	for j, k := range nearest {
		shares[k][j] = f.weights[j]
	}
	return shares
}

// hammingDistance returns the number of indices at which states differ.
func hammingDistance(x, y []int) (d float64) {
	for i, a := range x {
		if a != y[i] {
			d++
		}
	}
	return d
}

// findCentre returns the centre of a component: a value for each index such that these values tend to come together. share[j] is the part
// of state j's weight that the component has. It begins with the state of the largest share. In each round every index takes the value
// whose presence has the largest covariance with nearness to the centre. For spins these are the signs of the first principal component, so
// that a mode is near the centre and its mirror image far from it.
func (f *fitter) findCentre(share []float64) []int {
	heaviest, largest := 0, -1.0
	for j, w := range share {
		if w > largest {
			heaviest, largest = j, w
		}
	}
	centre := append([]int(nil), f.states[heaviest]...)

	nearness := make([]float64, len(f.states)) // by state: less the number of indices at which it differs from the centre
	for range centreRounds {
		mean, total := 0.0, 0.0
		for j, x := range f.states {
			nearness[j] = -hammingDistance(x, centre)
			mean += share[j] * nearness[j]
			total += share[j]
		}
		if !(total > 0) {
			break
		}
		mean /= total
		for i, d := range f.dims {
			covariance := make([]float64, d) // by value: of the indicator of the value with nearness
			for j, x := range f.states {
				covariance[x[i]] += share[j] * (nearness[j] - mean)
			}
			for a, s := range covariance {
				if s > covariance[centre[i]] {
					centre[i] = a
				}
			}
		}
	}
	return centre
}

// maximise sets the parameters of a component to the most likely ones for its share[j] of each state j (the M-step). Probabilities are
// smoothed as if the component had also seen pseudoStates states with evenly spread values.
func (f *fitter) maximise(c *Component, share []float64) {
	total := 0.0
	for _, w := range share {
		total += w
	}
	pseudoWeight := pseudoStates / f.effectiveStates
	c.Weight = (total + pseudoWeight) / (1 + pseudoWeight) // the weights of all components are normalised afterwards

	values := make([][]float64, len(f.dims)) // by index: the smoothed marginals
	for i, d := range f.dims {
		row := make([]float64, d)
		for j, x := range f.states {
			row[x[i]] += share[j]
		}
		for a := range row {
			row[a] = (row[a] + pseudoWeight/float64(d)) / (total + pseudoWeight)
		}
		values[i] = row
	}
	if c.Centre == nil { // its indices are independent
		c.Values = values
		return
	}
	f.maximiseCounts(c, share, values, total, pseudoWeight)
}

// maximiseCounts sets c.Counts and c.Values of a component with counts. The count of a state is the number of its indices that are not at
// the component's centre, and Counts is the distribution of counts. Values are the probabilities R of independent indices. The component
// reweights their states by count, so that its marginals are not R. An iteration finds the R for which the component has the given
// marginals. It begins with c.Values of the round before, or with the marginals in the first round. share[j] is the weight of state j in
// the component, and total the sum of share. pseudoWeight is the weight of evenly spread states that smooth the counts. The entries of
// marginals are overwritten.
func (f *fitter) maximiseCounts(c *Component, share []float64, marginals [][]float64, total, pseudoWeight float64) {
	n := len(f.dims)
	away := make([]float64, n) // by index: probability under R that it is not at the centre
	begin := c.Values
	if begin == nil { // the first round
		begin = marginals
	}
	for i, a := range c.Centre {
		away[i] = 1 - begin[i][a]
	}
	countWeights := make([]float64, n+1) // weight of the states by count
	for j, x := range f.states {
		if share[j] > 0 {
			countWeights[int(hammingDistance(x, c.Centre))] += share[j]
		}
	}
	smoothed := func() []float64 { // mixed with the counts under R, suffixCounts[0], of weight pseudoWeight
		return smoothCounts(countWeights, newCountDensity(c.Centre, away, countWeights).suffixCounts[0], total, pseudoWeight)
	}

	for range balanceSteps {
		c.Counts = smoothed()
		componentAway := newCountDensity(c.Centre, away, c.Counts).awayMarginals()
		for i, a := range c.Centre {
			if f.dims[i] > 1 {
				away[i] = balance(away[i], 1-marginals[i][a], componentAway[i])
			}
		}
	}

	// The value at the centre has probability 1 − away. The other values share away in proportion to their marginals.
	c.Counts = smoothed()
	for i, a := range c.Centre {
		if f.dims[i] == 1 {
			continue
		}
		awayMarginal := 1 - marginals[i][a]
		for b := range marginals[i] {
			marginals[i][b] *= away[i] / awayMarginal
		}
		marginals[i][a] = 1 - away[i]
	}
	c.Values = marginals
}

// balance returns a probability whose odds are those of p times a power of a ratio: the odds of target over those of current. So the
// probability that a component gives moves from current towards target. The limits 1e-12 and 1e-9, chosen, keep odds finite.
func balance(p, target, current float64) float64 {
	current = min(max(current, 1e-12), 1-1e-12)
	odds := p / (1 - p) * math.Pow(target/(1-target)*(1-current)/current, balanceExponent)
	return min(max(odds/(1+odds), 1e-9), 1-1e-9)
}

// smoothCounts returns the distribution of the counts with the given weights, mixed with the distribution that independent indices have.
// The latter has independentShare of the mixture, and pseudoWeight in addition, as if it were the weight of further states. total is the
// sum of weights.
func smoothCounts(weights, independent []float64, total, pseudoWeight float64) []float64 {
	mixed := make([]float64, len(weights))
	sum := total + pseudoWeight
	for k, w := range weights {
		mixed[k] = (1-independentShare)*w/sum + (independentShare+(1-independentShare)*pseudoWeight/sum)*independent[k]
	}
	return mixed
}

// normaliseWeights scales the weights of the components so that they add up to 1.
func (f *fitter) normaliseWeights(m *Mixture) {
	total := 0.0
	for _, c := range m.Components {
		total += c.Weight
	}
	for k := range m.Components {
		m.Components[k].Weight /= total
	}
}

// expect sets shares[k][j], the part of state j's weight that component k has, in proportion to the components' weighted densities at the
// state (the E-step). It returns the weighted mean of ln q over the states, where q is the density of the mixture.
func (f *fitter) expect(m *Mixture, shares [][]float64) (mean float64, err error) {
	s, err := New(m, f.dims)
	if err != nil {
		return 0, err
	}
	ln := make([]float64, len(s.components))
	for j, x := range f.states {
		for k := range ln {
			ln[k] = s.components[k].lnDensity(x)
		}
		lnSum := floats.LnSum(ln)
		mean += f.weights[j] * lnSum
		for k, l := range ln {
			shares[k][j] = f.weights[j] * math.Exp(l-lnSum)
		}
	}
	return mean, nil
}
