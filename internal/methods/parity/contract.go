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

// form is a network under evidence.
type form struct {
	*model
	*dependence
	pivotAt map[int]int // place in pivots, by the pivot's first variable
}

// slot is the slot of forms in a problem's memory.
type slot struct{}

// formOf returns the form of a problem, made once. It returns nil if the factors are no functions of parities, or if too many parities
// depend on each other.
func formOf(ctx context.Context, p *problem.Problem) (*form, error) {
	return problem.Form(ctx, p, slot{}, nil, func() (*form, error) {
		m, err := modelOf(ctx, p.Net)
		if m == nil || err != nil {
			return nil, err
		}
		d, err := findDependence(ctx, m)
		if d == nil || err != nil {
			return nil, err
		}
		f := &form{model: m, dependence: d, pivotAt: map[int]int{}}
		for place, pivot := range d.pivots {
			f.pivotAt[pivot.first] = place
		}
		return f, nil
	})
}

// states returns the number of values of the dependent parities together.
func (f *form) states() int { return 1 << len(f.dependent) }

// flops returns the flops of Z, and with marginals those of all marginals, too.
func (f *form) flops(marginals bool) float64 {
	flops := 3 * float64(f.states()) * float64(len(f.independent)+len(f.dependent))
	if marginals {
		flops += float64(f.variableCount) * float64(f.states()) * float64(2*len(f.dependent)+40)
	}
	return flops + float64(f.variableCount*len(f.factors))
}

// Contract implements contraction.Contractor.
func (p *Parities) Contract(ctx context.Context, of *problem.Problem, want btn.Want) (btn.Value, error) {
	j, err := contraction.Begin(ctx, of, want)
	if err != nil {
		return btn.Value{}, err
	}
	if j.Joint != nil {
		return btn.Value{}, fault.Wrap(fault.Unsupported, contraction.ErrNoJoint)
	}
	f, err := formOf(ctx, of)
	if err != nil {
		return btn.Value{}, err
	}
	if f == nil {
		return btn.Value{}, fault.New(fault.OverBudget, "parity: factors depend on more than parities, or too many parities on each other")
	}
	if bytes := 16 * float64(f.states()); bytes > float64(j.Memory) {
		return btn.Value{}, fault.New(fault.OverBudget, "parity: %d values take %.3g bytes, the budget is %d bytes", f.states(), bytes, j.Memory)
	}
	value := btn.Value{Flops: f.flops(want.Marginals)}
	total, err := f.weightedSum(ctx, nil)
	if err != nil {
		return btn.Value{}, err
	}
	if value.Z = total.Mul(f.scale).Mul(scaled.Make(1, int64(f.variableCount-len(f.independent)))); value.Z.IsZero() {
		if j.M != nil {
			value.Marginals = j.M.Result(scaled.One)
		}
		return value, nil
	}
	rounding := value.Z.Abs().Mul(scaled.FromFloat(math.Ldexp(float64(2*len(f.factors)+8)+f.roundings, -53)))
	value.Rounding = &rounding
	if j.M != nil {
		rows, err := f.marginals(ctx, f.threads(j), total)
		if err != nil {
			return btn.Value{}, err
		}
		value.Marginals = j.Weighted(rows, value.Z)
	}
	return value, nil
}

// threads returns the number of goroutines for marginals that the memory has room for.
func (f *form) threads(j contraction.Contraction) int {
	return max(1, min(sumproduct.Threads(j.Threads), int(float64(j.Memory)/(24*float64(f.states())))))
}

// weightedSum returns Σ_s D(s) Π_j f_j(s_j). It computes in float64 if no number leaves its range, otherwise in numbers with exponents. For
// the independent factors at negated places, f(1) has the other sign: the sum is then Z times the mean of (−1)^parity of these factors.
func (f *form) weightedSum(ctx context.Context, negatedPlaces set) (scaled.Number, error) {
	total, isLossy, err := f.sumFloats(ctx, negatedPlaces)
	if err != nil || !isLossy {
		return total, err
	}
	return f.sumScaled(ctx, negatedPlaces)
}

// sumFloats is weightedSum in float64. isLossy is true if a number above 0 became less than smallestFloat.
func (f *form) sumFloats(ctx context.Context, negatedPlaces set) (total scaled.Number, isLossy bool, err error) {
	current, next := make([]float64, f.states()), make([]float64, f.states())
	current[0] = 1
	exp := int64(0)
	for i, j := range f.independent {
		if err := ctx.Err(); err != nil {
			return total, false, err
		}
		values, shift, ok := f.factors[j].scaledFloats()
		even, odd, column := values[0], values[1], int(f.columns[i])
		if negatedPlaces != nil && negatedPlaces.contains(i) {
			odd = -odd
		}
		largest := 0.0
		for s := range next {
			fromEven, fromOdd := float64(even*current[s]), float64(odd*current[s^column])
			next[s] = fromEven + fromOdd
			largest = max(largest, math.Abs(next[s]))
			if math.Abs(fromEven) < smallestFloat && even != 0 && current[s] != 0 ||
				math.Abs(fromOdd) < smallestFloat && odd != 0 && current[s^column] != 0 {
				ok = false
			}
		}
		current, next = next, current
		exp += shift + int64(rescale(current, largest))
		isLossy = isLossy || !ok || largest < smallestFloat && largest > 0
	}
	for fromOdd, j := range f.dependent {
		values, shift, ok := f.factors[j].scaledFloats()
		largest := 0.0
		for s, x := range current {
			current[s] *= values[s>>fromOdd&1]
			largest = max(largest, math.Abs(current[s]))
			if math.Abs(current[s]) < smallestFloat && x != 0 && values[s>>fromOdd&1] != 0 {
				ok = false
			}
		}
		exp += shift + int64(rescale(current, largest))
		isLossy = isLossy || !ok
	}
	sum, compensation := 0.0, 0.0 // Kahan
	for _, y := range current {
		y -= compensation
		next := sum + y
		compensation = (next - sum) - y
		sum = next
	}
	return scaled.Make(sum, exp), isLossy, nil
}

// rescale divides numbers by a power of two if the largest is far from 1. It returns the exponent of that power, or 0.
func rescale(list []float64, largest float64) int {
	if largest == 0 || largest < 0x1p40 && largest > 0x1p-40 {
		return 0
	}
	shift := math.Ilogb(largest)
	for s, y := range list {
		list[s] = math.Ldexp(y, -shift)
	}
	return shift
}

// sumScaled is weightedSum in numbers with exponents.
func (f *form) sumScaled(ctx context.Context, negatedPlaces set) (total scaled.Number, err error) {
	current, next := make([]scaled.Number, f.states()), make([]scaled.Number, f.states())
	current[0] = scaled.One
	for i, j := range f.independent {
		even, odd := f.factors[j].values[0], f.factors[j].values[1]
		if negatedPlaces != nil && negatedPlaces.contains(i) {
			odd = odd.Neg()
		}
		if err := ctx.Err(); err != nil {
			return total, err
		}
		for s := range next {
			next[s] = current[s].Mul(even).Add(current[s^int(f.columns[i])].Mul(odd))
		}
		current, next = next, current
	}
	for s, x := range current {
		for b, j := range f.dependent {
			x = x.Mul(f.factors[j].values[s>>b&1])
		}
		current[s] = x
	}
	return scaled.Sum(current), ctx.Err()
}

// marginals returns P(x) of every variable. total is the sum without negated places and above 0.
func (f *form) marginals(ctx context.Context, threads int, total scaled.Number) ([][]float64, error) {
	rows := make([][]float64, f.variableCount)
	base := f.transformTerms(nil)
	sum, size := base.sums()
	err := sumproduct.Share(ctx, sumproduct.Threads(threads), f.variableCount, func(_, v int) error {
		variables, factors := newSet(f.variableCount), newSet(len(f.factors))
		variables.toggle(v)
		f.reduceSet(f.pivotAt, variables, factors)
		mean := 0.0
		if variables.first() < 0 {
			transform := f.transformTerms(factors)
			part, partSize := transform.sums()
			mean = part / sum * math.Exp(transform.largest-base.largest)
			if !(math.Ldexp((size+partSize*math.Exp(transform.largest-base.largest))/math.Abs(sum), -42) <= exactMarginal) {
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

// transform is the terms of the Walsh–Hadamard transform of a weighted sum. Term ω has the size e^lnSize[ω]. It is below 0 if ω and
// signMask have an odd number of bits in common, or, if isNegated, an even number.
type transform struct {
	lnSize    []float64
	signMask  uint32
	isNegated bool
	largest   float64 // of lnSize
}

// transformTerms returns the terms: products over all factors of f(0) ± f(1). negatedPlaces are those of weightedSum.
func (f *form) transformTerms(negatedPlaces set) *transform {
	t := &transform{lnSize: make([]float64, f.states()), largest: math.Inf(-1)}
	constant := 0.0
	add := func(values [2]float64, column uint32, negated bool) {
		plus, minus := values[0]+values[1], values[0]-values[1] // of even and of odd ω · column
		if negated {
			plus, minus = minus, plus
		}
		if plus < 0 {
			t.isNegated = !t.isNegated
			t.signMask ^= column
		}
		if minus < 0 {
			t.signMask ^= column
		}
		a, b := math.Log(math.Abs(plus)), math.Log(math.Abs(minus)) // the values differ, and neither is below 0
		constant += (a + b) / 2
		t.lnSize[column] += (a - b) / 2
	}
	for i, j := range f.independent {
		add(f.factors[j].mantissas(), f.columns[i], negatedPlaces != nil && negatedPlaces.contains(i))
	}
	for b, j := range f.dependent {
		add(f.factors[j].mantissas(), 1<<b, false)
	}
	for width := 1; width < len(t.lnSize); width *= 2 {
		for from := 0; from < len(t.lnSize); from += 2 * width {
			for s := from; s < from+width; s++ {
				x, y := t.lnSize[s], t.lnSize[s+width]
				t.lnSize[s], t.lnSize[s+width] = x+y, x-y
			}
		}
	}
	for s := range t.lnSize {
		t.lnSize[s] += constant
		t.largest = max(t.largest, t.lnSize[s])
	}
	return t
}

// sums returns the sum of the terms and the sum of their sizes, in units of e^largest.
func (t *transform) sums() (sum, size float64) {
	for s, ln := range t.lnSize {
		x := math.Exp(ln - t.largest)
		size += x
		if bits.OnesCount32(uint32(s)&t.signMask)&1 == 1 {
			x = -x
		}
		sum += x
	}
	if t.isNegated {
		sum = -sum
	}
	return sum, size
}
