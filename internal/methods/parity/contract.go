package parity

// Contraction: Z by additions of positive terms, marginals by a transform.

import (
	"context"
	"math"
	"math/bits"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

const (
	// exactMarginal is the error up to which a marginal is exact.
	exactMarginal = 1e-10
	// smallestFloat is the size below which a number is taken to leave the range of float64.
	smallestFloat = 0x1p-900
)

// form is a network under evidence, as a product of functions of parities.
type form struct {
	*model
	*dependence
	pivotOf map[int]int // by variable: the index of the pivot whose first variable it is
}

// slot is the slot of forms in a problem's memory.
type slot struct{}

// formOf returns the form of a problem's network, which is made once. It returns nil if a table is no function of a parity, if a number is
// below 0, or if more than maxDependent factors have parities that are sums modulo 2 of those of earlier factors.
func formOf(ctx context.Context, p *problem.Problem) (*form, error) {
	return problem.Form(ctx, p, slot{}, nil, func() (*form, error) {
		model, err := readModel(ctx, p.Net)
		if model == nil || err != nil {
			return nil, err
		}
		dependence, err := findDependence(ctx, model)
		if dependence == nil || err != nil {
			return nil, err
		}
		f := &form{model: model, dependence: dependence, pivotOf: map[int]int{}}
		for index, pivot := range dependence.pivots {
			f.pivotOf[pivot.first] = index
		}
		return f, nil
	})
}

// states returns the number of states: of combinations of the dependent factors' parities.
func (f *form) states() int { return 1 << len(f.dependent) }

// flops returns the flops of Z, or with marginals those of Z and all marginals.
func (f *form) flops(marginals bool) float64 {
	flops := 3 * float64(f.states()) * float64(len(f.independent)+len(f.dependent)) // two products and a sum for each state and factor
	if marginals {
		// A transform takes 2 flops for each state and dependent factor, and an exponential for each state, about 40 flops.
		flops += float64(f.variableCount) * float64(f.states()) * float64(2*len(f.dependent)+40)
	}
	return flops + float64(f.variableCount*len(f.factors)) // the elimination over GF(2) (findDependence)
}

// Contract implements contraction.Contractor: it computes Z with a bound of its rounding, and the marginals if they are wanted. There is no
// joint marginal.
func (p *Parities) Contract(ctx context.Context, problem *problem.Problem, want btn.Want) (btn.Value, error) {
	j, err := contraction.Begin(ctx, problem, want)
	if err != nil {
		return btn.Value{}, err
	}
	if j.Joint != nil {
		return btn.Value{}, fault.Wrap(fault.Unsupported, contraction.ErrNoJoint)
	}
	f, err := formWithin(ctx, problem, j.Memory)
	if err != nil {
		return btn.Value{}, err
	}

	// Z = scale · 2^(variables − independent factors) · the weighted sum. The power is the number of assignments for which the independent
	// factors have given parities.
	value := btn.Value{Flops: f.flops(want.Marginals)}
	total, err := f.weightedSum(ctx, nil) // without negated factors
	if err != nil {
		return btn.Value{}, err
	}
	value.Z = total.Mul(f.scale).Mul(scaled.Make(1, int64(f.variableCount-len(f.independent))))
	if value.Z.IsZero() {
		if j.Marginals != nil {
			value.Marginals = j.Marginals.Result(scaled.One) // zeros
		}
		return value, nil
	}

	// No term is below 0, so the relative rounding of Z is that of a term: a product and a sum for each factor, and the values' own roundings.
	rounding := value.Z.Abs().Mul(scaled.FromFloat(math.Ldexp(float64(2*len(f.factors)+8)+f.roundings, -53)))
	value.Rounding = &rounding
	if j.Marginals != nil {
		rows, err := f.marginals(ctx, f.threads(j), total)
		if err != nil {
			return btn.Value{}, err
		}
		value.Marginals = j.ScaledMarginals(rows, value.Z)
	}
	return value, nil
}

// formWithin returns the form of a problem's network. It returns an error over budget if the network has no form: a table is no function of
// a parity, a number is below 0, or more than maxDependent factors have parities that are sums modulo 2 of those of earlier factors. It
// also returns one if the weighted sum takes more bytes than memory: it is over the states, the combinations of these dependent parities,
// and holds two numbers for each.
func formWithin(ctx context.Context, problem *problem.Problem, memory int64) (*form, error) {
	f, err := formOf(ctx, problem)
	if err != nil {
		return nil, err
	}
	if f == nil {
		return nil, fault.New(fault.OverBudget, "parity: factors depend on more than parities, or too many parities on each other")
	}
	if bytes := 16 * float64(f.states()); bytes > float64(memory) { // two lists of float64 by state (sumFloats)
		return nil, fault.New(fault.OverBudget, "parity: %d values take %.3g bytes, the budget is %d bytes", f.states(), bytes, memory)
	}
	return f, nil
}

// threads returns the number of goroutines for marginals that the memory has room for.
func (f *form) threads(j contraction.Contraction) int {
	const stateBytes = 24 // the two lists of sumFloats, and the terms of a transform
	return max(1, min(sumproduct.Threads(j.Threads), int(float64(j.Memory)/(stateBytes*float64(f.states())))))
}

// weightedSum returns Σ_s D(s) Π_b f_b(s_b) over the states s. Bit b of a state is the parity of dependent factor b, with the values f_b.
// D(s) is the sum of Π_i f_i over the parities of the independent factors i that lead to state s. negated is nil or a set of independent
// factors, by index. Their f_i(1) has the other sign, which gives the sum times the mean of (−1)^parity of these factors together.
//
// It computes in float64 if no number leaves its range, and otherwise in numbers with exponents.
func (f *form) weightedSum(ctx context.Context, negated set) (scaled.Number, error) {
	total, isLossy, err := f.sumFloats(ctx, negated)
	if err != nil || !isLossy {
		return total, err
	}
	return f.sumScaled(ctx, negated)
}

// sumFloats is weightedSum in float64: Σ_s D(s) Π_b f_b(s_b), where bit b of s is the parity of dependent factor b. D(s) is the sum of the
// products of the independent factors over those of their parities that lead to s. Independent factors in negated, which may be nil, have
// f(1) with the other sign. isLossy is true if a number other than 0 became smaller than smallestFloat, so that digits may be lost.
func (f *form) sumFloats(ctx context.Context, negated set) (total scaled.Number, isLossy bool, err error) {
	t := &floatStates{sums: make([]float64, f.states()), next: make([]float64, f.states())}
	t.sums[0] = 1 // D(s) without any independent factor: all parities are 0
	for i, j := range f.independent {
		if err := ctx.Err(); err != nil {
			return total, false, err
		}
		t.addIndependent(&f.factors[j], int(f.columns[i]), negated != nil && negated.contains(i))
	}
	for b, j := range f.dependent {
		t.multiplyDependent(&f.factors[j], b)
	}

	sum, compensation := 0.0, 0.0 // Kahan's summation
	for _, y := range t.sums {
		y -= compensation
		next := sum + y
		compensation = (next - sum) - y
		sum = next
	}
	return scaled.Make(sum, t.exp), t.isLossy, nil
}

// floatStates is a number D(s) for each state s, the parities of the dependent factors. First D(s) is the sum over the parities of the
// independent factors so far that lead to state s; then it is multiplied by the values of the dependent factors.
type floatStates struct {
	sums    []float64 // by state: D(s) / 2^exp
	next    []float64 // buffer for the next D
	exp     int64
	isLossy bool // a number other than 0 became smaller than smallestFloat
}

// addIndependent sums over the parity of one more independent factor: D(s) becomes f(0) D(s) + f(1) D(s ⊕ column). Bit b of the state s is
// the parity of dependent factor b, and column has the bits of those whose parity this factor is part of. D(s) is sums[s] · 2^exp. If
// isNegated, f(1) has the other sign. isLossy becomes true if a product is so small that digits may be lost.
func (t *floatStates) addIndependent(f *factor, column int, isNegated bool) {
	values, shift, ok := f.scaledFloats()
	even, odd := values[0], values[1]
	if isNegated {
		odd = -odd
	}

	sums, next := t.sums, t.next
	largest := 0.0
	for s := range next {
		fromEven, fromOdd := float64(even*sums[s]), float64(odd*sums[s^column]) // conversions keep the products from being fused
		next[s] = fromEven + fromOdd
		largest = max(largest, math.Abs(next[s]))
		hasLostEven := math.Abs(fromEven) < smallestFloat && even != 0 && sums[s] != 0
		hasLostOdd := math.Abs(fromOdd) < smallestFloat && odd != 0 && sums[s^column] != 0
		if hasLostEven || hasLostOdd {
			ok = false
		}
	}
	t.sums, t.next = next, sums
	t.exp += shift + int64(rescale(next, largest))
	t.isLossy = t.isLossy || !ok || largest < smallestFloat && largest > 0
}

// multiplyDependent multiplies D(s), the sum so far over the parities of independent factors, by the value of dependent factor b at its
// parity, bit b of s. D(s) is sums[s] · 2^exp.
func (t *floatStates) multiplyDependent(f *factor, b int) {
	values, shift, ok := f.scaledFloats()
	sums := t.sums
	largest := 0.0
	for s, x := range sums {
		sums[s] *= values[s>>b&1]
		largest = max(largest, math.Abs(sums[s]))
		if math.Abs(sums[s]) < smallestFloat && x != 0 && values[s>>b&1] != 0 {
			ok = false
		}
	}
	t.exp += shift + int64(rescale(sums, largest))
	t.isLossy = t.isLossy || !ok
}

// rescale divides numbers by a power of two if the largest is far from 1. It returns the exponent of the power, or 0.
func rescale(list []float64, largest float64) int {
	if largest == 0 || largest < 0x1p40 && largest > 0x1p-40 { // near enough to 1; 40 is chosen, the range of float64 ends at 2^±1022
		return 0
	}
	shift := math.Ilogb(largest)
	for s, y := range list {
		list[s] = math.Ldexp(y, -shift)
	}
	return shift
}

// sumScaled is weightedSum, Σ_s D(s) Π_b f_b(s_b), in numbers with exponents of their own. Bit b of a state s is the parity of dependent
// factor b. For each independent factor, D(s) becomes f(0) D(s) + f(1) D(s ⊕ column), where column has the bits of the dependent factors
// whose parity the factor is part of. Then D(s) is multiplied by the dependent factors' values at the bits of s.
func (f *form) sumScaled(ctx context.Context, negated set) (total scaled.Number, err error) {
	sums, next := make([]scaled.Number, f.states()), make([]scaled.Number, f.states())
	sums[0] = scaled.One // D(s) without any independent factor: all parities are 0
	for i, j := range f.independent {
		even, odd := f.factors[j].values[0], f.factors[j].values[1]
		if negated != nil && negated.contains(i) {
			odd = odd.Neg()
		}
		if err := ctx.Err(); err != nil {
			return total, err
		}
		for s := range next {
			next[s] = sums[s].Mul(even).Add(sums[s^int(f.columns[i])].Mul(odd))
		}
		sums, next = next, sums
	}
	for s, x := range sums {
		for b, j := range f.dependent {
			x = x.Mul(f.factors[j].values[s>>b&1])
		}
		sums[s] = x
	}
	return scaled.Sum(sums), ctx.Err()
}

// marginals returns P(x) of every variable v, from the mean of (−1)^{x_v}. total is the weighted sum without negated factors, which is
// above 0.
//
// The mean is 0 if x_v is no sum of the parities of independent factors. Otherwise it is the weighted sum with these factors negated, over
// total. That is a quotient of sums of a transform's terms; it is computed exactly if terms of both signs cancel too much.
func (f *form) marginals(ctx context.Context, threads int, total scaled.Number) ([][]float64, error) {
	rows := make([][]float64, f.variableCount)
	base := f.transformTerms(nil) // without negated factors
	sum, size := base.sums()
	err := sumproduct.RunChunks(ctx, sumproduct.Threads(threads), f.variableCount, func(_, v int) error {
		mean := 0.0
		if factors, ok := f.factorsOf(v); ok {
			negatedTerms := f.transformTerms(factors)
			negatedSum, negatedSize := negatedTerms.sums() // in units of e^negatedTerms.largest; sum and size are in units of e^base.largest
			unit := math.Exp(negatedTerms.largest - base.largest)
			mean = negatedSum / sum * unit
			// The terms are off by up to 2^−42 of their sizes, from exponentials of sums of logarithms. size/|sum| is how much cancels.
			relativeError := math.Ldexp((size+negatedSize*unit)/math.Abs(sum), -42)
			if isExact := relativeError <= exactMarginal; !isExact {
				exact, err := f.weightedSum(ctx, factors)
				if err != nil {
					return err
				}
				mean = exact.Div(total).Float64()
			}
		}
		mean = max(-1, min(1, mean))
		rows[v] = []float64{(1 + mean) / 2, (1 - mean) / 2}
		return nil
	})
	return rows, err
}

// factorsOf returns the set of independent factors whose parities add up to x_v modulo 2. ok is false if there is no such set.
func (f *form) factorsOf(v int) (factors set, ok bool) {
	variables, factors := newSet(f.variableCount), newSet(len(f.factors))
	variables.toggle(v)
	f.reduceSet(f.pivotOf, variables, factors) // x_v is the sum of the factors' parities and of what is left in variables
	return factors, variables.first() < 0      // −1: nothing is left
}

// transform is the terms of the Walsh–Hadamard transform of a weighted sum. Term ω has the size e^lnSize[ω]. It is below 0 if ω and
// signMask have an odd number of bits in common, or, if isNegated, an even number.
type transform struct {
	lnSize    []float64
	signMask  uint32
	isNegated bool
	largest   float64 // of lnSize
}

// transformTerms returns the terms of the Walsh–Hadamard transform of a weighted sum. Term ω is the product over all factors f of plus =
// f(0) + f(1), if ω and the factor's column have an even number of bits in common, or of minus = f(0) − f(1), if an odd number. plus and
// minus are exchanged for the independent factors in negated; nil: for none.
//
// ln |term ω| is Σ_f (ln|plus| + ln|minus|)/2 ± (ln|plus| − ln|minus|)/2, with the sign of (−1)^(bits in common). So one Walsh–Hadamard
// transform of the half differences, each at its factor's column, gives all logarithms, up to the constant of the half sums.
func (f *form) transformTerms(negated set) *transform {
	t := &transform{lnSize: make([]float64, f.states())}
	constant := 0.0
	for i, j := range f.independent {
		constant += t.addFactor(f.factors[j].mantissas(), f.columns[i], negated != nil && negated.contains(i))
	}
	for b, j := range f.dependent { // the column of a dependent factor is a bit of its own
		const isNegated = false
		constant += t.addFactor(f.factors[j].mantissas(), 1<<b, isNegated)
	}
	walshHadamard(t.lnSize)

	t.largest = math.Inf(-1)
	for s := range t.lnSize {
		t.lnSize[s] += constant
		t.largest = max(t.largest, t.lnSize[s])
	}
	return t
}

// addFactor adds a factor to the signs of the terms, and half its difference ln|plus| − ln|minus| to lnSize at its column, before lnSize is
// transformed. It returns half the sum ln|plus| + ln|minus|. If isNegated, plus and minus are exchanged.
func (t *transform) addFactor(values [2]float64, column uint32, isNegated bool) (halfSum float64) {
	plus, minus := values[0]+values[1], values[0]-values[1]
	if isNegated {
		plus, minus = minus, plus
	}
	if plus < 0 { // the terms with an even number of bits in common change their signs: all change, and those with an odd number change back
		t.isNegated = !t.isNegated
		t.signMask ^= column
	}
	if minus < 0 {
		t.signMask ^= column
	}
	lnPlus, lnMinus := math.Log(math.Abs(plus)), math.Log(math.Abs(minus)) // finite: the values differ, and neither is below 0
	t.lnSize[column] += (lnPlus - lnMinus) / 2
	return (lnPlus + lnMinus) / 2
}

// walshHadamard replaces x_s, for each s, by Σ_t (−1)^(number of bits that s and t have in common) x_t. The length is a power of 2.
func walshHadamard(x []float64) {
	for width := 1; width < len(x); width *= 2 {
		for from := 0; from < len(x); from += 2 * width {
			for s := from; s < from+width; s++ {
				x[s], x[s+width] = x[s]+x[s+width], x[s]-x[s+width]
			}
		}
	}
}

// sums returns the sum of all terms with their signs, and the sum of their sizes, both in units of e^largest. Term ω has the size
// e^lnSize[ω], and is below 0 if ω and signMask have an odd number of bits in common, or, if isNegated, an even number.
func (t *transform) sums() (sum, size float64) {
	for ω, ln := range t.lnSize {
		x := math.Exp(ln - t.largest)
		size += x
		if bits.OnesCount32(uint32(ω)&t.signMask)&1 == 1 {
			x = -x
		}
		sum += x
	}
	if t.isNegated {
		sum = -sum
	}
	return sum, size
}
