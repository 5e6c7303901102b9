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

// answerSensitivity writes the sensitivity that a query asks for: how the probability P = Z_t/Z of its target changes with the numbers θ of
// the factors. Z_t is the part of Z in which the target holds. The derivatives of Z and Z_t by θ are in one list each, factor by factor. If
// P is no probability, or if derivatives are missing, it writes only a warning. If the query does not ask for the sensitivity, it does
// nothing.
func answerSensitivity(a *answer) {
	if a.asked.Query.Sensitivity == nil || a.total.TargetDerivatives == nil {
		return
	}
	target := *a.asked.Query.Sensitivity
	target.Range = cmp.Or(target.Range, query.DefaultRange)
	target.Top = cmp.Or(target.Top, query.DefaultTop)
	result := &query.SensitivityResult{Sensitivity: target, Tornado: []query.Swing{}}

	z, cores := a.total.Z, a.numbers
	p := a.total.Target.Div(z).Float64()
	result.P = min(1, max(0, p))
	if isProbability := math.Abs(p-result.P) <= additive.ProbabilityRounding; !isProbability { // beyond rounding, or NaN
		a.warn(fmt.Sprintf("no sensitivity: the estimate of the target's probability is %.3g", p))
		return
	}

	// Derivatives and swings, factor by factor.
	unranked, hasOverflow := 0, false
	dTotal, dTarget := a.total.Derivatives, a.total.TargetDerivatives // of Z and of Z_t, by the numbers of the factors from c on
	for c := range cores {
		n := len(cores[c].Numbers)
		if n > len(dTotal) {
			a.warn(fmt.Sprintf("no sensitivity: %d derivatives are left, and a factor has %d numbers", len(dTotal), n))
			return
		}
		f := newFactorSensitivity(&cores[c], c, result.P, z, dTotal[:n], dTarget[:n])
		f.report(result) // sets f.hasOverflow and f.unranked
		hasOverflow = hasOverflow || f.hasOverflow
		unranked += f.unranked
		dTotal, dTarget = dTotal[n:], dTarget[n:]
	}

	// What the result says of all factors together.
	if hasOverflow {
		result.Derivatives = a.scaledDerivatives(result.P)
		a.warn("a derivative is beyond float64: all of them are given as mantissas and exponents")
	}
	if unranked > 0 {
		a.warn(
			fmt.Sprintf("%d numbers are not ranked: in their ranges Z cancels as far as rounding or leaves float64, or P leaves 0 to 1", unranked))
	}
	// The swings: how far P moves when one number goes through its range. Only the widest stay.
	byDescendingWidth := func(x, y query.Swing) int { return cmp.Compare(y.High-y.Low, x.High-x.Low) }
	slices.SortStableFunc(result.Tornado, byDescendingWidth)
	result.Tornado = slices.Clip(result.Tornado[:min(len(result.Tornado), target.Top)])
	a.result.Sensitivity = result
}

// scaledDerivatives returns the derivatives of P = p by all numbers of the factors, as mantissas and exponents.
func (a *answer) scaledDerivatives(p float64) query.Gradients {
	sizes := make([]int, len(a.numbers))
	for c := range sizes {
		sizes[c] = len(a.numbers[c].Numbers)
	}
	derivatives := probabilityDerivatives(a.total.Derivatives, a.total.TargetDerivatives, a.total.Z, p)
	return scaledGradients(derivatives, sizes, scaled.One)
}

// probabilityDerivatives returns ∂P/∂θ = (∂Z_t/∂θ − p ∂Z/∂θ) / z for every number θ of the model, as numbers of any size. dTotal and
// dTarget are the derivatives of Z and of Z_t, and z is Z.
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

// newFactorSensitivity returns how P = Z_t/Z depends on the numbers θ of one factor: the slopes ∂Z/∂θ / Z and ∂Z_t/∂θ / Z, and the shares,
// which are the slopes times θ. Z_t's are divided by Z too, since ∂P/∂θ = ∂Z_t/∂θ / Z − P ∂Z/∂θ / Z. Z_t is the part of Z in which the
// target holds. position is the factor's in the model, dTotal and dTarget have ∂Z/∂θ and ∂Z_t/∂θ, z is Z, and p is P.
func newFactorSensitivity(
	core *btn.CoreNumbers, position int, p float64, z scaled.Number, dTotal, dTarget []scaled.Number,
) *factorSensitivity {
	f := &factorSensitivity{core: core, factor: position, p: p}
	f.totalSlope, f.targetSlope = f.divide(dTotal, nil, z), f.divide(dTarget, nil, z) // nil: not multiplied by θ
	f.totalShare, f.targetShare = f.divide(dTotal, core.Numbers, z), f.divide(dTarget, core.Numbers, z)
	return f
}

// divide returns the derivatives divided by z. If theta is not nil, derivative k is also multiplied by theta[k]. If a quotient other than 0
// is below the range in which float64 has all its digits, hasUnderflow becomes true.
func (f *factorSensitivity) divide(derivatives []scaled.Number, theta []float64, z scaled.Number) []float64 {
	quotients := make([]float64, len(derivatives))
	for k, x := range derivatives {
		if theta != nil {
			x = x.Mul(scaled.FromFloat(theta[k]))
		}
		quotients[k] = x.Div(z).Float64()
		isTooSmall := !x.IsZero() && math.Abs(quotients[k]) < leastKept
		f.hasUnderflow = f.hasUnderflow || isTooSmall
	}
	return quotients
}

// report adds to a result what it says of the numbers θ of one factor: the derivatives ∂P/∂θ = (∂Z_t/∂θ − P ∂Z/∂θ)/Z, and the swings of the
// numbers that move P. If the factor is a conditional table, it also adds the covaried derivatives: how P changes with a number while the
// other numbers of its row change in the opposite direction, so that the row still sums to 1. They are left out (nil) if one is beyond
// float64.
func (f *factorSensitivity) report(result *query.SensitivityResult) {
	derivatives := make([]float64, len(f.totalSlope))
	for k := range derivatives {
		derivatives[k] = f.targetSlope[k] - f.p*f.totalSlope[k]
		f.hasOverflow = f.hasOverflow || !isFinite(derivatives[k])
	}
	// The lines of Z/Z and of Z_t/Z, whose values today are 1 and P.
	totalLines, targetLines := f.lines(f.totalSlope, f.totalShare, 1), f.lines(f.targetSlope, f.targetShare, f.p)
	var covaried []float64
	if isConditional := f.core.Row > 0; isConditional {
		covaried = make([]float64, len(derivatives))
		for k := range covaried {
			covaried[k] = targetLines[k].covariedSlope() - f.p*totalLines[k].covariedSlope()
			if !isFinite(covaried[k]) {
				f.hasOverflow, covaried = true, nil
				break
			}
		}
	}
	result.Derivatives.By = append(result.Derivatives.By, derivatives)
	result.Covaried = append(result.Covaried, covaried)
	for k := range f.core.Numbers {
		if s, moves := f.swing(k, &totalLines[k], &targetLines[k], result.Range); moves {
			result.Tornado = append(result.Tornado, s)
		}
	}
}

// line is Z, or Z_t, as a function of one number x of the model, in units of today's Z. Today the number is θ. If it is in a row of a
// conditional table, the other numbers of the row change with it, in proportion, so that the sum of the row stays the same:
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

// lines returns the line of each number of the factor: Z (or Z_t) as a function of the number. slope and share are the derivatives of Z (or
// Z_t) and their products with the numbers, and value is Z (or Z_t) today, all in units of Z. The constant of a line is a sum of shares, in
// which no digits cancel (isPositive). If a share is negative, or if the line does not reach value at today's number, the difference is
// added to the constant, which loses digits. Linear time, but quadratic in the length of a row.
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
		l := &lines[k]
		today := l.at(l.theta)
		l.isPositive = l.isPositive && math.Abs(today-value) <= agreement*value
		if !l.isPositive {
			l.constant += value - today
		}
	}
	return lines
}

// agreement is the largest relative difference of two sums of the same parts of Z.
const agreement = 1e-9

// setGroupConstants fills in the constants of the lines of a factor that is a sum of terms. Its numbers lie term by term, and those of
// term t in groups of the sizes f.core.Groups[t][0], [1], …. The share of a number is the part of Z (or Z_t) that has it. A term is
// linear in each of its groups, so that the shares of any one group sum to the value of the whole term. So the constant of a number is
// the sum of the other shares of its group and of the values of all other terms. It does nothing if the factor has no groups.
func (f *factorSensitivity) setGroupConstants(lines []line, share []float64) {
	// The value of each term, from its first group.
	var terms []float64
	first := 0 // the position of the first number of a group
	for _, sizes := range f.core.Groups {
		for g, n := range sizes {
			if g == 0 {
				terms = append(terms, sumOf(share[first:first+n]))
			}
			first += n
		}
	}
	if first != len(lines) {
		return // no groups: the sizes do not add up to the numbers
	}

	first = 0
	otherTerms, areTermsPositive := sumsOfOthers(terms)
	for t, sizes := range f.core.Groups {
		for _, n := range sizes {
			otherShares, arePositive := sumsOfOthers(share[first : first+n])
			for k, sum := range otherShares {
				lines[first+k].constant, lines[first+k].isPositive = sum+otherTerms[t], areTermsPositive && arePositive
			}
			first += n
		}
	}
}

// setRowConstants fills in the lines of a conditional table: constant, othersSum and othersSlope of each number. The constant of a number
// is the sum of the shares of all other rows. share has the share of each number, in the sequence of the table. The field isPositive says
// that no digits can have cancelled in the constant.
func (f *factorSensitivity) setRowConstants(lines []line, share []float64) {
	// Rows lie along one axis (mode) of the row-major table. The d numbers of a row are stride apart.
	mode := f.core.Row - 1 // Row counts from 1; 0 is no conditional table
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
	// Without Groups the network has numbers below 0, or beyond float64: then digits may have cancelled inside a share already.
	isPositive = isPositive && len(f.core.Groups) > 0

	for i := range rowShares {
		for x := range d {
			setOthers(lines[first(i):], x, d, stride)
			l := &lines[first(i)+x*stride]
			l.constant, l.isPositive = otherRows[i], isPositive
		}
	}
}

// setOthers fills in othersSum and othersSlope of the line of number x of a row. The lines of the d numbers of the row are row[0],
// row[stride], row[2·stride] and so on. The other numbers θ_y keep their proportions, so the derivative by their sum is, with the
// derivatives D_y by θ_y,
//
//	othersSlope = Σ_{y≠x} D_y θ_y / Σ_{z≠x} θ_z
//
// If the other numbers are all 0, each takes the same part of their sum. If a row has a single number, that number cannot vary, and its
// line is constant.
func setOthers(row []line, x, d, stride int) {
	l := &row[x*stride]
	if d == 1 {
		l.othersSlope = l.slope // covariedSlope is 0
		return
	}
	for y := range d {
		if y != x {
			l.othersSum += row[y*stride].theta
		}
	}
	for y := range d {
		lineOfY := &row[y*stride]
		switch {
		case y == x:
		case l.othersSum > 0:
			l.othersSlope += lineOfY.slope * (lineOfY.theta / l.othersSum)
		default:
			l.othersSlope += lineOfY.slope / float64(d-1)
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

// sumsOfOthers returns for each number the sum of all other numbers, Σ_{j≠k} x_j, and whether no number is negative. Nothing is subtracted,
// so that no digits cancel.
func sumsOfOthers(x []float64) (sums []float64, isPositive bool) {
	sums, isPositive = make([]float64, len(x)), true
	prefix, suffix := 0.0, 0.0 // the sums of the numbers to the left and to the right of number k
	for k, v := range x {
		sums[k] = prefix
		prefix += v
		isPositive = isPositive && v >= 0
	}
	for k, v := range slices.Backward(x) {
		sums[k] += suffix
		suffix += v
	}
	return sums, isPositive
}

// isFinite reports whether x is neither NaN nor ±Inf.
func isFinite(x float64) bool { return x-x == 0 }

// outOfRange is how far rounding may put P below 0 or above 1 if seven digits are left of terms of both signs.
const outOfRange = 1e-6

// leastKept is the smallest share of Z with all of its digits. If a factor has shares below it, P is computed only where Z is at least
// leastSeen.
const leastKept, leastSeen = 0x1p-1022, 0x1p-900

// leastLeft is the smallest ratio of a difference to its terms at which seven digits of it count.
const leastLeft = 1e-4

// swing returns the lowest and highest P while number k of the factor varies from θ (1 − width) to θ (1 + width). total and target are the
// lines of Z and Z_t, linear functions of the number. P is their ratio and has no pole, so that it is monotonic in the interval: the lowest
// and the highest are among P at both ends and P of today. An end at which Z is 0 has no P and does not count. moves is false if P stays
// the same. It is also false if P cannot be computed at an end, and then the number is counted as unranked.
func (f *factorSensitivity) swing(k int, total, target *line, width float64) (s query.Swing, moves bool) {
	s = f.interval(k, width)
	// A derivative of infinity shows that a θ of 0 may be a number below the range of float64.
	mayHaveUnderflown := s.Theta == 0 && (math.IsInf(total.slope, 0) || math.IsInf(target.slope, 0))
	if mayHaveUnderflown {
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

// interval returns a swing that has only the interval in which number k of the factor varies: From and To are θ (1 ± width), at most 1 for
// a number of a conditional table, and within float64. Low and High are to become the ends of the range of P; here they are P of today.
func (f *factorSensitivity) interval(k int, width float64) query.Swing {
	theta := f.core.Numbers[k]
	s := query.Swing{Factor: f.factor, Number: k, Theta: theta, Low: f.p, High: f.p}
	s.From, s.To = theta*(1-width), min(max(theta*(1+width), -math.MaxFloat64), math.MaxFloat64)
	if s.From > s.To { // θ is below 0
		s.From, s.To = s.To, s.From
	}
	if f.core.Row > 0 { // a conditional table
		s.To = min(1, s.To)
		v := f.core.Scope[f.core.Row-1] // the variable whose probabilities a row has
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

// probabilityAt returns P = Z_t/Z if a number of the model is x, and whether that can be relied on. total and target are Z and Z_t as
// functions of the number. P is limited to 0 … 1 if rounding has put it outside.
func (f *factorSensitivity) probabilityAt(x float64, total, target *line) (p float64, status probabilityStatus) {
	z := total.at(x)                                                                       // in units of Z today
	mayLackTerms := f.hasUnderflow && z < leastSeen                                        // terms that were too small for a float64
	hasCancelled := !total.isPositive && math.Abs(z) < leastLeft*(1+math.Abs(total.share)) // of terms with both signs few digits are left
	switch {
	case !isFinite(z), mayLackTerms, hasCancelled:
		return 0, isUnreliable
	case !(z > 0):
		return 0, isUndefined
	}
	ratio := target.at(x) / z
	p = min(1, max(0, ratio))
	if math.Abs(ratio-p) > outOfRange { // more than rounding: a term is negative
		return 0, isUnreliable
	}
	return p, hasProbability
}

// nameEntry fills in the variables of the table of a swing, and the value of each variable at the entry that varies, entry s.Number of the
// row-major table. It does nothing if the factor is no table.
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
