package structured

// Contraction of integer statistics: Z, marginals, joint marginals and draws by the histogram of their sums.

import (
	"context"
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// contractHistogram is Contract for integer statistics. All terms are positive: the value is exact up to rounding and Fit.LnError, whatever
// the signs of the form. Z is 0 if a variable has no value with a weight above 0.
func (p *Nodes) contractHistogram(
	ctx context.Context, j contraction.Contraction, memory int64, want btn.Want,
) (value btn.Value, err error) {
	weights, err := weightsOf(j.Net)
	if err != nil {
		return value, err
	}
	h, err := newHistogram(p.Fit, weights, memory)
	if err != nil {
		return value, err
	}
	if h == nil {
		if j.M != nil {
			value.Marginals = j.M.Result(scaled.One)
		}
		if j.Joint != nil {
			value.Joint = j.JointOf(make([]scaled.Number, cellCount(j)))
		}
		return value, nil
	}
	last, err := h.addVariables(ctx, emptySum(), 0, len(h.choices))
	if err != nil {
		return value, err
	}
	factors := h.stateFactors(last)
	scale := j.Net.Scale.Mul(h.lnUnit.Exp())
	value.Z = sumStates(last, factors).Mul(scale)
	value.Flops = p.Fit.Integers.flops(false)
	if p.Ask != "" {
		return h.drawAssignments(j, last, factors, value, want)
	}
	value.Rounding = boundRounding(value.Z, h.roundingsOfTerm(), p.Fit.LnError)
	if j.M != nil {
		if err := h.fillMarginals(ctx, last, factors, j.M); err != nil {
			return value, err
		}
		if err := j.M.Finite(); err != nil {
			return value, err
		}
		value.Marginals = j.M.Result(scale)
		value.Flops = p.Fit.Integers.flops(true)
	}
	if j.Joint == nil {
		return value, nil
	}
	cells, flops, err := p.histogramCells(ctx, j, weights, memory)
	if err != nil {
		return value, err
	}
	value.Flops += flops
	value.Joint = j.JointOf(cells)
	return value, nil
}

// histogramCells returns the joint marginal of j.Joint, the last variable fastest, and its flops. Each cell is a sum in which only the
// cell's values have weights.
func (p *Nodes) histogramCells(
	ctx context.Context, j contraction.Contraction, weights [][]float64, memory int64,
) (cells []scaled.Number, flops float64, err error) {
	cells = make([]scaled.Number, cellCount(j))
	clamped := slices.Clone(weights)
	for c := range cells {
		remainder := c
		for _, v := range slices.Backward(j.Joint) {
			x := remainder % p.Fit.Domains[v]
			remainder /= p.Fit.Domains[v]
			clamped[v] = make([]float64, p.Fit.Domains[v])
			clamped[v][x] = weights[v][x]
		}
		h, err := newHistogram(p.Fit, clamped, memory)
		if err != nil {
			return nil, 0, err
		}
		if h == nil {
			continue
		}
		z, err := h.sumAll(ctx)
		if err != nil {
			return nil, 0, err
		}
		cells[c] = z.Mul(j.Net.Scale)
		flops += p.Fit.Integers.flops(false)
	}
	return cells, flops, nil
}

// sumStates returns the sum over the states of a sum of all variables: of each, its weight times its factor.
func sumStates(last *states, factors []float) scaled.Number {
	z := blockSum{}
	for state := range factors {
		z.add(last.weight(state).times(factors[state]))
	}
	return z.sum().scaledNumber()
}

// cellCount returns the number of cells of a contraction's joint marginal.
func cellCount(j contraction.Contraction) int {
	count := 1
	for _, v := range j.Joint {
		count *= j.Net.Variables[v].Domain
	}
	return count
}

// boundRounding bounds the error of a positive value z by so many roundings and by an error of its logarithm.
func boundRounding(z scaled.Number, roundings, lnError float64) *scaled.Number {
	bound := z.Abs().Mul(scaled.FromFloat(math.Expm1(lnError + math.Ldexp(roundings, -53))))
	return &bound
}

// roundingsOfTerm bounds the roundings of a term of the sum. Each variable adds those of its weight, of a product and of the sum over its
// values. The last state adds those of its factor and of the sums of blocks.
func (h *histogram) roundingsOfTerm() float64 {
	steps := 16 + 2*termsPerBlock + float64(maxStatesOfSum)/termsPerBlock
	if s := h.fit.Integers.States; s < maxStatesOfSum {
		steps = 16 + min(s, termsPerBlock+s/termsPerBlock)
	}
	for _, c := range h.choices {
		steps += 6 + float64(len(c))
	}
	return steps
}

// sumAll returns the sum over all assignments, without the network's scale.
func (h *histogram) sumAll(ctx context.Context) (scaled.Number, error) {
	last, err := h.addVariables(ctx, emptySum(), 0, len(h.choices))
	if err != nil {
		return scaled.Number{}, err
	}
	return sumStates(last, h.stateFactors(last)).Mul(h.lnUnit.Exp()), nil
}

// fillMarginals fills in the marginals, in units of e^lnUnit, on the way back over the partial sums. last is the sum of all variables, and
// factors those of its states. The factor of a state of a partial sum is Σ over the values of all later variables of their weights times
// the factor of the last state that they lead to.
func (h *histogram) fillMarginals(ctx context.Context, last *states, factors []float, to *contraction.Collected) error {
	after := last.keys // of the states that factors belong to
	return h.visitBackward(ctx, emptySum(), 0, len(h.choices), func(place int, before *states) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		factorsBefore := make([]float, len(before.keys))
		v := h.fit.Integers.Sequence[place]
		for _, c := range h.choices[place] {
			share, index := blockSum{}, 0
			for state, key := range before.keys {
				for after[index] < key+c.key {
					index++
				}
				factor := factors[index].times(c.weight)
				factorsBefore[state] = factorsBefore[state].plus(factor)
				share.add(factor.times(before.weight(state)))
			}
			to.At[to.Offset[v]+c.value] = share.sum().scaledNumber()
		}
		after, factors = before.keys, factorsBefore
		return nil
	})
}

// drawAssignments draws want.Samples assignments: a last state by its share of Z, then the variables on the way back over the partial sums.
// last and factors are those of fillMarginals. value has Z and becomes a value of draws, without Z.
func (h *histogram) drawAssignments(
	j contraction.Contraction, last *states, factors []float, value btn.Value, want btn.Want,
) (btn.Value, error) {
	if j.Net.Scale.Sign() < 0 {
		return value, fault.New(fault.BadInput,
			"structured: the product of the factors without variables is below 0: weights of assignments are no probabilities then")
	}
	if err := query.CheckSamples(len(j.Net.Variables), want.Samples); err != nil {
		return value, err
	}
	if value.Z.IsZero() {
		return value, nil
	}
	n := len(h.choices)
	drawn := &btn.Drawn{Weight: value.Z, Values: make([]int, n*want.Samples)}
	streams, keys := drawLastStates(last, factors, want)
	err := h.visitBackward(j.Ctx, emptySum(), 0, n, func(place int, before *states) error {
		if err := j.Ctx.Err(); err != nil {
			return err
		}
		v := h.fit.Integers.Sequence[place]
		room := make([]float, len(h.choices[place]))
		for s := range keys {
			c := h.choices[place][drawIndex(streams[s], h.choiceWeights(place, before, keys[s], room))]
			keys[s] -= c.key
			drawn.Values[s*n+v] = c.value
		}
		return nil
	})
	value.Drawn = drawn
	value.Z = scaled.Number{}
	value.Flops = h.fit.Integers.flops(true)
	return value, err
}

// drawLastStates draws for each sample the key of a state of the sum of all variables. It also returns the samples' random streams.
func drawLastStates(last *states, factors []float, want btn.Want) (streams []*rand.Rand, keys []int64) {
	streams, keys = make([]*rand.Rand, want.Samples), make([]int64, want.Samples)
	cumulative := make([]float64, len(factors)) // shares of Z
	sum := 0.0
	z := sumStates(last, factors)
	for state := range factors {
		sum += last.weight(state).times(factors[state]).scaledNumber().Div(z).Float64()
		cumulative[state] = sum
	}
	for s := range keys {
		streams[s] = rand.New(rand.NewPCG(want.Seed, uint64(s)))
		state := sort.SearchFloat64s(cumulative, streams[s].Float64()*sum)
		keys[s] = last.keys[min(state, len(cumulative)-1)]
	}
	return streams, keys
}

// choiceWeights returns the weights of the choices of a variable, of which one leads to the state with a key: of each the weight of the
// state before it, times that of the choice. before is the partial sum of the variables before it. Weights far below the
// largest are 0. weights is room for one number for each choice.
func (h *histogram) choiceWeights(place int, before *states, key int64, weights []float) []plain {
	largestExp := int32(math.MinInt32)
	for k, c := range h.choices[place] {
		weights[k] = float{}
		if state, ok := slices.BinarySearch(before.keys, key-c.key); ok {
			weights[k] = before.weight(state).times(c.weight)
			largestExp = max(largestExp, weights[k].exp)
		}
	}
	row := make([]plain, len(weights))
	for k, w := range weights {
		if shift := int(w.exp) - int(largestExp); w.mant > 0 && shift > -2 {
			row[k] = plain(math.Ldexp(w.mant, shift*unitBits))
		}
	}
	return row
}
