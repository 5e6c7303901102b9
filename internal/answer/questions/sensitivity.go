package questions

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/additive"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Sensitivity: how P(target | evidence) = Z_t/Z depends on the numbers of the model. Both are linear in
// every one of them, so that P is their ratio, exactly, however far a number varies.

// sensitivity is how the probability of a target depends on the numbers of the model.
var sensitivity = kind{
	name: "sensitivity",
	want: func(q *query.Query, w *btn.Want) {
		if q.Named != nil && q.Named.Sensitivity != nil {
			w.Derivatives = true // the target follows when the names are resolved
		}
		if q.Sensitivity != nil {
			w.Derivatives, w.Target = true, &factorgraph.Observation{Var: q.Sensitivity.Variable, Value: q.Sensitivity.Value}
		}
	},
	answer: vary,
}

// vary writes the sensitivity that a query asks for, from the derivatives of Z and those of its terms with the target.
func vary(a *answer) {
	if a.asked.Query.Sensitivity == nil || a.total.TargetDerivatives == nil {
		return
	}
	target := *a.asked.Query.Sensitivity
	target.Range = cmp.Or(target.Range, query.DefaultRange)
	target.Top = cmp.Or(target.Top, query.DefaultTop)
	out := &query.SensitivityResult{Sensitivity: target, Tornado: []query.Swing{}}
	by, with, z, cores := a.total.Derivatives, a.total.TargetDerivatives, a.total.Z, a.numbers
	share := a.total.Target.Div(z).Float64()
	if out.P = min(1, max(0, share)); !(math.Abs(share-out.P) <= additive.ProbabilityRounding) {
		a.warn(fmt.Sprintf("no sensitivity: the estimate of the target's probability is %.3g", share))
		return
	}
	unknown := 0
	beyond, difference := false, differences(by, with, z, out.P)
	for c := range cores {
		n := len(cores[c].Numbers)
		if n > len(by) {
			a.warn(fmt.Sprintf("no sensitivity: %d derivatives are left, and a factor has %d numbers", len(by), n))
			return
		}
		theta := cores[c].Numbers
		f := numbersOf{core: &cores[c], factor: c, p: out.P}
		f.total, f.target = f.over(by[:n], nil, z), f.over(with[:n], nil, z)
		f.totalShare, f.targetShare = f.over(by[:n], theta, z), f.over(with[:n], theta, z)
		f.report(out)
		beyond = beyond || f.beyond
		unknown += f.unknown
		by, with = by[n:], with[n:]
	}
	if beyond {
		sizes := make([]int, len(cores))
		for c := range sizes {
			sizes[c] = len(cores[c].Numbers)
		}
		out.Derivatives = scaledGradients(difference(), sizes, scaled.One)
		a.warn("a derivative is beyond float64: all of them are given as mantissas and exponents")
	}
	if unknown > 0 {
		a.warn(
			fmt.Sprintf("%d numbers are not ranked: in their ranges Z cancels as far as rounding or leaves float64, or P leaves 0 to 1", unknown))
	}
	slices.SortStableFunc(out.Tornado, func(x, y query.Swing) int { return cmp.Compare(y.High-y.Low, x.High-x.Low) })
	out.Tornado = slices.Clip(out.Tornado[:min(len(out.Tornado), target.Top)])
	a.to.Sensitivity = out
}

// differences returns a function that makes the derivatives of P for numbers of any range.
func differences(by, with []scaled.Number, z scaled.Number, p float64) func() []scaled.Number {
	return func() []scaled.Number {
		out := make([]scaled.Number, len(by))
		for k := range out {
			out[k] = with[k].Div(z).Sub(by[k].Div(z).Mul(scaled.FromFloat(p)))
		}
		return out
	}
}

// over divides derivatives by Z, times the numbers that they are by unless these are nil.
func (f *numbersOf) over(by []scaled.Number, theta []float64, z scaled.Number) []float64 {
	out := make([]float64, len(by))
	for k, x := range by {
		if theta != nil {
			x = x.Mul(scaled.FromFloat(theta[k]))
		}
		out[k] = x.Div(z).Float64()
		f.lost = f.lost || !x.IsZero() && math.Abs(out[k]) < leastKept
	}
	return out
}

// numbersOf is one factor: its numbers, and the derivatives of Z and of Z with the target by them, over Z; these times the numbers.
type numbersOf struct {
	core          *btn.CoreNumbers
	factor        int
	p             float64
	total, target []float64
	totalShare    []float64
	targetShare   []float64
	lost          bool // some of these are below leastKept, and may be 0 where they should not
	unknown       int  // numbers whose swing is lost among terms of both signs, or as lost is
	beyond        bool // a derivative is beyond float64
}

// report adds what the factor has.
func (f *numbersOf) report(out *query.SensitivityResult) {
	plain := make([]float64, len(f.total))
	for k := range plain {
		plain[k] = f.target[k] - f.p*f.total[k]
		f.beyond = f.beyond || plain[k]-plain[k] != 0
	}
	total, target := f.lines(f.total, f.totalShare, 1), f.lines(f.target, f.targetShare, f.p)
	var covaried []float64
	if f.core.Row > 0 {
		covaried = make([]float64, len(plain))
		for k := range covaried {
			if covaried[k] = target[k].slope() - f.p*total[k].slope(); covaried[k]-covaried[k] != 0 {
				f.beyond, covaried = true, nil
				break
			}
		}
	}
	out.Derivatives.By = append(out.Derivatives.By, plain)
	out.Covaried = append(out.Covaried, covaried)
	for k, theta := range f.core.Numbers {
		if s, moves := f.swing(k, theta, &total[k], &target[k], out.Range); moves {
			out.Tornado = append(out.Tornado, s)
		}
	}
}

// line is Z, or Z with the target, as a function of one number x, θ today: rest + x/θ share + (left + θ − x) others. The rest has neither
// the number nor its row, whose other numbers sum to left, and of which others is the derivative.
type line struct {
	theta, rest, by, share, left, others float64
	sure                                 bool // the rest is a sum of numbers that are not negative: nothing cancels
}

func (l *line) slope() float64 { return l.by - l.others }

func (l *line) at(x float64) float64 {
	by := l.share
	if l.theta != 0 {
		by *= x / l.theta
	}
	return l.rest + by + (l.left+(l.theta-x))*l.others
}

// lines returns the line of every number of a factor from the derivatives: every group of numbers has whole = Σ θ by, and with it what
// is left without one of them, or without its row in a conditional table. Linear time, for a row its square.
func (f *numbersOf) lines(by, share []float64, whole float64) []line {
	out := make([]line, len(by))
	for k := range out {
		out[k].theta, out[k].by, out[k].share = f.core.Numbers[k], by[k], share[k]
	}
	if f.core.Row > 0 {
		f.rows(out, share)
	} else {
		f.groups(out, share)
	}
	for k := range out {
		kept := out[k].at(out[k].theta)
		if out[k].sure = out[k].sure && math.Abs(kept-whole) <= agreement*whole; !out[k].sure {
			out[k].rest += whole - kept
		}
	}
	return out
}

// agreement is the largest relative difference of two sums of the same parts of Z.
const agreement = 1e-9

// groups fills in what is left without each number: the rest of its group, and the other terms of the factor.
func (f *numbersOf) groups(out []line, share []float64) {
	var terms []float64 // by term, the sum over its first group
	at := 0
	for _, sizes := range f.core.Groups {
		for g, n := range sizes {
			if g == 0 {
				terms = append(terms, total(share[at:at+n]))
			}
			at += n
		}
	}
	if at != len(out) { // no groups, see btn.CoreNumbers
		return
	}
	at = 0
	terms, sure := without(terms)
	for t, sizes := range f.core.Groups {
		for _, n := range sizes {
			rest, all := without(share[at : at+n])
			for k, x := range rest {
				out[at+k].rest, out[at+k].sure = x+terms[t], sure && all
			}
			at += n
		}
	}
}

// rows fills in what is left without the row of each number, and the derivative by the rest of a row that keeps its proportions,
//
//	Σ_{y≠x} D_y θ_y/Σ_{z≠x} θ_z
//
// of which the others have none beside a number that is 1, and share alike.
func (f *numbersOf) rows(out []line, share []float64) {
	mode := f.core.Row - 1
	d, stride := f.core.Shape[mode], 1
	for _, n := range f.core.Shape[mode+1:] {
		stride *= n
	}
	first := func(row int) int { return row/stride*(d*stride) + row%stride }
	row := make([]float64, len(out)/d)
	for i := range row {
		for x := range d {
			row[i] += share[first(i)+x*stride]
		}
	}
	rest, sure := without(row)
	sure = sure && len(f.core.Groups) > 0
	for i := range row {
		for x := range d {
			k := first(i) + x*stride
			for y := range d {
				if y != x {
					out[k].left += f.core.Numbers[first(i)+y*stride]
				}
			}
			for y := range d {
				switch at := first(i) + y*stride; {
				case y == x:
				case out[k].left > 0:
					out[k].others += out[at].by * (f.core.Numbers[at] / out[k].left)
				default:
					out[k].others += out[at].by / float64(d-1)
				}
			}
			if d == 1 { // it does not vary
				out[k].others = out[k].by
			}
			out[k].rest, out[k].sure = rest[i], sure
		}
	}
}

// total is the sum of all numbers.
func total(x []float64) (sum float64) {
	for _, v := range x {
		sum += v
	}
	return sum
}

// without returns the sums of all numbers but one, and whether none is negative.
func without(x []float64) (rest []float64, sure bool) {
	rest, sure = make([]float64, len(x)), true
	before, behind := 0.0, 0.0
	for k, v := range x {
		rest[k] = before
		before += v
		sure = sure && v >= 0
	}
	for k, v := range slices.Backward(x) {
		rest[k] += behind
		behind += v
	}
	return rest, sure
}

// outOfRange is how far rounding may put P beside 0 or 1 where terms of both signs have left seven digits.
const outOfRange = 1e-6

// leastKept is the least share of Z with all of its digits; where some are below, P is of shares from leastSeen on.
const leastKept, leastSeen = 0x1p-1022, 0x1p-900

// leastLeft is the least share of its terms that a difference may be, so that seven digits of it count.
const leastLeft = 1e-4

// swing is where P is when a number varies; false where it stays. P is monotonic between both ends, as a
// ratio of two linear functions without a pole.
func (f *numbersOf) swing(k int, theta float64, total, target *line, share float64) (query.Swing, bool) {
	s := query.Swing{Factor: f.factor, Number: k, Theta: theta, Low: f.p, High: f.p}
	s.From, s.To = theta*(1-share), min(max(theta*(1+share), -math.MaxFloat64), math.MaxFloat64)
	if s.From > s.To {
		s.From, s.To = s.To, s.From
	}
	if f.core.Row > 0 {
		s.To = min(1, s.To)
		v := f.core.Scope[f.core.Row-1]
		s.Of = &v
	}
	if theta == 0 && (math.IsInf(total.by, 0) || math.IsInf(target.by, 0)) { // it may be a number below float64
		f.unknown++
		return s, false
	}
	if s.From == s.To {
		return s, false
	}
	for _, end := range []float64{s.From, s.To} {
		below := total.at(end)
		if math.IsNaN(below) || math.IsInf(below, 0) {
			f.unknown++
			return s, false
		}
		if f.lost && below < leastSeen || !total.sure && math.Abs(below) < leastLeft*(1+math.Abs(total.share)) {
			f.unknown++
			return s, false
		}
		if !(below > 0) {
			continue // nothing is left of Z there: P has no value
		}
		share := target.at(end) / below
		p := min(1, max(0, share))
		if math.Abs(share-p) > outOfRange { // of numbers below 0
			f.unknown++
			return s, false
		}
		s.Low, s.High = min(s.Low, p), max(s.High, p)
	}
	if f.core.Scope != nil {
		s.Variables = f.core.Scope
		s.Values = make([]int, len(f.core.Shape))
		for m := len(s.Values) - 1; m >= 0; m-- {
			s.Values[m] = k % f.core.Shape[m]
			k /= f.core.Shape[m]
		}
	}
	return s, s.High > s.Low && !math.IsNaN(s.High-s.Low)
}
