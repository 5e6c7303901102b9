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

// regionsJudge judges regions, and the value of belief propagation, which is an estimate of a level below 0.
type regionsJudge struct {
	judge.Defaults
	*judge.Sequence
	tracks judge.Track
}

// NewJudge returns the judge of regions.
func NewJudge(s *judge.Sequence) judge.Judge {
	j := &regionsJudge{Sequence: s}
	j.tracks = judge.Track{Sequence: s, Rule: btn.LogLinear, Next: j.expectedChange}
	return j
}

// Add implements judge.Judge: Z̃ = exp(ln Z_BP + Σ_r α_r ln(Z_r/Z_BP)) over regions r. Beside it LogZLinear is the logarithm of
// Z_BP (1 + Σ_r α_r (Z_r/Z_BP − 1)), as far as the parts' Linear says.
func (j *regionsJudge) Add(e *judge.Estimate) error {
	e.Truncated = true
	lnBethe, lnSum, correction, isPossible := 0.0, 0.0, scaled.One, false
	contradicted := int64(0)
	for i, v := range e.Parts { // some of the regions
		if v.Region == nil {
			if v.Z.IsZero() { // the network is impossible
				continue
			}
			return fmt.Errorf("component %d has no regions", i)
		}
		isPossible, lnBethe = true, v.Region.LnBethe
		lnSum += v.Region.LnSum
		correction = correction.Add(v.Region.Linear)
		contradicted += v.Region.NonPositive
		e.Regions += v.Region.Regions
		e.PeakBytes = max(e.PeakBytes, 8*math.Exp2(v.Region.Widest))
	}
	if !isPossible {
		return nil
	}
	if linear := scaled.FromLog(lnBethe).Mul(correction); linear.Sign() > 0 {
		e.LogZLinear = judge.Finite(linear.LogAbs())
	}
	e.Z = scaled.FromLog(lnBethe + lnSum)
	if j.IsHard && contradicted > 0 {
		return errContradiction
	}
	return nil
}

// State implements judge.Judge. The best estimate is one of the largest size. Its uncertainty is the largest of
//
//   - the change that its track is expected to make next (expectedChange), and twice its distance (judge.PlanDistanceFactor) from regions
//     of another kind, ten times (judge.FirstLevelFactor) if there is only one size;
//   - all of the correction to belief propagation if there is one size of one kind;
//   - what other fixed points of belief propagation may add (otherFixedPoints), the distance from its value if it did not converge
//     (distanceIfMoving), and a share of the correction if changes fall slowly (shareOfCorrection).
//
// It is not known if tables have entries of both signs, or if regions of constraints do not change with their size (isPlateau).
func (j *regionsJudge) State() judge.Statement {
	best := j.tracks.Best()
	statement := judge.Statement{Best: best, IsCredible: true}
	if best != nil && j.isPlateau(best) {
		statement.Unknown = "regions of constraints do not change with their size: nothing is known of the quality of this estimate"
	}
	if best == nil || j.IsUnsure || statement.Unknown != "" || j.Propagation != nil && j.Propagation.Signed {
		return statement
	}
	spread := 0.0 // the largest distance of another kind of regions
	for _, other := range j.tracks.Others(best) {
		spread = max(spread, math.Abs(*other.LogZ-*best.LogZ))
	}
	u, hasMoved := j.expectedChange(best)
	statement.MaySettle = hasMoved
	u = max(u, judge.PlanDistanceFactor*spread)
	switch {
	case hasMoved:
	case spread > 0:
		u = max(u, judge.FirstLevelFactor*spread)
	case best.Plan.Level >= 0 && j.Propagation != nil && j.Propagation.LogZ != nil:
		if u = math.Abs(*best.LogZ - *j.Propagation.LogZ); u <= judge.Floor(*best.LogZ) {
			return statement
		}
		if j.IsHard {
			u *= judge.ForbiddenFactor
		}
	default:
		return statement
	}
	u = max(u, otherFixedPoints(j.Propagation), distanceIfMoving(j.Propagation, *best.LogZ), j.shareOfCorrection(best))
	statement.Uncertainty = judge.Finite(max(u, best.FloorError()))
	return statement
}

// isPlateau reports whether regions of constraints did not change at all from one size to the next. Belief propagation gives uniform
// messages for constraints that are even everywhere, like parities, and so do regions that close no cycle of them.
func (j *regionsJudge) isPlateau(best *judge.Estimate) bool {
	change, known := j.LastChange(best)
	return j.IsHard && known && change <= judge.Floor(*best.LogZ)
}

// expectedChange returns the change of ln Z that the track of e is expected to make next. ok is false if the track has one value.
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

// trackValues returns the values of the track of e up to e. It leaves out an estimate with the same regions as the one before, whose
// agreement shows nothing.
func (j *regionsJudge) trackValues(e *judge.Estimate) (values []float64) {
	regions := int64(-1)
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

// nextChange returns how far a track is expected to be from its limit, by its last change and the one before. If changes fall by r =
// last/before, that is the geometric sum last · r/(1−r), at most ten times the last. It is at least the last change, and minDecay of the
// change before, since tracks are not monotone. If changes do not fall, it is three times the last.
func nextChange(last, before float64) float64 {
	if last >= before {
		return 3 * last
	}
	return max(last, minDecay*before, min(10*last, last*last/(before-last)))
}

// otherFixedPoints returns what other fixed points of belief propagation may add to ln Z, if regions correct the first. It is at least ln
// Σ_k exp(ln Z_k − ln Z_1), and ln k for k fixed points, since there may be more between those found. If none of them overlap, all are
// added already, and another one may be as large as the smallest of them. It returns 0 for one fixed point.
func otherFixedPoints(p *query.Propagation) float64 {
	if p == nil || len(p.Phases) < 2 {
		return 0
	}
	if p.Apart && p.Together != nil {
		return math.Log1p(math.Exp(slices.Min(p.Phases) - *p.Together))
	}

	sum := 0.0
	for _, z := range p.Phases {
		sum += math.Exp(min(z-p.Phases[0], 0))
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

// shareOfCorrection returns correctionShare of the distance of regions from the value of belief propagation, and 0 if their changes fall
// fast. If other phases have weight, changes fall to a wrong limit.
func (j *regionsJudge) shareOfCorrection(best *judge.Estimate) float64 {
	if j.Propagation == nil || j.Propagation.LogZ == nil || best.Plan.Level < 0 {
		return 0
	}
	if decay, known := j.decay(best); known && decay < slowDecay {
		return 0
	}
	return correctionShare * math.Abs(*best.LogZ-*j.Propagation.LogZ)
}

// decay returns the last change from one size to the next over the change before, of which the first is that from the value of belief
// propagation. ok is false if there is one change at most.
func (j *regionsJudge) decay(best *judge.Estimate) (ratio float64, ok bool) {
	var values []float64
	if j.Propagation != nil && j.Propagation.LogZ != nil {
		values = append(values, *j.Propagation.LogZ)
	}
	for _, e := range j.Estimates {
		if e.LogZ != nil && e.Plan.Rule == btn.LogLinear && e.Plan.Level >= 0 && e.Kind == best.Kind {
			values = append(values, *e.LogZ)
		}
	}
	n := len(values)
	if n < 3 {
		return 0, false
	}
	last, before := math.Abs(values[n-1]-values[n-2]), math.Abs(values[n-2]-values[n-3])
	if last <= judge.Floor(values[n-1]) {
		return 0, true
	}
	return last / before, true
}

// Reconsider implements judge.Judge (compareWithFewDraws, judge.BesideModes).
func (j *regionsJudge) Reconsider(own *judge.Statement, others []*judge.Statement) {
	for _, other := range others {
		if other.Best != nil && other.MissesWeight && other.Uncertainty != nil {
			j.compareWithFewDraws(own, other)
		}
	}
	j.BesideModes(own, others)
}

// compareWithFewDraws compares the value of belief propagation with few sampled components whose standard error is not believed, and
// changes both statements. The components leave an interval open: from their lower bound (Markov's inequality for their mean is one) up
// to their mean and its shift. Their mean is mostly too low, since few draws miss the largest weights.
//
// If fewer than policy.LeastEffective draws count and belief propagation is at a fixed point of possible beliefs above their mean, its
// value is better than that mean. It is uncertain by the distance of the farther end of the interval, and the mean by its distance from
// the value in addition.
//
// Any other value inside the interval is uncertain by the distance of the farther end, if that is less than for the mean.
func (j *regionsJudge) compareWithFewDraws(own, few *judge.Statement) {
	if own.Best == nil || own.Best.Plan.Level >= 0 || own.Uncertainty != nil || j.IsUnsure || j.Propagation == nil {
		return
	}
	below, above, _ := j.Bounds.Between()
	value, mean := *own.Best.LogZ, *few.Best.LogZ
	low, high := max(below.Ln, mean+math.Log(judge.BoundsDelta)), min(above.Ln, mean+*few.Uncertainty)
	u := max(value-low, high-value)
	effective := few.Best.EffectiveSamples
	isFixedPoint := j.Propagation.Converged && !j.Propagation.Impossible && !j.Propagation.Signed
	switch {
	case effective != nil && *effective < policy.LeastEffective && mean < value && value <= above.Ln && isFixedPoint:
		own.Uncertainty, own.IsCredible = judge.Finite(u), false
		few.Uncertainty = judge.Finite(max(*few.Uncertainty, value-mean+u))
	case low <= value && value <= high && u < max(mean-low, high-mean):
		own.Uncertainty, own.IsCredible = judge.Finite(u), false
	}
}

// Marginals implements judge.Judge. Their uncertainty is their next change (nextChange), weighted, from the smaller sizes that have
// marginals. If belief propagation has several fixed points, regions describe only one: the weight of the others may have other values. The
// uncertainty is not known without another size, if regions under constraints have equal marginals at every size, or if terms may be lost.
func (j *regionsJudge) Marginals(e *judge.Estimate) (m judge.Marginals) {
	if m.P, m.Warning = j.SumMarginals(e); m.P == nil || j.IsUnsure {
		return m
	}
	var earlier [][][]float64
	for _, r := range j.Estimates {
		if r == e {
			break
		}
		if r.LogZ == nil || r.Plan.Rule != btn.LogLinear || r.Regions == e.Regions {
			continue
		}
		if p, _ := j.SumMarginals(r); p != nil {
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
	change = max(marginalsWeight*change, -math.Expm1(-otherFixedPoints(j.Propagation)))
	m.Uncertainty = judge.Finite(min(1, change))
	return m
}

// Warnings implements judge.Judge.
func (j *regionsJudge) Warnings(best *judge.Estimate, uncertainty *float64) (list []string) {
	warn := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	dropped := int64(0)
	for _, e := range j.Estimates {
		for _, v := range e.Parts {
			if v.Region != nil {
				dropped += v.Region.NonPositive
			}
		}
	}
	if dropped > 0 {
		warn("%d regions were left out because their ratio to belief propagation came out at or below 0", dropped)
	}
	if best == nil {
		return list
	}
	isOwn := best.Plan.Rule == btn.LogLinear
	if isOwn && uncertainty != nil && *uncertainty > j.Accuracy {
		if decay, known := j.decay(best); known && decay >= slowDecay {
			warn("regions do not converge with their size: their last change is %.2g times the one before, so loops of all lengths count, "+
				"as near a phase transition and beside other phases", decay)
		}
	}
	p := j.Propagation
	if p == nil {
		return list
	}
	if !p.Converged && isOwn {
		warn("belief propagation did not converge (last change %.2g): regions stand on messages that still move", p.Change)
	}
	if p.Impossible && isOwn {
		warn("the beliefs of belief propagation contradict each other, with an entropy below 0: its ln Z may be far too high")
	}
	if len(p.Phases) > 1 {
		warn("competing phases: belief propagation has %d fixed points, ln Z from %.6g to %.6g; "+
			"regions correct the first, and add the values of those that hardly overlap with it",
			len(p.Phases), p.Phases[len(p.Phases)-1], p.Phases[0])
	}
	return list
}
