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

// floatOf returns a float equal to a number that is not below 0.
func floatOf(x scaled.Number) float {
	if x.IsZero() {
		return float{}
	}
	e := (x.Exp + halfUnit) >> 9 // 2^9 = unitBits
	return float{math.Ldexp(x.Mant, int(x.Exp-e*unitBits)), int32(max(math.MinInt32, min(e, math.MaxInt32)))}
}

// scaledNumber returns the number as a scaled.Number.
func (x float) scaledNumber() scaled.Number { return scaled.Make(x.mant, unitBits*int64(x.exp)) }

// normalised moves to the exponent what a product or a sum has beyond the range of mant.
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

// plus returns x + y. If one is below 2^-512 of the other it returns the other.
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
	if x.exp-y.exp > 1 { // below 2^-512 of x
		return x
	}
	return float{x.mant + y.mant*0x1p-512, x.exp}.normalised()
}

// blockSum adds positive numbers: termsPerBlock of them, then the sums of these blocks, so that roundings are few.
type blockSum struct {
	inner, outer float // of the current block, of all before it
	count        int   // terms of the current block
}

// add adds a term.
func (t *blockSum) add(x float) {
	t.inner = t.inner.plus(x)
	if t.count++; t.count == termsPerBlock {
		t.outer, t.inner, t.count = t.outer.plus(t.inner), float{}, 0
	}
}

// sum returns the sum of all terms.
func (t *blockSum) sum() float { return t.outer.plus(t.inner) }

// states is a partial sum: the values that the sum of some variables' statistics has, which are its states, each with the total weight of
// the assignments that lead to it. A state is named by its key (Integers.keys), in increasing order.
type states struct {
	keys []int64
	mant []float64 // of the weights
	exp  []int32
}

// weight returns the weight of a state.
func (s *states) weight(x int) float { return float{s.mant[x], s.exp[x]} }

// appendState appends a state, whose key is above all others.
func (s *states) appendState(key int64, x float) {
	s.keys, s.mant, s.exp = append(s.keys, key), append(s.mant, x.mant), append(s.exp, x.exp)
}

// choice is a value of a variable with a weight above 0.
type choice struct {
	value  int
	key    int64 // what it adds to the key of a sum
	weight float
}

// histogram is the convolution of the variables' choices under weights of single variables.
type histogram struct {
	fit       *Fit
	offset    []int       // of the first value of each variable
	choices   [][]choice  // by place in the sequence
	lnUnit    floats.Pair // the unit of all weights is e^lnUnit
	maxStates float64     // of a partial sum, so that it fits the memory
}

// newHistogram returns the convolution under weights, by variable and value. The largest field of each variable's possible values goes into
// lnUnit. It returns nil if a variable has no possible value.
func newHistogram(f *Fit, weights [][]float64, memory int64) (*histogram, error) {
	n := f.Integers
	keys, err := n.keys(f.Domains)
	if err != nil {
		return nil, err
	}
	h := &histogram{fit: f, lnUnit: floats.Pair{High: n.Ln[0], Low: n.Ln[1]}, choices: make([][]choice, len(f.Domains))}
	offset := 0
	for _, d := range f.Domains {
		h.offset = append(h.offset, offset)
		offset += d
	}
	for place, v := range n.Sequence {
		largest := floats.Pair{High: math.Inf(-1)}
		for x := h.offset[v]; x < h.offset[v]+f.Domains[v]; x++ {
			if n.Field[x] > largest.High && weights[v][x-h.offset[v]] > 0 {
				largest = floats.Pair{High: n.Field[x], Low: n.FieldLow[x]}
			}
		}
		if math.IsInf(largest.High, -1) {
			return nil, nil
		}
		h.lnUnit = h.lnUnit.Plus(largest)
		for x, w := range weights[v] {
			field := floats.Pair{High: n.Field[h.offset[v]+x], Low: n.FieldLow[h.offset[v]+x]}
			if w == 0 || math.IsInf(field.High, -1) {
				continue
			}
			h.choices[place] = append(h.choices[place], choice{
				x, keys[h.offset[v]+x], floatOf(field.Minus(largest).Exp().Mul(scaled.FromFloat(w))),
			})
		}
	}
	h.maxStates = min(maxStatesOfSum, float64(memory)/stateBytes/(4+rangesPerLevel*n.recomputations()))
	return h, nil
}

// flops returns the flops of a sum, with marginals or without.
func (n *Integers) flops(marginals bool) float64 {
	flops := stateFlops * n.States
	if marginals {
		flops *= 2 + n.recomputations()
	}
	return flops
}

// bytes bounds the bytes of a sum with marginals.
func (n *Integers) bytes() float64 {
	return stateBytes * (4 + rangesPerLevel*n.recomputations()) * n.Widest
}

// recomputations returns how often a partial sum is computed again on the way back, at most: the levels of visitBackward.
func (n *Integers) recomputations() float64 {
	return math.Ceil(math.Log(float64(len(n.Sequence)+1)) / math.Log(rangesPerLevel))
}

// emptySum returns the partial sum of no variables: one state of weight 1.
func emptySum() *states { return &states{keys: []int64{0}, mant: []float64{1}, exp: []int32{0}} }

// addVariable adds the variable at a place of the sequence to a partial sum. It is over budget above maxStates.
func (h *histogram) addVariable(sum *states, place int) (*states, error) {
	var next *states
	for _, c := range h.choices[place] {
		next = mergeShifted(next, sum, c)
	}
	if float64(len(next.keys)) > h.maxStates {
		return nil, fault.New(fault.OverBudget, "structured: a sum of integers has more than %.3g values", h.maxStates)
	}
	return next, nil
}

// mergeShifted merges others with the states of sum, moved by a choice: the choice's key is added to their keys, and their weights are
// multiplied by its weight. Weights of equal keys are added. others may be nil.
func mergeShifted(others, sum *states, c choice) *states {
	size := len(sum.keys)
	if others != nil {
		size = min(2*size, size+len(others.keys)) // often fewer
	}
	out := &states{keys: make([]int64, 0, size), mant: make([]float64, 0, size), exp: make([]int32, 0, size)}
	if others == nil {
		for state, key := range sum.keys {
			out.appendState(key+c.key, sum.weight(state).times(c.weight))
		}
		return out
	}
	o := 0 // state of others
	for state, key := range sum.keys {
		key += c.key
		for ; o < len(others.keys) && others.keys[o] < key; o++ {
			out.appendState(others.keys[o], others.weight(o))
		}
		w := sum.weight(state).times(c.weight)
		if o < len(others.keys) && others.keys[o] == key {
			w = w.plus(others.weight(o))
			o++
		}
		out.appendState(key, w)
	}
	for ; o < len(others.keys); o++ {
		out.appendState(others.keys[o], others.weight(o))
	}
	return out
}

// addVariables adds the variables with first ≤ place < end to a partial sum. It looks at ctx for each.
func (h *histogram) addVariables(ctx context.Context, sum *states, first, end int) (*states, error) {
	for place := first; place < end; place++ {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		var err error
		if sum, err = h.addVariable(sum, place); err != nil {
			return nil, err
		}
	}
	return sum, nil
}

// visitBackward calls visit for every place with first ≤ place < end, the last one first, with the partial sum of the variables before the
// place. sum is the partial sum before first. The range is divided into rangesPerLevel ranges: their first partial sums are computed and
// kept, and those within a range are computed again when its turn comes. So few partial sums are in memory.
func (h *histogram) visitBackward(
	ctx context.Context, sum *states, first, end int, visit func(place int, before *states) error,
) error {
	if end-first <= 1 {
		if end > first {
			return visit(first, sum)
		}
		return nil
	}
	sums, starts := []*states{sum}, []int{first} // by range: the partial sum before it, and its first place
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
		end, sums[k] = starts[k], nil
	}
	return nil
}

// stateFactors returns the factor e^{½ SᵀGS} of every state of the sum of all variables.
func (h *histogram) stateFactors(last *states) []float {
	n := h.fit.Integers
	k := n.statisticCount(len(n.Field))
	scale := int64(1) // least common multiple of the domains: scale · S are integers, although means are subtracted
	for _, d := range h.fit.Domains {
		scale = scale / gcd(scale, int64(d)) * int64(d)
	}
	form := make([]floats.Pair, k*k) // G/2 for scale · S
	for x := range form {
		form[x] = floats.Pair{High: n.Form[2*x], Low: n.Form[2*x+1]}.Over(2 * float64(scale) * float64(scale))
	}
	decode := n.newDecoder(h.fit.Domains, scale)
	factors := make([]float, len(last.keys))
	sum := make([]float64, k)
	for state, key := range last.keys {
		decode(key, sum)
		exponent := floats.Pair{}
		for p, y := range sum {
			row := floats.Pair{}
			for q, z := range sum {
				row = row.Plus(form[p*k+q].By(z))
			}
			exponent = exponent.Plus(row.By(y))
		}
		factors[state] = floatOf(exponent.Exp())
	}
	return factors
}

// gcd returns the greatest common divisor.
func gcd(a, b int64) int64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// newDecoder returns a function that fills to with scale · S of the state of all variables with a key. A key is a number in mixed radix:
// its digit for a statistic is the sum of the statistic less its lowest value, and below the statistic's span.
func (n *Integers) newDecoder(domains []int, scale int64) func(key int64, to []float64) {
	values := len(n.Field)
	k := n.statisticCount(values)
	lowest, span, mean := make([]int64, k), make([]int64, k), make([]int64, k) // by statistic, of its sum; mean: times scale
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
	return func(key int64, to []float64) {
		stride := int64(1)
		for c := range k {
			key -= lowest[c] * stride
			stride *= span[c]
		}
		for c := range k {
			to[c] = float64(scale*(key%span[c]+lowest[c]) - mean[c])
			key /= span[c]
		}
	}
}

// countStates counts the states of all partial sums and sets States and Widest. fit is false if they are too many.
func (n *Integers) countStates(ctx context.Context, domains []int, keys []int64) (fit bool, err error) {
	offset := make([]int, len(domains))
	total := 0
	for v, d := range domains {
		offset[v] = total
		total += d
	}
	sum := []int64{0} // keys of a partial sum
	n.States, n.Widest = 1, 1
	for _, v := range n.Sequence {
		if err := ctx.Err(); err != nil {
			return false, err
		}
		var next []int64
		for x := range domains[v] {
			next = mergeKeys(next, sum, keys[offset[v]+x])
		}
		sum = next
		n.States += float64(len(sum) * domains[v] / 2)
		if n.Widest = max(n.Widest, float64(len(sum))); n.Widest > maxStatesOfSum || n.States > maxStatesTogether {
			return false, nil
		}
	}
	return true, nil
}

// mergeKeys merges others with keys, each plus a difference. Both are increasing, and so is the result; equal ones are in it once.
func mergeKeys(others, keys []int64, difference int64) []int64 {
	out := make([]int64, 0, min(len(others)+len(keys), 2*len(keys)))
	o := 0
	for _, key := range keys {
		key += difference
		for ; o < len(others) && others[o] < key; o++ {
			out = append(out, others[o])
		}
		if o < len(others) && others[o] == key {
			o++
		}
		out = append(out, key)
	}
	return append(out, others[o:]...)
}
