package regions

// The uncertainty of ln Z and of marginals by regions and by belief propagation.

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/judge"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// minDecay is the smallest ratio of the next change to the one before the last that is assumed. Changes do not fall monotonically with
// the size of regions.
const minDecay = 0.1

// correctionShare is the share of the correction by regions that may be missing if their changes fall
// by no more than slowDecay from one size to the next.
// Measured: all of 184 answers by regions are off by at most three times the uncertainty stated
// with it, 97.3 % without; the median of stated over true errors is 5.4 and 3.2.
const (
	correctionShare = 0.3
	slowDecay       = 0.4
)

// marginalsWeight is the weight of the next change of marginals.
// Measured: with 2, and phases, 98.3 % of 196 models of 24 families were off by at most three
// times the stated uncertainty; of 360 others, with samples beside regions, 5 of regions were off
// by 4 to 11 times, and one by 39.
const marginalsWeight = 8

// errContradiction is the error of regions of constraints of which some allow no value at all: ln Z
// of the other regions tells nothing then.
var errContradiction = errors.New(
	"the constraints of a region contradict each other or nearly so: Z may be 0, which " +
		"the exact way would show",
)

// regionsJudge judges estimates by regions, and the value of belief propagation, which is an estimate of a level below 0. A track is the
// estimates by regions of one kind, whose sizes grow.
type regionsJudge struct {
	judge.Defaults
	*judge.Sequence
	tracks judge.Track // the estimates of each kind
}

// NewJudge returns the judge of regions.
func NewJudge(s *judge.Sequence) judge.Judge {
	j := &regionsJudge{Sequence: s}
	j.tracks = judge.Track{Sequence: s, Rule: btn.LogLinear, ExpectedChange: j.expectedChange}
	return j
}

// Add implements judge.Judge. It adds up the parts of e, each of which has some of the regions r with coefficients α_r, and sets the Z of e
// to exp(ln Z_BP + Σ_r α_r ln(Z_r/Z_BP)). LogZLinear is set to the logarithm of Z_BP (1 + Σ_r α_r (Z_r/Z_BP − 1)) if that is above 0. The
// error is errContradiction if tables forbid values and a region allows none.
func (j *regionsJudge) Add(e *judge.Estimate) error {
	e.Truncated = true // Z is not exact
	lnBethe, lnSum := 0.0, 0.0
	linearFactor := scaled.One // 1 + Σ_r α_r (Z_r/Z_BP − 1)
	isPossible := false
	contradicted := int64(0) // number of regions with Z_r ≤ 0
	for i, v := range e.Parts {
		if v.Region == nil {
			if v.Z.IsZero() { // the network is impossible
				continue
			}
			return fmt.Errorf("component %d has no regions", i)
		}
		isPossible, lnBethe = true, v.Region.LnBethe
		lnSum += v.Region.LnSum
		linearFactor = linearFactor.Add(v.Region.Linear)
		contradicted += v.Region.NonPositive
		e.Regions += v.Region.Regions
		e.PeakBytes = max(e.PeakBytes, 8*math.Exp2(v.Region.Widest)) // of the largest table
	}
	if !isPossible { // Z stays 0
		return nil
	}

	if linear := scaled.FromLog(lnBethe).Mul(linearFactor); linear.Sign() > 0 {
		e.LogZLinear = judge.Finite(linear.LogAbs())
	}
	e.Z = scaled.FromLog(lnBethe + lnSum)
	if j.IsHard && contradicted > 0 {
		return errContradiction
	}
	return nil
}

// MakeStatement implements judge.Judge. A track is the estimates by regions of one kind, by increasing size. The best estimate is one of
// the largest size. Its uncertainty is the largest of
//
//   - the change that its track is expected to make next (expectedChange);
//   - twice the distance of ln Z from that of regions of another kind (judge.PlanDistanceFactor), or ten times if there is only one size
//     (judge.FirstLevelFactor);
//   - all of the correction to belief propagation if there is one size of one kind;
//   - what other fixed points of belief propagation may add (otherFixedPoints);
//   - the distance from the value of belief propagation if that did not converge (distanceIfMoving);
//   - a share of the correction if changes fall slowly (shareOfCorrection).
//
// It is not known if tables have entries of both signs, or if regions of constraints do not change with their size (isPlateau).
func (j *regionsJudge) MakeStatement() judge.Statement {
	best := j.tracks.Best()
	statement := judge.Statement{Best: best, IsCredible: true}
	if best != nil && j.isPlateau(best) {
		statement.Unknown = "regions of constraints do not change with their size: nothing is known of the quality of this estimate"
	}
	if best == nil || j.IsUnsure || statement.Unknown != "" || j.Propagation != nil && j.Propagation.Signed {
		return statement
	}

	// Compare with smaller sizes and with regions of other kinds.
	distance := 0.0 // the largest in ln Z from regions of another kind
	for _, last := range j.tracks.LastOfOtherTracks(best) {
		distance = max(distance, math.Abs(*last.LogZ-*best.LogZ))
	}
	uncertainty, hasMoved := j.expectedChange(best) // hasMoved: there are two sizes
	statement.MaySettle = hasMoved
	uncertainty = max(uncertainty, judge.PlanDistanceFactor*distance)
	isCorrection := best.Plan.Level >= 0 && j.Propagation != nil && j.Propagation.LogZ != nil // of a value of belief propagation
	switch {
	case hasMoved: // the change from size to size is enough
	case distance > 0:
		uncertainty = max(uncertainty, judge.FirstLevelFactor*distance)
	case isCorrection:
		uncertainty = math.Abs(*best.LogZ - *j.Propagation.LogZ)
		if uncertainty <= judge.LeastError(*best.LogZ) { // no correction at all shows nothing
			return statement
		}
		if j.IsHard { // tables forbid values
			uncertainty *= judge.ForbiddenFactor
		}
	default: // there is nothing to compare with
		return statement
	}

	uncertainty = max(
		uncertainty, otherFixedPoints(j.Propagation), distanceIfMoving(j.Propagation, *best.LogZ), j.shareOfCorrection(best),
	)
	statement.Uncertainty = judge.Finite(max(uncertainty, best.FloorError()))
	return statement
}

// isPlateau reports whether tables forbid values and regions did not change at all from the size before to that of best. Then nothing is
// known: messages are uniform for constraints that are even everywhere, like parities, and regions that close no cycle change nothing.
func (j *regionsJudge) isPlateau(best *judge.Estimate) bool {
	change, ok := j.LastChange(best)
	return j.IsHard && ok && change <= judge.LeastError(*best.LogZ)
}

// expectedChange returns how far ln Z of e is expected to be from the limit of its track, the estimates by regions of one kind and growing
// size. After two sizes it is the change from the first to the second; after more it follows from the last two changes (nextChange). ok is
// false if the track has one value.
func (j *regionsJudge) expectedChange(e *judge.Estimate) (change float64, ok bool) {
	values := j.trackValues(e)
	n := len(values)
	if n < 2 {
		return 0, false
	}
	last := math.Abs(values[n-1] - values[n-2])
	if n == 2 {
		return last, true
	}
	return nextChange(last, math.Abs(values[n-2]-values[n-3])), true
}

// trackValues returns ln Z of the estimates in the track of e, in the sequence of their levels up to that of e. A track is the estimates
// by regions of one kind, whose sizes grow with the level. It leaves out an estimate that has as many regions and the same ln Z as the one
// before: its regions are the same, so that the agreement shows nothing.
func (j *regionsJudge) trackValues(e *judge.Estimate) (values []float64) {
	regions := int64(-1) // number of regions of the last estimate in values
	for _, r := range j.Estimates {
		if r.LogZ == nil || r.Plan.Track != e.Plan.Track || r.Plan.Level > e.Plan.Level {
			continue
		}
		if n := len(values); n > 0 && r.Regions == regions && *r.LogZ == values[n-1] {
			continue
		}
		values = append(values, *r.LogZ)
		regions = r.Regions
	}
	return values
}

// nextChange returns how far a track is expected to be from its limit, by its last change and the previous one. If changes fall by the
// ratio r = last/previous, that is the geometric sum last·(r + r² + …) = last²/(previous − last), at most ten times the last. It is at
// least the last change and minDecay of the previous one, since changes do not fall evenly. If they do not fall, it is three times the
// last.
func nextChange(last, previous float64) float64 {
	if last >= previous {
		return 3 * last
	}
	return max(last, minDecay*previous, min(10*last, last*last/(previous-last)))
}

// otherFixedPoints returns what other fixed points of belief propagation may add to ln Z if regions correct the first one. For k fixed
// points it is ln Σ_i exp(ln Z_i − ln Z_1), but at least ln k, since there may be further fixed points between them. If the fixed points do
// not overlap, their sum is the value already. Then only a fixed point that was not found is missing, and it may be as large as the
// smallest of them. It returns 0 for one fixed point. p.Phases has the logarithms ln Z_i of the fixed points, and p.Together the logarithm
// of the sum of those that do not overlap.
func otherFixedPoints(p *query.Propagation) float64 {
	if p == nil || len(p.Phases) < 2 {
		return 0
	}
	if p.Apart && p.Together != nil {
		return math.Log1p(math.Exp(slices.Min(p.Phases) - *p.Together)) // ln of (sum + smallest)/sum
	}

	sum := 0.0
	for _, lnZ := range p.Phases {
		sum += math.Exp(min(lnZ-p.Phases[0], 0))
	}
	return max(math.Log(sum), math.Log(float64(len(p.Phases))))
}

// distanceIfMoving returns the distance of lnZ from the value of belief propagation if its messages still change, and 0 at a fixed point.
func distanceIfMoving(p *query.Propagation, lnZ float64) float64 {
	if p == nil || p.Converged || p.LogZ == nil {
		return 0
	}
	return math.Abs(lnZ - *p.LogZ)
}

// shareOfCorrection returns correctionShare of the distance between best and the value of belief propagation: that share of the correction
// may be missing. It returns 0 if the changes from size to size fall fast. The correction is what regions add to ln Z of belief
// propagation.
func (j *regionsJudge) shareOfCorrection(best *judge.Estimate) float64 {
	isBethe := best.Plan.Level < 0 // best is the value of belief propagation itself
	if j.Propagation == nil || j.Propagation.LogZ == nil || isBethe {
		return 0
	}
	if decay, ok := j.decay(best); ok && decay < slowDecay {
		return 0
	}
	return correctionShare * math.Abs(*best.LogZ-*j.Propagation.LogZ)
}

// decay returns the last change of ln Z from one size to the next over the previous change. Belief propagation counts as the smallest size.
// ok is false if there are fewer than two changes.
func (j *regionsJudge) decay(best *judge.Estimate) (ratio float64, ok bool) {
	var values []float64
	if j.Propagation != nil && j.Propagation.LogZ != nil {
		values = append(values, *j.Propagation.LogZ)
	}
	for _, e := range j.Estimates {
		// Estimates of rule LogLinear are by regions, and Level is their size; at −1 they are belief propagation alone.
		if e.LogZ != nil && e.Plan.Rule == btn.LogLinear && e.Plan.Level >= 0 && e.Kind == best.Kind {
			values = append(values, *e.LogZ)
		}
	}
	n := len(values)
	if n < 3 {
		return 0, false
	}
	last, previous := math.Abs(values[n-1]-values[n-2]), math.Abs(values[n-2]-values[n-3])
	if last <= judge.LeastError(values[n-1]) { // the last change is rounding
		return 0, true
	}
	return last / previous, true
}

// Reconsider implements judge.Judge. It compares the own statement with those of sampled components that miss weight (compareWithFewDraws),
// and with modes that chains found (judge.RaiseForHiddenModes).
func (j *regionsJudge) Reconsider(own *judge.Statement, others []*judge.Statement) {
	for _, other := range others {
		if other.Best != nil && other.MissesWeight && other.Uncertainty != nil {
			j.compareWithFewDraws(own, other)
		}
	}
	j.RaiseForHiddenModes(own, others)
}

// compareWithFewDraws compares two statements: own states the value of belief propagation, and few the mean of sampled components whose
// standard error is not believed. The components leave an interval of ln Z open, from their lower bound up to their mean plus its
// uncertainty. Their mean is mostly too low, since few draws miss the largest weights.
//
// The value is better than the mean if belief propagation is at a fixed point, its value is above the mean, and fewer than
// policy.LeastEffective draws count. Then the uncertainty of the value is its distance from the farther end of the interval, and the
// uncertainty of the mean is raised to reach the same end. Otherwise a value inside the interval gets the distance from the farther end
// as its uncertainty, if the mean is farther from an end.
func (j *regionsJudge) compareWithFewDraws(own, few *judge.Statement) {
	isBetheOnly := own.Best != nil && own.Best.Plan.Level < 0 // the value of belief propagation without regions
	if !isBetheOnly || own.Uncertainty != nil || j.IsUnsure || j.Propagation == nil {
		return
	}

	// The interval from low to high. Markov's inequality for the mean is a lower bound, too; it fails with probability BoundsDelta.
	lower, upper, _ := j.Bounds.Tightest() // without the probability that they hold
	value, mean := *own.Best.LogZ, *few.Best.LogZ
	low, high := max(lower.Ln, mean+math.Log(judge.BoundsDelta)), min(upper.Ln, mean+*few.Uncertainty)
	distance := max(value-low, high-value) // of the farther end

	effective := few.Best.EffectiveSamples
	hasFewEffective := effective != nil && *effective < policy.LeastEffective
	isFixedPoint := j.Propagation.Converged && !j.Propagation.Impossible && !j.Propagation.Signed
	isAboveMean := mean < value && value <= upper.Ln
	isInside := low <= value && value <= high
	switch {
	case hasFewEffective && isAboveMean && isFixedPoint:
		own.Uncertainty, own.IsCredible = judge.Finite(distance), false
		few.Uncertainty = judge.Finite(max(*few.Uncertainty, value-mean+distance))
	case isInside && distance < max(mean-low, high-mean):
		own.Uncertainty, own.IsCredible = judge.Finite(distance), false
	}
}

// Marginals implements judge.Judge. The uncertainty of the marginals is how far they are expected to be from their limit (nextChange), by
// their largest changes from smaller sizes, times marginalsWeight. If belief propagation has several fixed points, it is at least the share
// of the weight that the others may have. It is not known without another size, if regions under constraints have equal marginals at every
// size, or if terms may be lost.
func (j *regionsJudge) Marginals(e *judge.Estimate) (m judge.Marginals) {
	if m.P, m.Warning = j.SumMarginals(e); m.P == nil || j.IsUnsure {
		return m
	}
	var earlier [][][]float64 // marginals of smaller sizes
	for _, smaller := range j.Estimates {
		if smaller == e {
			break
		}
		isByRegions := smaller.LogZ != nil && smaller.Plan.Rule == btn.LogLinear
		if !isByRegions || smaller.Regions == e.Regions {
			continue
		}
		if p, _ := j.SumMarginals(smaller); p != nil {
			earlier = append(earlier, p)
		}
	}
	n := len(earlier)
	if n == 0 {
		return m
	}
	change := judge.LargestDifference(m.P, earlier[n-1])
	if j.IsHard && change == 0 { // constraints may decide the same at every size
		return m
	}
	if n > 1 {
		change = nextChange(change, judge.LargestDifference(earlier[n-1], earlier[n-2]))
	}
	otherShare := -math.Expm1(-otherFixedPoints(j.Propagation)) // 1 − Z_1/Σ_k Z_k over the fixed points k
	change = max(marginalsWeight*change, otherShare)
	m.Uncertainty = judge.Finite(min(1, change))
	return m
}

// Warnings implements judge.Judge. It warns of regions that were left out, and, if best is by regions, of what makes them doubtful. best is
// the estimate that the answer has, and uncertainty its uncertainty.
func (j *regionsJudge) Warnings(best *judge.Estimate, uncertainty *float64) (list []string) {
	if dropped := j.countDropped(); dropped > 0 {
		list = append(list, fmt.Sprintf(
			"%d regions were left out because their ratio to belief propagation came out at or below 0", dropped))
	}
	if best == nil {
		return list
	}
	isByRegions := best.Plan.Rule == btn.LogLinear // the rule of all estimates by regions
	if isByRegions && uncertainty != nil && *uncertainty > j.Accuracy {
		if decay, ok := j.decay(best); ok && decay >= slowDecay {
			list = append(list, fmt.Sprintf("regions do not converge with their size: their last change is %.2g times the one before, "+
				"so loops of all lengths count, as near a phase transition and beside other phases", decay))
		}
	}
	if j.Propagation == nil {
		return list
	}
	return append(list, propagationWarnings(j.Propagation, isByRegions)...)
}

// countDropped returns the number of regions of all estimates that were left out, since Z_r was at or below 0.
func (j *regionsJudge) countDropped() (dropped int64) {
	for _, e := range j.Estimates {
		for _, v := range e.Parts {
			if v.Region != nil {
				dropped += v.Region.NonPositive
			}
		}
	}
	return dropped
}

// propagationWarnings warns of what belief propagation itself shows: of messages that move or contradict each other, if the answer is by
// regions, and of several fixed points.
func propagationWarnings(p *query.Propagation, isByRegions bool) (list []string) {
	warn := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	if !p.Converged && isByRegions {
		warn("belief propagation did not converge (last change %.2g): regions stand on messages that still move", p.Change)
	}
	if p.Impossible && isByRegions {
		warn("the beliefs of belief propagation contradict each other, with an entropy below 0: its ln Z may be far too high")
	}
	if len(p.Phases) > 1 {
		warn("competing phases: belief propagation has %d fixed points, ln Z from %.6g to %.6g; "+
			"regions correct the first, and add the values of those that hardly overlap with it",
			len(p.Phases), p.Phases[len(p.Phases)-1], p.Phases[0])
	}
	return list
}
