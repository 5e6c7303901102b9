package parity

// Contraction: Z by additions of positive terms, marginals by a transform.

import (
	"context"
	"fmt"
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
	// certain is the error of an exact ln Z, nats, beside 2^-50 of it, and of a marginal.
	certain = 1e-10
	// least is the share of the largest number of a step below which one leaves the range of float64.
	least = 0x1p-960
)

// form is a network under evidence.
type form struct {
	*model
	*dependence
	row map[int]int // pivot by first variable
}

// slot is the place of forms.
type slot struct{}

// formOf returns the form of a problem; nil if it has none.
func formOf(ctx context.Context, p *problem.Problem) (*form, error) {
	return problem.Form(ctx, p, slot{}, nil, func() (*form, error) {
		m, err := modelOf(ctx, p.Net)
		if m == nil || err != nil {
			return nil, err
		}
		d, err := depend(ctx, m)
		if d == nil || err != nil {
			return nil, err
		}
		f := &form{model: m, dependence: d, row: map[int]int{}}
		for place, pivot := range d.pivots {
			f.row[pivot.first] = place
		}
		return f, nil
	})
}

// states is the number of values of the dependent parities.
func (f *form) states() int { return 1 << len(f.dependent) }

// work is the flops of Z, and of all marginals.
func (f *form) work(marginals bool) float64 {
	flops := 3 * float64(f.states()) * float64(len(f.independent)+len(f.dependent))
	if marginals {
		flops += float64(f.n) * float64(f.states()) * float64(2*len(f.dependent)+40)
	}
	return flops + float64(f.n*len(f.factors))
}

// Contract implements contraction.Contractor.
func (p *Parities) Contract(ctx context.Context, of *problem.Problem, want problem.Want) (btn.Value, error) {
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
	value := btn.Value{Flops: f.work(want.Marginals)}
	total, lost, err := f.sum(ctx, nil)
	if err != nil {
		return btn.Value{}, err
	}
	value.Z = total.Mul(f.scale).Mul(scaled.Make(1, int64(f.n-len(f.independent))))
	if value.Z.IsZero() {
		if lost {
			value.Doubt = "terms leave the range of float64"
		}
		if j.M != nil {
			value.Marginals = j.M.Result(scaled.One)
		}
		return value, nil
	}
	if lost {
		value.Doubt = "terms leave the range of float64, and may be missing from the total"
	}
	if e := math.Ldexp(float64(2*len(f.factors)+8)+f.roundings, -53); e > certain+math.Ldexp(math.Abs(value.Z.LogAbs()), -50) {
		value.Doubt = fmt.Sprintf("ln Z may be off by %.1g", e)
	}
	if j.M != nil {
		rows, err := f.marginals(ctx, j.Threads, total)
		if err != nil {
			return btn.Value{}, err
		}
		value.Marginals = j.Weighted(rows, value.Z)
	}
	return value, nil
}

// sum returns Σ_s D(s) Π_j f_j(s_j). Of the independent factors that are negated, f(1) counts with the other sign. lost says that a
// number left the range of float64.
func (f *form) sum(ctx context.Context, negated set) (total scaled.Number, lost bool, err error) {
	current, next := make([]float64, f.states()), make([]float64, f.states())
	current[0] = 1
	exp := int64(0)
	for i, j := range f.independent {
		if err := ctx.Err(); err != nil {
			return total, false, err
		}
		even, odd, column := f.factors[j].values[0], f.factors[j].values[1], int(f.columns[i])
		if negated != nil && negated.contains(i) {
			odd = -odd
		}
		largest := 0.0
		for s := range next {
			y := float64(even*current[s]) + float64(odd*current[s^column])
			next[s] = y
			largest = max(largest, math.Abs(y))
		}
		current, next = next, current
		shift := rescale(current, largest, &lost)
		exp += int64(shift)
	}
	for b, j := range f.dependent {
		largest := 0.0
		for s := range current {
			current[s] *= f.factors[j].values[s>>b&1]
			largest = max(largest, math.Abs(current[s]))
		}
		exp += int64(rescale(current, largest, &lost))
	}
	all, rest := 0.0, 0.0
	for _, y := range current { // compensated (Kahan)
		y -= rest
		sum := all + y
		rest = (sum - all) - y
		all = sum
	}
	return scaled.Make(all, exp), lost, nil
}

// rescale divides numbers by a power of 2 if the largest is far from 1, and returns its exponent. lost is set if one becomes too small.
func rescale(list []float64, largest float64, lost *bool) int {
	if largest == 0 || largest < 0x1p40 && largest > 0x1p-40 {
		return 0
	}
	shift := math.Ilogb(largest)
	factor := math.Ldexp(1, -shift)
	for s, y := range list {
		list[s] = y * factor
		if y != 0 && math.Abs(list[s]) < least {
			*lost = true
		}
	}
	return shift
}

// marginals returns P(x) of every variable, of a total above 0.
func (f *form) marginals(ctx context.Context, threads int, total scaled.Number) ([][]float64, error) {
	rows := make([][]float64, f.n)
	base := f.logarithms(nil)
	sum, size := base.sums()
	err := sumproduct.Share(ctx, sumproduct.Threads(threads), f.n, func(_, v int) error {
		variables, factors := newSet(f.n), newSet(len(f.factors))
		variables.toggle(v)
		f.reduce(f.row, variables, factors)
		mean := 0.0
		if variables.first() < 0 {
			transform := f.logarithms(factors)
			part, partSize := transform.sums()
			mean = part / sum * math.Exp(transform.largest-base.largest)
			if !(math.Ldexp(size/math.Abs(sum)+partSize/math.Abs(sum)*math.Exp(transform.largest-base.largest), -40) <= certain) {
				exact, _, err := f.sum(ctx, factors)
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

// transform is the terms of the Walsh–Hadamard transform of a sum: ± e^(ln + largest).
type transform struct {
	ln      []float64
	signs   uint32 // term ω is below 0 if the parity of ω and this is odd …
	negates bool   // … or, with this, even
	largest float64
	zero    bool // all terms are 0
}

// logarithms returns the terms Π over factors of f(0) ± f(1). Of the independent factors that are negated, f(1) counts with the other
// sign.
func (f *form) logarithms(negated set) *transform {
	t := &transform{ln: make([]float64, f.states()), largest: math.Inf(-1)}
	constant := 0.0
	add := func(values [2]float64, column uint32, negated bool) {
		plus, minus := values[0]+values[1], values[0]-values[1] // of even and of odd ω · column
		if negated {
			plus, minus = minus, plus
		}
		if plus < 0 {
			t.negates = !t.negates
			t.signs ^= column
		}
		if minus < 0 {
			t.signs ^= column
		}
		a, b := math.Log(math.Abs(plus)), math.Log(math.Abs(minus))
		constant += (a + b) / 2
		t.ln[column] += (a - b) / 2
	}
	for i, j := range f.independent {
		add(f.factors[j].values, f.columns[i], negated != nil && negated.contains(i))
	}
	for b, j := range f.dependent {
		add(f.factors[j].values, 1<<b, false)
	}
	for width := 1; width < len(t.ln); width *= 2 {
		for from := 0; from < len(t.ln); from += 2 * width {
			for s := from; s < from+width; s++ {
				x, y := t.ln[s], t.ln[s+width]
				t.ln[s], t.ln[s+width] = x+y, x-y
			}
		}
	}
	for s := range t.ln {
		t.ln[s] += constant
		t.largest = max(t.largest, t.ln[s])
	}
	return t
}

// sums returns Σ of the terms, and of their sizes, in units of e^largest.
func (t *transform) sums() (sum, size float64) {
	for s, ln := range t.ln {
		x := math.Exp(ln - t.largest)
		size += x
		if bits.OnesCount32(uint32(s)&t.signs)&1 == 1 {
			x = -x
		}
		sum += x
	}
	if t.negates {
		sum = -sum
	}
	return sum, size
}
