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

// Sensitivity: how P(target | evidence) = Z_t/Z depends on the numbers of the model. Z is the total under the evidence, and Z_t the sum of
// its terms that have the target value. Both are linear in every number of the model, so P as a function of one number is a ratio of two
// lines, exactly, however far the number varies.

// sensitivity asks how the probability of a target depends on the numbers of the model.
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
	answer: answerSensitivity,
}

// answerSensitivity writes the sensitivity that a query asks for, from the derivatives of Z and Z_t by the numbers of all factors. It
// writes only a warning if P is no probability, or if derivatives are missing. It does nothing if the query does not ask for it.
func answerSensitivity(a *answer) {
	if a.asked.Query.Sensitivity == nil || a.total.TargetDerivatives == nil {
		return
	}
	target := *a.asked.Query.Sensitivity
	target.Range = cmp.Or(target.Range, query.DefaultRange)
	target.Top = cmp.Or(target.Top, query.DefaultTop)
	out := &query.SensitivityResult{Sensitivity: target, Tornado: []query.Swing{}}
	z, cores := a.total.Z, a.numbers
	p := a.total.Target.Div(z).Float64()
	if out.P = min(1, max(0, p)); !(math.Abs(p-out.P) <= additive.ProbabilityRounding) {
		a.warn(fmt.Sprintf("no sensitivity: the estimate of the target's probability is %.3g", p))
		return
	}
	unranked, hasOverflow := 0, false
	dTotal, dTarget := a.total.Derivatives, a.total.TargetDerivatives // those of the factors from c on
	for c := range cores {
		theta := cores[c].Numbers
		n := len(theta)
		if n > len(dTotal) {
			a.warn(fmt.Sprintf("no sensitivity: %d derivatives are left, and a factor has %d numbers", len(dTotal), n))
			return
		}
		f := factorSensitivity{core: &cores[c], factor: c, p: out.P}
		f.totalSlope, f.targetSlope = f.divide(dTotal[:n], nil, z), f.divide(dTarget[:n], nil, z)
		f.totalShare, f.targetShare = f.divide(dTotal[:n], theta, z), f.divide(dTarget[:n], theta, z)
		f.report(out)
		hasOverflow = hasOverflow || f.hasOverflow
		unranked += f.unranked
		dTotal, dTarget = dTotal[n:], dTarget[n:]
	}
	if hasOverflow {
		sizes := make([]int, len(cores))
		for c := range sizes {
			sizes[c] = len(cores[c].Numbers)
		}
		derivatives := probabilityDerivatives(a.total.Derivatives, a.total.TargetDerivatives, z, out.P)
		out.Derivatives = scaledGradients(derivatives, sizes, scaled.One)
		a.warn("a derivative is beyond float64: all of them are given as mantissas and exponents")
	}
	if unranked > 0 {
		a.warn(
			fmt.Sprintf("%d numbers are not ranked: in their ranges Z cancels as far as rounding or leaves float64, or P leaves 0 to 1", unranked))
	}
	slices.SortStableFunc(out.Tornado, func(x, y query.Swing) int { return cmp.Compare(y.High-y.Low, x.High-x.Low) })
	out.Tornado = slices.Clip(out.Tornado[:min(len(out.Tornado), target.Top)])
	a.result.Sensitivity = out
}

// probabilityDerivatives returns ∂P/∂θ = (∂Z_t/∂θ − p ∂Z/∂θ) / Z for every number θ of the model, as numbers of any size.
func probabilityDerivatives(dTotal, dTarget []scaled.Number, z scaled.Number, p float64) []scaled.Number {
	derivatives := make([]scaled.Number, len(dTotal))
	for k := range derivatives {
		derivatives[k] = dTarget[k].Div(z).Sub(dTotal[k].Div(z).Mul(scaled.FromFloat(p)))
	}
	return derivatives
}

// factorSensitivity is how P depends on the numbers θ of one factor. Slices have one entry for each number.
type factorSensitivity struct {
	core         *btn.CoreNumbers
	factor       int       // its position in the model
	p            float64   // P(target | evidence)
	totalSlope   []float64 // ∂Z/∂θ / Z
	targetSlope  []float64 // ∂Z_t/∂θ / Z
	totalShare   []float64 // θ ∂Z/∂θ / Z, the share of Z of the terms with θ
	targetShare  []float64 // θ ∂Z_t/∂θ / Z
	hasUnderflow bool      // one of these is below leastKept, and may be 0 where it should not
	hasOverflow  bool      // a derivative of P is beyond float64
	unranked     int       // how many numbers have a swing that cannot be computed
}

// divide returns the derivatives divided by z. If theta is not nil, each is also multiplied by its number. It records an underflow.
func (f *factorSensitivity) divide(derivatives []scaled.Number, theta []float64, z scaled.Number) []float64 {
	quotients := make([]float64, len(derivatives))
	for k, x := range derivatives {
		if theta != nil {
			x = x.Mul(scaled.FromFloat(theta[k]))
		}
		quotients[k] = x.Div(z).Float64()
		f.hasUnderflow = f.hasUnderflow || !x.IsZero() && math.Abs(quotients[k]) < leastKept
	}
	return quotients
}

// report adds to a result the derivatives of P by the numbers of the factor, and the swings of those that move P. If the factor is a
// conditional table, it also adds the derivatives with which the other numbers of a row covary, so that the row still sums to 1.
func (f *factorSensitivity) report(out *query.SensitivityResult) {
	derivatives := make([]float64, len(f.totalSlope))
	for k := range derivatives {
		derivatives[k] = f.targetSlope[k] - f.p*f.totalSlope[k]
		f.hasOverflow = f.hasOverflow || derivatives[k]-derivatives[k] != 0
	}
	total, target := f.lines(f.totalSlope, f.totalShare, 1), f.lines(f.targetSlope, f.targetShare, f.p)
	var covaried []float64
	if f.core.Row > 0 {
		covaried = make([]float64, len(derivatives))
		for k := range covaried {
			if covaried[k] = target[k].covariedSlope() - f.p*total[k].covariedSlope(); covaried[k]-covaried[k] != 0 {
				f.hasOverflow, covaried = true, nil
				break
			}
		}
	}
	out.Derivatives.By = append(out.Derivatives.By, derivatives)
	out.Covaried = append(out.Covaried, covaried)
	for k := range f.core.Numbers {
		if s, moves := f.swing(k, &total[k], &target[k], out.Range); moves {
			out.Tornado = append(out.Tornado, s)
		}
	}
}

// line is Z, or Z_t, as a function of one number x of the model, in units of Z of today. If the number is one of a row of a conditional
// table, the other numbers of the row change with it, in proportion, so that the sum of the row stays:
//
//	value(x) = constant + (x/θ) share + (othersSum + θ − x) othersSlope
//
// If the number is in no row, othersSum and othersSlope are 0.
type line struct {
	theta       float64 // the number today
	constant    float64 // of the terms that have neither the number nor another one of its row
	slope       float64 // the derivative by the number
	share       float64 // the value today of the terms with the number: θ slope
	othersSum   float64 // the sum of the other numbers of the row today
	othersSlope float64 // the derivative by that sum
	// isPositive reports whether the constant is a sum of numbers that are not negative: no digits of it have cancelled.
	isPositive bool
}

// covariedSlope returns the derivative of the line by its number if the other numbers of the row change in the opposite direction.
func (l *line) covariedSlope() float64 { return l.slope - l.othersSlope }

// at returns the value of the line if its number is x.
func (l *line) at(x float64) float64 {
	own := l.share
	if l.theta != 0 {
		own *= x / l.theta
	}
	return l.constant + own + (l.othersSum+(l.theta-x))*l.othersSlope
}

// lines returns the line of each number of the factor. slope and share are the derivatives of Z (or Z_t) and their products with the
// numbers; value is Z (or Z_t) today, in units of Z. If the line does not reach that value at the number of today, its constant is what
// value leaves for it, a difference in which digits may cancel. Linear time, but quadratic in the length of a row.
func (f *factorSensitivity) lines(slope, share []float64, value float64) []line {
	lines := make([]line, len(slope))
	for k := range lines {
		lines[k].theta, lines[k].slope, lines[k].share = f.core.Numbers[k], slope[k], share[k]
	}
	if f.core.Row > 0 {
		f.setRowConstants(lines, share)
	} else {
		f.setGroupConstants(lines, share)
	}
	for k := range lines {
		today := lines[k].at(lines[k].theta)
		if lines[k].isPositive = lines[k].isPositive && math.Abs(today-value) <= agreement*value; !lines[k].isPositive {
			lines[k].constant += value - today
		}
	}
	return lines
}

// agreement is the largest relative difference of two sums of the same parts of Z.
const agreement = 1e-9

// setGroupConstants fills in the constants of the lines of a factor that has groups of numbers by term (btn.CoreNumbers). The shares of a
// group sum to the whole term, since the term is linear in the group. So the constant of a number is the sum of the other shares of its
// group and of the other terms. It does nothing if the factor has no groups.
func (f *factorSensitivity) setGroupConstants(lines []line, share []float64) {
	var terms []float64 // the value of each term: the sum over its first group
	first := 0          // number of a group
	for _, sizes := range f.core.Groups {
		for g, n := range sizes {
			if g == 0 {
				terms = append(terms, sumOf(share[first:first+n]))
			}
			first += n
		}
	}
	if first != len(lines) {
		return
	}
	first = 0
	otherTerms, areTermsPositive := sumsOfOthers(terms)
	for t, sizes := range f.core.Groups {
		for _, n := range sizes {
			others, arePositive := sumsOfOthers(share[first : first+n])
			for k, sum := range others {
				lines[first+k].constant, lines[first+k].isPositive = sum+otherTerms[t], areTermsPositive && arePositive
			}
			first += n
		}
	}
}

// setRowConstants fills in the lines of a conditional table. The constant of a number is the sum of the shares of all other rows. The other
// numbers of the row keep their proportions, so with D_y the derivative by the number θ_y, the derivative by their sum is
//
//	othersSlope = Σ_{y≠x} D_y θ_y / Σ_{z≠x} θ_z
//
// If the other numbers are all 0, each takes the same part of their sum. If a row has a single number, its line is constant.
func (f *factorSensitivity) setRowConstants(lines []line, share []float64) {
	mode := f.core.Row - 1 // the axis of the table along which rows lie
	d, stride := f.core.Shape[mode], 1
	for _, n := range f.core.Shape[mode+1:] {
		stride *= n
	}
	// first returns the position of the first number of a row. Example: shape (2, 3, 2) and mode 1, so d = 3 and stride = 2: row 3 is
	// at 1·6 + 1 = 7, and has the numbers 7, 9, 11.
	first := func(row int) int { return row/stride*(d*stride) + row%stride }
	rowShares := make([]float64, len(lines)/d)
	for i := range rowShares {
		for x := range d {
			rowShares[i] += share[first(i)+x*stride]
		}
	}
	otherRows, isPositive := sumsOfOthers(rowShares)
	isPositive = isPositive && len(f.core.Groups) > 0
	for i := range rowShares {
		for x := range d {
			l := &lines[first(i)+x*stride]
			for y := range d {
				if y != x {
					l.othersSum += f.core.Numbers[first(i)+y*stride]
				}
			}
			for y := range d {
				switch other := first(i) + y*stride; {
				case y == x:
				case l.othersSum > 0:
					l.othersSlope += lines[other].slope * (f.core.Numbers[other] / l.othersSum)
				default:
					l.othersSlope += lines[other].slope / float64(d-1)
				}
			}
			if d == 1 { // the number cannot vary: covariedSlope is 0
				l.othersSlope = l.slope
			}
			l.constant, l.isPositive = otherRows[i], isPositive
		}
	}
}

// sumOf returns the sum of numbers.
func sumOf(x []float64) (sum float64) {
	for _, v := range x {
		sum += v
	}
	return sum
}

// sumsOfOthers returns for each number the sum of all other numbers, computed without a difference, and whether no number is negative.
func sumsOfOthers(x []float64) (sums []float64, isPositive bool) {
	sums, isPositive = make([]float64, len(x)), true
	before, behind := 0.0, 0.0
	for k, v := range x {
		sums[k] = before
		before += v
		isPositive = isPositive && v >= 0
	}
	for k, v := range slices.Backward(x) {
		sums[k] += behind
		behind += v
	}
	return sums, isPositive
}

// outOfRange is how far rounding may put P beside 0 or 1 where terms of both signs have left seven digits.
const outOfRange = 1e-6

// leastKept is the least share of Z with all of its digits; where some are below, P is of shares from leastSeen on.
const leastKept, leastSeen = 0x1p-1022, 0x1p-900

// leastLeft is the least share of its terms that a difference may be, so that seven digits of it count.
const leastLeft = 1e-4

// swing returns the lowest and highest P while number k varies by the share width on both sides. total and target are the lines of Z and
// Z_t. P is monotonic between the two ends of the interval, as a ratio of two linear functions without a pole. moves is false if P stays,
// or cannot be computed at an end; the number is then counted as unranked.
func (f *factorSensitivity) swing(k int, total, target *line, width float64) (s query.Swing, moves bool) {
	s = f.interval(k, width)
	if s.Theta == 0 && (math.IsInf(total.slope, 0) || math.IsInf(target.slope, 0)) { // it may be a number below float64
		f.unranked++
		return s, false
	}
	if s.From == s.To {
		return s, false
	}
	for _, end := range []float64{s.From, s.To} {
		p, status := f.probabilityAt(end, total, target)
		if status == isUnreliable {
			f.unranked++
			return s, false
		}
		if status == hasProbability {
			s.Low, s.High = min(s.Low, p), max(s.High, p)
		}
	}
	f.nameEntry(&s)
	return s, s.High > s.Low && !math.IsNaN(s.High-s.Low)
}

// interval returns a swing that has only the interval in which number k varies: θ (1 ± width), at most 1 for a number of a conditional
// table. Low and High are P of today.
func (f *factorSensitivity) interval(k int, width float64) query.Swing {
	theta := f.core.Numbers[k]
	s := query.Swing{Factor: f.factor, Number: k, Theta: theta, Low: f.p, High: f.p}
	s.From, s.To = theta*(1-width), min(max(theta*(1+width), -math.MaxFloat64), math.MaxFloat64)
	if s.From > s.To {
		s.From, s.To = s.To, s.From
	}
	if f.core.Row > 0 {
		s.To = min(1, s.To)
		v := f.core.Scope[f.core.Row-1]
		s.Of = &v
	}
	return s
}

// probabilityStatus is how computing P at an end of an interval ended.
type probabilityStatus int

const (
	hasProbability probabilityStatus = iota
	isUndefined                      // Z is 0 there
	isUnreliable                     // digits cancelled, or a number left float64
)

// probabilityAt returns P = Z_t/Z if the number of the two lines is x.
func (f *factorSensitivity) probabilityAt(x float64, total, target *line) (p float64, status probabilityStatus) {
	z := total.at(x)
	switch {
	case math.IsNaN(z) || math.IsInf(z, 0):
		return 0, isUnreliable
	case f.hasUnderflow && z < leastSeen || !total.isPositive && math.Abs(z) < leastLeft*(1+math.Abs(total.share)):
		return 0, isUnreliable
	case !(z > 0):
		return 0, isUndefined
	}
	ratio := target.at(x) / z
	p = min(1, max(0, ratio))
	if math.Abs(ratio-p) > outOfRange { // numbers below 0 can lead there
		return 0, isUnreliable
	}
	return p, hasProbability
}

// nameEntry fills in the variables of the table of a swing, and the value of each at the entry that varies. It does nothing if the factor
// is no table.
func (f *factorSensitivity) nameEntry(s *query.Swing) {
	if f.core.Scope == nil {
		return
	}
	s.Variables = f.core.Scope
	s.Values = make([]int, len(f.core.Shape))
	k := s.Number
	for m := len(s.Values) - 1; m >= 0; m-- {
		s.Values[m] = k % f.core.Shape[m]
		k /= f.core.Shape[m]
	}
}
