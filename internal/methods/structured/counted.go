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
	"github.com/basetensor/basetensor/pkg/scaled"
)

// contractHistogram is Contract for integer statistics, by the histogram of their sums. All terms are positive: the value is exact up to
// rounding and Fit.LnError, whatever the signs of the form. Z is 0 if a variable has no value with a weight above 0.
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
	if h == nil { // Z is 0
		return zeroValue(j), nil
	}

	// Z is the sum over the states of all variables.
	fullSum, err := h.addVariables(ctx, emptySum(), 0, len(h.choices))
	if err != nil {
		return value, err
	}
	factors := h.stateFactors(fullSum)
	scale := j.Net.Scale.Mul(h.lnUnit.Exp())
	value.Z = sumStates(fullSum, factors).Mul(scale)
	const withMarginals = true
	value.Flops = p.Fit.Integers.flops(!withMarginals)
	if p.Ask != "" { // the only other ask is for samples (Fits)
		return h.drawAssignments(j, fullSum, factors, value, want)
	}
	value.Rounding = boundRounding(value.Z, h.roundingsOfTerm(), p.Fit.LnError)
	if j.Marginals != nil {
		if err := h.fillMarginals(ctx, fullSum, factors, j.Marginals); err != nil {
			return value, err
		}
		if err := j.Marginals.CheckFinite(); err != nil {
			return value, err
		}
		value.Marginals = j.Marginals.Result(scale)
		value.Flops = p.Fit.Integers.flops(withMarginals)
	}
	if j.Joint != nil {
		cells, flops, err := p.histogramCells(ctx, j, weights, memory)
		if err != nil {
			return value, err
		}
		value.Flops += flops
		value.Joint = j.JointOf(cells)
	}
	return value, nil
}

// zeroValue returns the value of a contraction whose Z is 0: all wanted marginals and cells of the joint marginal are 0.
func zeroValue(j contraction.Contraction) (value btn.Value) {
	if j.Marginals != nil {
		value.Marginals = j.Marginals.Result(scaled.One) // nothing was collected: zeros
	}
	if j.Joint != nil {
		value.Joint = j.JointOf(make([]scaled.Number, cellCount(j)))
	}
	return value
}

// histogramCells returns the joint marginal of the variables j.Joint, the last one fastest, and its flops. Each cell is a sum of its own,
// in which only the cell's values have weights.
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
		if h == nil { // the cell is 0
			continue
		}
		z, err := h.sumAll(ctx)
		if err != nil {
			return nil, 0, err
		}
		cells[c] = z.Mul(j.Net.Scale)
		const hasMarginals = false
		flops += p.Fit.Integers.flops(hasMarginals)
	}
	return cells, flops, nil
}

// sumStates returns the sum of weight · factor over the states of the sum of all variables.
func sumStates(fullSum *states, factors []float) scaled.Number {
	z := blockSum{}
	for state := range factors {
		z.add(fullSum.weight(state).times(factors[state]))
	}
	return z.sum().scaledNumber()
}

// cellCount returns the number of cells of a contraction's joint marginal: the product of its domains.
func cellCount(j contraction.Contraction) int {
	count := 1
	for _, v := range j.Joint {
		count *= j.Net.Variables[v].Domain
	}
	return count
}

// boundRounding bounds the error of a positive value z. roundings is the number of its roundings, each of 2^-53, and its logarithm is off
// by at most lnError before them.
func boundRounding(z scaled.Number, roundings, lnError float64) *scaled.Number {
	bound := z.Abs().Mul(scaled.FromFloat(math.Expm1(lnError + math.Ldexp(roundings, -53))))
	return &bound
}

// roundingsOfTerm bounds the roundings of a term of Z: those of the factor of its state, at most 16; those of the sum over the states; and
// for each variable 6 for its weight and a product, and one for each of its values, over which it is summed.
func (h *histogram) roundingsOfTerm() float64 {
	// A sum of n states in blocks has an addition for each term of a block and for each block, and not more than n.
	roundings := 16 + 2*termsPerBlock + float64(maxStatesOfSum)/termsPerBlock
	if states := h.fit.Integers.States; states < maxStatesOfSum { // of all partial sums together, so the last one has fewer
		roundings = 16 + min(states, termsPerBlock+states/termsPerBlock)
	}
	for _, choices := range h.choices {
		roundings += 6 + float64(len(choices))
	}
	return roundings
}

// sumAll returns the sum over all assignments. The network's scale is not in it.
func (h *histogram) sumAll(ctx context.Context) (scaled.Number, error) {
	fullSum, err := h.addVariables(ctx, emptySum(), 0, len(h.choices))
	if err != nil {
		return scaled.Number{}, err
	}
	return sumStates(fullSum, h.stateFactors(fullSum)).Mul(h.lnUnit.Exp()), nil
}

// fillMarginals fills in the marginals, in units of e^lnUnit, on the way back over the variables. fullSum is the sum of all variables, and
// factors are those of its states. Values of the variables added later lead from a state of a partial sum to a state of fullSum. The factor
// of the former is the sum over these values of their weights times the factor of the latter. The share of a choice is the sum over the
// states before it of
//
//	weight of the state · weight of the choice · factor of the state that the choice leads to
func (h *histogram) fillMarginals(ctx context.Context, fullSum *states, factors []float, marginals *contraction.Collected) error {
	keys := fullSum.keys // of the states that factors belong to: those of the sum with the visited variable
	return h.visitBackward(ctx, emptySum(), 0, len(h.choices), func(position int, partial *states) error {
		if err := ctx.Err(); err != nil {
			return err
		}
		partialFactors := make([]float, len(partial.keys)) // of the sum without the visited variable
		v := h.fit.Integers.Sequence[position]
		for _, c := range h.choices[position] {
			share, index := blockSum{}, 0
			for state, key := range partial.keys {
				for keys[index] < key+c.key { // find the state that the choice leads to
					index++
				}
				factor := factors[index].times(c.weight)
				partialFactors[state] = partialFactors[state].plus(factor)
				share.add(factor.times(partial.weight(state)))
			}
			marginals.At[marginals.Offset[v]+c.value] = share.sum().scaledNumber()
		}
		keys, factors = partial.keys, partialFactors
		return nil
	})
}

// drawAssignments draws want.Samples assignments: first a state of fullSum, the sum of all variables, with the probability of its share of
// Z, then a value of each variable on the way back over the partial sums. factors are those of the states of fullSum. value has Z, which
// the returned value has as the weight of the draws instead.
func (h *histogram) drawAssignments(
	j contraction.Contraction, fullSum *states, factors []float, value btn.Value, want btn.Want,
) (btn.Value, error) {
	if err := checkDraws(j, want); err != nil {
		return value, err
	}
	if value.Z.IsZero() {
		return value, nil
	}

	// keys[s] is the key of sample s: of the sum of the variables that are not drawn yet.
	n := len(h.choices)
	result := &btn.Drawn{Weight: value.Z, Values: make([]int, n*want.Samples)}
	streams, keys := drawFullKeys(fullSum, factors, want)
	err := h.visitBackward(j.Ctx, emptySum(), 0, n, func(position int, partial *states) error {
		if err := j.Ctx.Err(); err != nil {
			return err
		}
		v := h.fit.Integers.Sequence[position]
		choices := h.choices[position]
		room := make([]float, len(choices))
		for s := range keys {
			c := choices[drawIndex(streams[s], choiceWeights(choices, partial, keys[s], room))]
			keys[s] -= c.key
			result.Values[s*n+v] = c.value
		}
		return nil
	})
	value.Drawn = result
	value.Z = scaled.Number{}
	const wayBack = true
	value.Flops = h.fit.Integers.flops(wayBack)
	return value, err
}

// drawFullKeys draws for each sample the key of a state of the sum of all variables, fullSum, with the probability of the state's share of
// Z. factors are those of its states. streams are the samples' random streams, one each, for further draws.
func drawFullKeys(fullSum *states, factors []float, want btn.Want) (streams []*rand.Rand, keys []int64) {
	streams, keys = make([]*rand.Rand, want.Samples), make([]int64, want.Samples)
	cumulative := make([]float64, len(factors)) // shares of Z
	sum := 0.0
	z := sumStates(fullSum, factors)
	for state := range factors {
		sum += fullSum.weight(state).times(factors[state]).scaledNumber().Div(z).Float64()
		cumulative[state] = sum
	}
	for s := range keys {
		streams[s] = rand.New(rand.NewPCG(want.Seed, uint64(s)))
		state := sort.SearchFloat64s(cumulative, streams[s].Float64()*sum)
		keys[s] = fullSum.keys[min(state, len(cumulative)-1)]
	}
	return streams, keys
}

// choiceWeights returns the weights of a variable's choices, its possible values, if the sum with the variable has the given key. partial
// is the sum without the variable. A choice leads to the key from at most one state of partial, the one with key − c.key. The result has
// the product of the weights of the choice and of this state. It has 0 if there is no such state, or if the product is far below the
// largest one. weights is room for one number for each choice.
func choiceWeights(choices []choice, partial *states, key int64, weights []float) []plain {
	largestExp := int32(math.MinInt32)
	for k, c := range choices {
		weights[k] = float{}
		if state, ok := slices.BinarySearch(partial.keys, key-c.key); ok {
			weights[k] = partial.weight(state).times(c.weight)
			largestExp = max(largestExp, weights[k].exp)
		}
	}

	// As plain numbers in units of the largest exponent.
	inUnits := make([]plain, len(weights))
	for k, w := range weights {
		if shift := int(w.exp) - int(largestExp); w.mant > 0 && shift > -2 { // otherwise it is below 2^−512 of the largest
			inUnits[k] = plain(math.Ldexp(w.mant, shift*unitBits))
		}
	}
	return inUnits
}
