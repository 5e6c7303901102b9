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
	rounds     = 30   // of expectation and maximisation, at most
	settled    = 1e-3 // the gain of a round, nats of ln q on average, below which it is the last
	centred    = 4    // rounds of a search for a centre
	balanced   = 4    // steps to the marginals of a component that counts, in every round
	balance    = 0.7  // the part of such a step that is taken
	pseudo     = 1    // states that every component has seen beside the others, spread evenly over the values
	flopsOf    = 12   // of an index of a state in a component and round
	rareCounts = 0.05 // part of the counts that R says
)

// Options of a fit.
type Options struct {
	Components int
	Counted    bool // components count, where there are at most MostCounted indices
	Seed       uint64
}

// Work bounds the cost of a fit in flops.
func Work(o Options, states int, dims []int) float64 {
	n := float64(len(dims))
	each := flopsOf * n * float64(states)
	if o.Counted {
		each += 2*flopsOf*n*float64(states)/rounds*centred + 8*balanced*n*n
	}
	return each * rounds * float64(o.Components)
}

// Fit learns a mixture from states whose weights add up to 1, each with a value per index. The same input gives the same mixture. The
// error is the context's. Cost: Work, at most.
func Fit(ctx context.Context, dims []int, states [][]int, weights []float64, o Options) (*Mixture, error) {
	f := &fit{dims: dims, states: states, weights: weights, seen: effective(weights)}
	o.Counted = o.Counted && len(dims) <= MostCounted
	m := &Mixture{Components: make([]Component, min(o.Components, Most))}
	shares := f.begin(len(m.Components), rand.New(rand.NewPCG(o.Seed, 0x6d6978)))
	for k := range m.Components {
		if o.Counted {
			m.Components[k].Centre = f.centre(shares[k])
		}
	}
	before := math.Inf(-1)
	for range rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		for k := range m.Components {
			f.maximise(&m.Components[k], shares[k])
		}
		f.scale(m)
		now, err := f.expect(m, shares)
		if err != nil {
			return nil, err
		}
		if now < before+settled {
			break
		}
		before = now
	}
	return m, nil
}

// fit is what a mixture is learned from.
type fit struct {
	dims    []int
	states  [][]int
	weights []float64
	seen    float64 // effective number of states
}

// effective is (Σ w)²/Σ w².
func effective(w []float64) float64 {
	sum, squares := 0.0, 0.0
	for _, x := range w {
		sum += x
		squares += x * x
	}
	return sum * sum / squares
}

// begin divides the states between components: seeds far from each other (Arthur, Vassilvitskii, k-means++, 2007), and every state with the
// nearest one. shares[k][j] is the part of state j's weight.
func (f *fit) begin(components int, r *rand.Rand) (shares [][]float64) {
	apart := make([]float64, len(f.states)) // from the nearest seed
	nearest := make([]int, len(f.states))
	for k := range components {
		total := 0.0
		for j, w := range f.weights {
			if k == 0 {
				apart[j] = 1
			}
			total += w * apart[j] * apart[j]
		}
		if !(total > 0) {
			break // all states are seeds
		}
		seed := f.states[choose(r, len(f.states), func(j int) float64 { return f.weights[j] * apart[j] * apart[j] / total })]
		for j, x := range f.states {
			if d := distance(x, seed); k == 0 || d < apart[j] {
				apart[j], nearest[j] = d, k
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

// distance is the number of indices at which states differ.
func distance(x, y []int) (d float64) {
	for i, a := range x {
		if a != y[i] {
			d++
		}
	}
	return d
}

// centre returns the values that agree with each other most in these shares of the states: of spins the signs of the first principal
// component, so that a mode and its mirror image are near and far from it.
func (f *fit) centre(share []float64) []int {
	at, most := 0, -1.0
	for j, w := range share {
		if w > most {
			at, most = j, w
		}
	}
	centre := append([]int(nil), f.states[at]...)
	near := make([]float64, len(f.states))
	for range centred {
		mean, total := 0.0, 0.0
		for j, x := range f.states {
			near[j] = -distance(x, centre)
			mean += share[j] * near[j]
			total += share[j]
		}
		if !(total > 0) {
			break
		}
		mean /= total
		for i, d := range f.dims {
			agree := make([]float64, d)
			for j, x := range f.states {
				agree[x[i]] += share[j] * (near[j] - mean)
			}
			for a, s := range agree {
				if s > agree[centre[i]] {
					centre[i] = a
				}
			}
		}
	}
	return centre
}

// maximise sets a component to the most likely one for these shares of the states, smoothed as if it had seen others beside them.
func (f *fit) maximise(c *Component, share []float64) {
	total := 0.0
	for _, w := range share {
		total += w
	}
	beside := pseudo / f.seen
	c.Weight = (total + beside) / (1 + beside)
	values := make([][]float64, len(f.dims))
	for i, d := range f.dims {
		row := make([]float64, d)
		for j, x := range f.states {
			row[x[i]] += share[j]
		}
		for a := range row {
			row[a] = (row[a] + beside/float64(d)) / (total + beside)
		}
		values[i] = row
	}
	if c.Centre == nil {
		c.Values = values
		return
	}
	f.count(c, share, values, total, beside)
}

// count learns S, then R such that the indices are at the centre as often as values say. c.Values are those of the round before, if any.
func (f *fit) count(c *Component, share []float64, values [][]float64, total, beside float64) {
	n := len(f.dims)
	away := make([]float64, n) // under R
	for i, a := range c.Centre {
		if away[i] = 1 - values[i][a]; c.Values != nil {
			away[i] = 1 - c.Values[i][a]
		}
	}
	seen := make([]float64, n+1)
	for j, x := range f.states {
		if share[j] > 0 {
			seen[int(distance(x, c.Centre))] += share[j]
		}
	}
	for range balanced {
		c.Counts = smooth(seen, newCounts(c.Centre, away, seen).rest[0], total, beside)
		now := newCounts(c.Centre, away, c.Counts).marginals()
		for i, a := range c.Centre {
			if f.dims[i] == 1 {
				continue
			}
			want, is := 1-values[i][a], min(max(now[i], 1e-12), 1-1e-12)
			odds := away[i] / (1 - away[i]) * math.Pow(want/(1-want)*(1-is)/is, balance)
			away[i] = min(max(odds/(1+odds), 1e-9), 1-1e-9)
		}
	}
	c.Counts = smooth(seen, newCounts(c.Centre, away, seen).rest[0], total, beside)
	for i, a := range c.Centre {
		if f.dims[i] == 1 {
			continue
		}
		others := 1 - values[i][a]
		for b := range values[i] {
			values[i][b] *= away[i] / others
		}
		values[i][a] = 1 - away[i]
	}
	c.Values = values
}

// smooth is a distribution of counts of these weights, with a part as independent indices have them.
func smooth(seen, independent []float64, total, beside float64) []float64 {
	out := make([]float64, len(seen))
	for k, w := range seen {
		out[k] = (1-rareCounts)*w/(total+beside) + (rareCounts+(1-rareCounts)*beside/(total+beside))*independent[k]
	}
	return out
}

// scale makes the weights add up to 1.
func (f *fit) scale(m *Mixture) {
	total := 0.0
	for _, c := range m.Components {
		total += c.Weight
	}
	for k := range m.Components {
		m.Components[k].Weight /= total
	}
}

// expect divides the states between the components by their densities, and returns the mean of ln q.
func (f *fit) expect(m *Mixture, shares [][]float64) (mean float64, err error) {
	s, err := New(m, f.dims)
	if err != nil {
		return 0, err
	}
	ln := make([]float64, len(s.components))
	for j, x := range f.states {
		for k := range ln {
			ln[k] = s.components[k].lnDensity(x)
		}
		all := floats.LnSum(ln)
		mean += f.weights[j] * all
		for k, l := range ln {
			shares[k][j] = f.weights[j] * math.Exp(l-all)
		}
	}
	return mean, nil
}
