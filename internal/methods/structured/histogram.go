package structured

// Histograms of sums of integers: convolutions of positive numbers, one variable after the other.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

const (
	// maxStatesOfSum bounds the states of a partial sum, maxStatesTogether those of all partial sums.
	maxStatesOfSum, maxStatesTogether = 1 << 22, 1 << 30
	// unitBits is the exponent of the unit of a float: numbers are mant · 2^(unitBits · exp), mant within 2^±halfUnit of 1.
	unitBits = 512
	halfUnit = unitBits / 2
	// rangesPerLevel is the number of ranges into which visitBackward divides a range of variables.
	rangesPerLevel = 4
	// termsPerBlock is the number of terms that blockSum adds before their sum is added.
	termsPerBlock = 512
	// stateBytes are the bytes of a state of a partial sum, stateFlops the operations.
	stateBytes, stateFlops = 8 + 8 + 4, 12
)

// float is a number mant · 2^(unitBits · exp) that is not below 0, with mant within 2^±halfUnit of 1. Zero has mant 0.
type float struct {
	mant float64
	exp  int32
}

// floatOf returns x as a float. x is not below 0.
func floatOf(x scaled.Number) float {
	if x.IsZero() {
		return float{}
	}
	e := (x.Exp + halfUnit) >> 9 // x.Exp / 512, rounded: the exponent in units of unitBits = 2^9
	return float{math.Ldexp(x.Mant, int(x.Exp-e*unitBits)), int32(max(math.MinInt32, min(e, math.MaxInt32)))}
}

// scaledNumber returns the number as a scaled.Number.
func (x float) scaledNumber() scaled.Number { return scaled.Make(x.mant, unitBits*int64(x.exp)) }

// normalised returns x with mant within 2^±halfUnit, after a product or a sum that may be beyond: it moves one unit to or from the
// exponent.
func (x float) normalised() float {
	switch {
	case x.mant >= 0x1p256:
		return float{x.mant * 0x1p-512, x.exp + 1}
	case x.mant < 0x1p-256 && x.mant > 0:
		return float{x.mant * 0x1p512, x.exp - 1}
	}
	return x
}

// times returns x · y.
func (x float) times(y float) float { return float{x.mant * y.mant, x.exp + y.exp}.normalised() }

// plus returns x + y. Exponents are in units of 512 bits (unitBits). A number whose exponent is lower by two units or more is below 2^−512
// of the other, which is then the sum.
func (x float) plus(y float) float {
	switch {
	case x.exp == y.exp:
		return float{x.mant + y.mant, x.exp}.normalised()
	case x.mant == 0:
		return y
	case y.mant == 0:
		return x
	case x.exp < y.exp:
		x, y = y, x
	}
	if x.exp-y.exp > 1 {
		return x
	}
	return float{x.mant + y.mant*0x1p-512, x.exp}.normalised()
}

// blockSum adds positive numbers: termsPerBlock of them, then the sums of these blocks, so that roundings are few.
type blockSum struct {
	inner, outer float // sum of the current block, and of all blocks before it
	count        int   // of the terms in the current block
}

// add adds a term to the current block. A full block is added to the sum of the blocks before it.
func (t *blockSum) add(x float) {
	t.inner = t.inner.plus(x)
	if t.count++; t.count == termsPerBlock {
		t.outer, t.inner, t.count = t.outer.plus(t.inner), float{}, 0
	}
}

// sum returns the sum of all terms.
func (t *blockSum) sum() float { return t.outer.plus(t.inner) }

// states is a partial sum: the values that the sum of some variables' statistics can have. Each is a state, with the total weight of the
// assignments that lead to it. A state is named by its key, one number for the sums of all statistics (Integers.keys). Keys increase.
type states struct {
	keys []int64
	mant []float64 // of the weights
	exp  []int32
}

// weight returns the weight of a state.
func (s *states) weight(x int) float { return float{s.mant[x], s.exp[x]} }

// appendState appends a state with a weight. Its key is above all keys so far.
func (s *states) appendState(key int64, weight float) {
	s.keys, s.mant, s.exp = append(s.keys, key), append(s.mant, weight.mant), append(s.exp, weight.exp)
}

// choice is a value of a variable with a weight above 0.
type choice struct {
	value  int
	key    int64 // what it adds to the key of a sum
	weight float
}

// histogram is the convolution of the variables' choices under weights of single variables.
type histogram struct {
	fit        *Fit
	firstValue []int       // by variable: the index of its first value in lists by value
	choices    [][]choice  // by position in Integers.Sequence
	lnUnit     floats.Pair // the unit of all weights is e^lnUnit
	maxStates  float64     // of a partial sum, so that it fits the memory
}

// newHistogram returns the convolution of a fit's variables under weights, which are by variable and value. A choice is a possible value of
// a variable. Its weight is e^field times the given weight, divided by the largest e^field of the variable's possible values; the
// logarithms of these divisors add up to lnUnit. The result is nil if a variable has no possible value.
func newHistogram(f *Fit, weights [][]float64, memory int64) (*histogram, error) {
	integers := f.Integers
	keys, err := integers.keys(f.Domains)
	if err != nil {
		return nil, err
	}
	h := &histogram{fit: f, lnUnit: floats.Pair{High: integers.Ln[0], Low: integers.Ln[1]}, choices: make([][]choice, len(f.Domains))}
	offset := 0
	for _, d := range f.Domains {
		h.firstValue = append(h.firstValue, offset)
		offset += d
	}

	for position, v := range integers.Sequence {
		largest := floats.Pair{High: math.Inf(-1)} // field
		for x := h.firstValue[v]; x < h.firstValue[v]+f.Domains[v]; x++ {
			if integers.Field[x] > largest.High && weights[v][x-h.firstValue[v]] > 0 {
				largest = floats.Pair{High: integers.Field[x], Low: integers.FieldLow[x]}
			}
		}
		if math.IsInf(largest.High, -1) {
			return nil, nil
		}
		h.lnUnit = h.lnUnit.Plus(largest)
		for x, w := range weights[v] {
			field := floats.Pair{High: integers.Field[h.firstValue[v]+x], Low: integers.FieldLow[h.firstValue[v]+x]}
			if w == 0 || math.IsInf(field.High, -1) { // impossible
				continue
			}
			h.choices[position] = append(h.choices[position], choice{
				x, keys[h.firstValue[v]+x], floatOf(field.Minus(largest).Exp().Mul(scaled.FromFloat(w))),
			})
		}
	}
	// visitBackward keeps rangesPerLevel partial sums at each of its levels. There are 4 more: chosen.
	h.maxStates = min(maxStatesOfSum, float64(memory)/stateBytes/(4+rangesPerLevel*integers.recomputations()))
	return h, nil
}

// flops returns the flops of a sum over all assignments, with marginals or without. n.States counts the states of all partial sums, so that
// one pass over the variables takes stateFlops · n.States.
func (n *Integers) flops(marginals bool) float64 {
	flops := stateFlops * n.States
	if marginals {
		flops *= 2 + n.recomputations() // the pass forth, the pass back, and partial sums that are computed again for the pass back
	}
	return flops
}

// bytes bounds the bytes of a sum with marginals.
func (n *Integers) bytes() float64 {
	return stateBytes * (4 + rangesPerLevel*n.recomputations()) * n.Widest
}

// recomputations bounds how often visitBackward computes a partial sum again: once for each level of its ranges, log(variables + 1) to the
// base rangesPerLevel.
func (n *Integers) recomputations() float64 {
	return math.Ceil(math.Log(float64(len(n.Sequence)+1)) / math.Log(rangesPerLevel))
}

// emptySum returns the partial sum of no variables: one state of weight 1.
func emptySum() *states { return &states{keys: []int64{0}, mant: []float64{1}, exp: []int32{0}} }

// addVariable adds a variable to a partial sum, the states of the sum of the variables before it: each state moves by each choice of the
// variable, a possible value. The variable is given by its position in the sequence. The error is over budget if there are more than
// maxStates states.
func (h *histogram) addVariable(sum *states, position int) (*states, error) {
	var next *states
	for _, c := range h.choices[position] {
		next = mergeShifted(next, sum, c)
	}
	if float64(len(next.keys)) > h.maxStates {
		return nil, fault.New(fault.OverBudget, "structured: a sum of integers has more than %.3g values", h.maxStates)
	}
	return next, nil
}

// mergeShifted merges two lists of states, which are values of a sum with their weights, by increasing key. One is the list earlier, which
// may be nil. The other is sum after a choice c, a value of one more variable: its keys are larger by c.key, and its weights are multiplied
// by c.weight. If a key is in the two lists, the weights are added.
func mergeShifted(earlier, sum *states, c choice) *states {
	size := len(sum.keys)
	if earlier != nil {
		size = min(2*size, size+len(earlier.keys)) // room to begin with: often there are fewer
	}
	merged := &states{keys: make([]int64, 0, size), mant: make([]float64, 0, size), exp: make([]int32, 0, size)}
	if earlier == nil {
		for state, key := range sum.keys {
			merged.appendState(key+c.key, sum.weight(state).times(c.weight))
		}
		return merged
	}

	next := 0 // index of the first state of earlier that is not merged yet
	for state, key := range sum.keys {
		key += c.key
		for ; next < len(earlier.keys) && earlier.keys[next] < key; next++ {
			merged.appendState(earlier.keys[next], earlier.weight(next))
		}
		w := sum.weight(state).times(c.weight)
		if next < len(earlier.keys) && earlier.keys[next] == key {
			w = w.plus(earlier.weight(next))
			next++
		}
		merged.appendState(key, w)
	}
	for ; next < len(earlier.keys); next++ {
		merged.appendState(earlier.keys[next], earlier.weight(next))
	}
	return merged
}

// addVariables adds the variables at positions first ≤ position < end of the sequence to a partial sum. It looks at ctx before each.
func (h *histogram) addVariables(ctx context.Context, sum *states, first, end int) (*states, error) {
	for position := first; position < end; position++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var err error
		if sum, err = h.addVariable(sum, position); err != nil {
			return nil, err
		}
	}
	return sum, nil
}

// visitBackward calls visit for every position of the sequence with first ≤ position < end, the last one first. visit gets the partial sum
// of the variables before the position. sum is the partial sum before first.
//
// To keep few partial sums in memory it divides the positions into rangesPerLevel ranges. It keeps the partial sum before each range, and
// computes those within a range again when the range's turn comes, by recursion.
func (h *histogram) visitBackward(
	ctx context.Context, sum *states, first, end int, visit func(position int, partial *states) error,
) error {
	switch end - first {
	case 0:
		return nil
	case 1:
		return visit(first, sum)
	}

	// By range: the partial sum before it, and its first position.
	sums, starts := []*states{sum}, []int{first}
	ranges := min(rangesPerLevel, end-first)
	for k := 1; k < ranges; k++ {
		start := first + (end-first)*k/ranges
		next, err := h.addVariables(ctx, sums[k-1], starts[k-1], start)
		if err != nil {
			return err
		}
		sums, starts = append(sums, next), append(starts, start)
	}

	for k := ranges - 1; k >= 0; k-- {
		if err := h.visitBackward(ctx, sums[k], starts[k], end, visit); err != nil {
			return err
		}
		end, sums[k] = starts[k], nil // the range before ends here, and the partial sum is not needed any more
	}
	return nil
}

// stateFactors returns the factor e^{½ SᵀGS} of every state of fullSum, the sum of all variables. A state is a value of the statistics S of
// all variables together. Its key is one number, from which S is decoded. G is Integers.Form, in twice the digits of float64.
func (h *histogram) stateFactors(fullSum *states) []float {
	integers := h.fit.Integers
	k := integers.statisticCount(len(integers.Field))

	// S has means of a variable's d integers subtracted. scale, the least common multiple of all d, makes scale · S integers.
	scale := int64(1)
	for _, d := range h.fit.Domains {
		scale = scale / gcd(scale, int64(d)) * int64(d)
	}
	halfForm := make([]floats.Pair, k*k) // G/2 divided by scale², row by row
	for x := range halfForm {
		halfForm[x] = floats.Pair{High: integers.Form[2*x], Low: integers.Form[2*x+1]}.DividedBy(2 * float64(scale) * float64(scale))
	}

	decodeKey := integers.newDecoder(h.fit.Domains, scale)
	factors := make([]float, len(fullSum.keys))
	statistics := make([]float64, k)
	for state, key := range fullSum.keys {
		decodeKey(key, statistics)
		exponent := floats.Pair{}
		for p, y := range statistics {
			row := floats.Pair{}
			for q, z := range statistics {
				row = row.Plus(halfForm[p*k+q].TimesFloat(z))
			}
			exponent = exponent.Plus(row.TimesFloat(y))
		}
		factors[state] = floatOf(exponent.Exp())
	}
	return factors
}

// gcd returns the greatest common divisor of a and b.
func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// newDecoder returns a function that takes the key of a state of all variables and writes scale · S to a list, where S are the statistics
// of the state. After the lowest sum of each statistic is subtracted, a key is a number in mixed radix: its digits are the sums less the
// lowest ones, and the base of each digit is the statistic's span, the number of integers from the lowest sum to the highest.
func (n *Integers) newDecoder(domains []int, scale int64) func(key int64, statistics []float64) {
	values := len(n.Field)
	k := n.statisticCount(values)
	lowest, span := make([]int64, k), make([]int64, k) // by statistic: of its sum over all variables
	mean := make([]int64, k)                           // by statistic: scale · the sum of the variables' means; domains divide scale
	for c := range k {
		ofStatistic, offset := n.Values[c*values:][:values], 0
		span[c] = 1
		for _, d := range domains {
			smallest, largest, sum := ofStatistic[offset], ofStatistic[offset], int64(0)
			for _, y := range ofStatistic[offset : offset+d] {
				smallest, largest, sum = min(smallest, y), max(largest, y), sum+y
			}
			lowest[c], span[c], mean[c] = lowest[c]+smallest, span[c]+largest-smallest, mean[c]+scale/int64(d)*sum
			offset += d
		}
	}

	return func(key int64, statistics []float64) {
		stride := int64(1)
		for c := range k {
			key -= lowest[c] * stride
			stride *= span[c]
		}
		for c := range k {
			statistics[c] = float64(scale*(key%span[c]+lowest[c]) - mean[c])
			key /= span[c]
		}
	}
}

// countStates counts the states of all partial sums along the sequence and sets States and Widest. keys is what each value adds to a key,
// by value. fit is false if there are too many states.
func (n *Integers) countStates(ctx context.Context, domains []int, keys []int64) (fit bool, err error) {
	firstValue := make([]int, len(domains))
	total := 0
	for v, d := range domains {
		firstValue[v] = total
		total += d
	}

	sum := []int64{0} // keys of the partial sum of no variables
	n.States, n.Widest = 1, 1
	for _, v := range n.Sequence {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		var next []int64
		for x := range domains[v] {
			next = mergeKeys(next, sum, keys[firstValue[v]+x])
		}
		sum = next
		n.States += float64(len(sum) * domains[v] / 2) // each value merges a list, and the lists grow to len(sum)
		n.Widest = max(n.Widest, float64(len(sum)))
		if n.Widest > maxStatesOfSum || n.States > maxStatesTogether {
			return false, nil
		}
	}
	return true, nil
}

// mergeKeys merges two increasing lists of keys: earlier, and keys with a difference added to each. The result is increasing. A key that is
// in the two lists comes once.
func mergeKeys(earlier, keys []int64, difference int64) []int64 {
	merged := make([]int64, 0, min(len(earlier)+len(keys), 2*len(keys)))
	next := 0 // index of the first key of earlier that is not merged yet
	for _, key := range keys {
		key += difference
		for ; next < len(earlier) && earlier[next] < key; next++ {
			merged = append(merged, earlier[next])
		}
		if next < len(earlier) && earlier[next] == key {
			next++
		}
		merged = append(merged, key)
	}
	return append(merged, earlier[next:]...)
}
