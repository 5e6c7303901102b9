package truncated

// The uncertainty of ln Z and of marginals by truncated legs: from the differences between bonds and between plans.

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/methods/judge"
	"github.com/basetensor/basetensor/internal/network/additive"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// maxMovementRatio is the largest ratio of the next change of another plan to that of the best one for which the distance of the other plan
// counts in full.
const maxMovementRatio = 10

// minDecay is the smallest ratio of the next change to the last one that is assumed. Bonds take effect faster than any power.
const minDecay = 0.003

// secondChangeWeight is that ratio if a plan has two bonds, so that only other plans show how fast bonds take effect. It is also the
// weight of the second last change of marginals.
// Measured: three of 15 answers on triangular grids are beyond three times the uncertainty stated
// with it, five without.
const secondChangeWeight = 0.3

// priorChangeWeight is the weight of the change before the last one, since the last one may be small by accident.
const priorChangeWeight = 0.01

// The uncertainty of an estimate of a single bond is truncations times the largest discarded
// share, but at most singleBondRoot times its root.
// Measured: of 177 answers in 96 KiB, most of them of one bond, 98.3 % are off by at most three
// times the uncertainty stated with it, 96.5 % with the root alone, which is 264 times too much on
// ferromagnets by bonds of 16 (the median of 16), 24 times with it.
const (
	truncations    = 100
	singleBondRoot = 5
)

// lostSignError is the smallest uncertainty, in nats, if an estimate of the same bond or half of it came out at or below 0: its error was
// all of Z.
const lostSignError = 1

// leastBesidePhases is the smallest uncertainty if belief propagation has several phases: the root of 1e-12, below which singular values
// are always dropped. Measured: 4e-9 was off where 2e-12 was stated.
const leastBesidePhases = 1e-6

// legsJudge judges estimates by truncated legs. A track is the estimates along one plan, whose bonds grow.
type legsJudge struct {
	judge.Defaults
	*judge.Sequence
	tracks judge.Track // the estimates along each plan; Next is expectedChange without help from other plans
}

// NewJudge returns the judge of truncated legs.
func NewJudge(s *judge.Sequence) judge.Judge {
	j := &legsJudge{Sequence: s}
	j.tracks = judge.Track{Sequence: s, Rule: btn.Linear, ExpectedChange: func(e *judge.Estimate) (float64, bool) {
		return j.expectedChange(e, math.Inf(1)) // +Inf: other plans do not make the expected change smaller
	}}
	return j
}

// Add implements judge.Judge. It sets the Z of e to the sum of the Z of its parts, which are slices, and sets what they discarded and a
// bound of their rounding. The error is additive.ErrCancelled if terms of both signs cancel so that rounding may be all of the sum.
func (j *legsJudge) Add(e *judge.Estimate) error {
	discarded, rounding := 0.0, scaled.Number{}
	terms := make([]scaled.Number, len(e.Parts))
	for i, v := range e.Parts {
		terms[i] = v.Z
		if truncation := v.Truncation; truncation != nil {
			discarded = max(discarded, truncation.Discarded)
			e.Truncated = e.Truncated || truncation.Truncated
			e.PeakBytes = max(e.PeakBytes, truncation.Bytes)
			if truncation.Rounding != nil {
				rounding = rounding.Add(*truncation.Rounding)
			}
		} else if !v.Z.IsZero() {
			return fmt.Errorf("component %d does not say what it truncated", i)
		}
	}

	e.Discarded = judge.Finite(discarded)
	total, err := additive.Sum(additive.Ones(len(terms)), terms)
	e.Z, e.Digits = total.Z, total.CancellationDigits
	if e.Z.IsZero() { // there is no relative rounding
		return err
	}
	if e.Rounding = rounding.Div(e.Z.Abs()).Float64(); err == nil && e.Rounding >= 1 {
		err = fmt.Errorf("%w: rounding among terms of both signs is up to %s, the total %s",
			additive.ErrCancelled, additive.Decimal(rounding), additive.Decimal(e.Z))
	}
	return err
}

// MakeStatement implements judge.Judge. An estimate that truncated nothing is complete. Otherwise the best estimate is one of the highest
// bond: the one whose plan has moved least. Its uncertainty is the largest of
//
//   - the change of ln Z that its plan is expected to make at the next bond (expectedChange);
//   - twice its distance (judge.PlanDistanceFactor) from the highest estimates of other plans (planDistances);
//   - what changes and distances do not show (raiseUncertainty).
//
// If no plan has two bonds yet, the distance of the plans counts tenfold (judge.FirstLevelFactor), and what a truncation leaves out counts
// at least (hiddenTruncation). The discarded weight alone is no bound: it was seen at 1e-8 beside an error of 0.1.
func (j *legsJudge) MakeStatement() judge.Statement {
	for _, e := range j.Estimates {
		if j.isComplete(e) {
			// Rounding, and what truncations at rounding level may drop if there are several phases.
			uncertainty := judge.Finite(max(e.FloorError(), j.minimumOfPhases()))
			return judge.Statement{Best: e, Uncertainty: uncertainty, IsComplete: true, MaySettle: true}
		}
	}

	best := j.tracks.Best()
	statement := judge.Statement{Best: best, IsCredible: true}
	if best == nil || j.IsUnsure {
		return statement
	}
	otherPlans := j.tracks.LastOfOtherTracks(best)       // the highest estimate of each
	_, hasMoved := j.tracks.ExpectedChange(best)         // its plan has two bonds
	statement.MaySettle = hasMoved && j.isRepeated(best) // another plan has been contracted at this bond or a larger one

	uncertainty, ok := j.differences(best, otherPlans, hasMoved)
	if !ok {
		return statement
	}
	uncertainty = j.raiseUncertainty(best, uncertainty, len(otherPlans) == 0)
	statement.Uncertainty = judge.Finite(max(uncertainty, best.FloorError()))
	return statement
}

// differences returns the uncertainty of best by what its plan is expected to change and by the distances from other plans. hasMoved says
// that the plan of best has two bonds. ok is false if there is nothing to compare with.
func (j *legsJudge) differences(best *judge.Estimate, otherPlans []*judge.Estimate, hasMoved bool) (uncertainty float64, ok bool) {
	distances := j.planDistances(best, otherPlans)
	change, _ := j.expectedChange(best, distances.largest) // 0 if there is none
	uncertainty = max(change, judge.PlanDistanceFactor*distances.largest, distances.largestReduced)
	switch {
	case hasMoved:
	case len(otherPlans) > 0 && best.Discarded != nil: // plans may agree because they are alike, so what was discarded counts as well
		uncertainty = max(uncertainty, judge.FirstLevelFactor*distances.largest, hiddenTruncation(*best.Discarded))
	case distances.largest > 0:
		uncertainty = max(uncertainty, judge.FirstLevelFactor*distances.largest)
	default:
		return 0, false
	}
	if lastChange, _ := j.LastChange(best); distances.areAllReduced {
		uncertainty = max(uncertainty, lastChange) // no plan counts in full, so the next change is not assumed to be smaller
	}
	return uncertainty, true
}

// planDistances are the distances in ln Z between the best estimate and the highest estimates of other plans.
type planDistances struct {
	largest        float64 // of the plans whose distance counts in full
	largestReduced float64 // of the other plans, after the reduction
	areAllReduced  bool    // no plan counts in full, or there is no other plan
}

// planDistances returns the distances in ln Z between best and the estimates of other plans. If another plan is expected to move
// maxMovementRatio times as much as the plan of best, its distance is mainly its own error. Then the distance is reduced: divided by that
// ratio, but not below accidentShare of itself, a share that grows with what the estimates discarded.
func (j *legsJudge) planDistances(best *judge.Estimate, otherPlans []*judge.Estimate) planDistances {
	distances := planDistances{areAllReduced: true}
	bestChange, hasMoved := j.tracks.ExpectedChange(best)
	for _, other := range otherPlans {
		distance := math.Abs(*other.LogZ - *best.LogZ)
		otherChange, ok := j.tracks.ExpectedChange(other)
		if ok && hasMoved && otherChange > maxMovementRatio*bestChange {
			accident := distance * max(accidentShare(best), accidentShare(other))
			distances.largestReduced = max(distances.largestReduced, distance/maxMovementRatio, accident)
			continue
		}
		distances.areAllReduced = false
		distances.largest = max(distances.largest, distance)
	}
	return distances
}

// isComplete reports whether an estimate is exact up to rounding: along a tree, it dropped nothing above rounding.
func (j *legsJudge) isComplete(e *judge.Estimate) bool {
	return e.LogZ != nil && e.Plan.Rule == btn.Linear && !e.Truncated && e.Plan.Lossless && !j.IsUnsure
}

// isRepeated reports whether another plan than that of best has an estimate of the same bond or a larger one.
func (j *legsJudge) isRepeated(best *judge.Estimate) bool {
	for _, e := range j.Estimates {
		if e.LogZ != nil && e.Plan.Rule == btn.Linear && e.Plan.Track != best.Plan.Track && e.Plan.Level >= best.Plan.Level {
			return true
		}
	}
	return false
}

// expectedChange returns the change of ln Z that the plan of e is expected to make at its next bond. ok is false if the plan has one bond
// only. last and previous are the last two changes along the plan. After three bonds the expected change is last·min(1, last/previous), but
// at least a share of last and of previous. After two bonds the decay last/previous is not known. It is taken from the largest distance
// between plans: otherPlans at the bond of e over that at the bond before (distanceBefore). The shares are constants, or accidentShare if
// that is larger.
func (j *legsJudge) expectedChange(e *judge.Estimate, otherPlans float64) (change float64, ok bool) {
	values, levels := j.valuesUpTo(e)
	n := len(values)
	if n < 2 {
		return 0, false
	}

	last := math.Abs(values[n-1] - values[n-2])
	// Levels are log2 of the bond and of the number of slices: a step of 1 is twice the bond.
	if step := levels[n-1] - levels[n-2]; step > 0 {
		last /= min(1, step) // as if the bond had doubled
	}
	if n == 2 {
		if before := j.distanceBefore(e); before > 0 {
			return last * min(1, max(secondChangeWeight, accidentShare(e), otherPlans/before)), true
		}
		return last, true
	}
	previous := math.Abs(values[n-2] - values[n-3])
	if previous == 0 {
		return last, true
	}
	byRatio := last * min(1, max(minDecay, accidentShare(e), last/previous))
	byAccident := previous * min(1, max(priorChangeWeight, accidentShare(e))) // the last change may be small by accident
	return max(byRatio, byAccident), true
}

// valuesUpTo returns ln Z and the level of the estimates along the plan of e whose level is at most that of e and whose Z is above 0. The
// level is log2 of the bond and of the number of slices together.
func (j *legsJudge) valuesUpTo(e *judge.Estimate) (values, levels []float64) {
	for _, r := range j.Estimates {
		if r.LogZ != nil && r.Plan.Track == e.Plan.Track && r.Plan.Level <= e.Plan.Level {
			values, levels = append(values, *r.LogZ), append(levels, r.Plan.Level)
		}
	}
	return values, levels
}

// distanceBefore returns the largest distance in ln Z of other plans from the plan of e, at the bond before that of e. It is 0 if there are
// no other plans, or no bond before.
func (j *legsJudge) distanceBefore(e *judge.Estimate) (distance float64) {
	earlier := j.PreviousInTrack(e)
	if earlier == nil {
		return 0
	}
	for _, r := range j.Estimates {
		if r.LogZ != nil && r.Plan.Track != e.Plan.Track && r.Plan.Level == earlier.Plan.Level {
			distance = max(distance, math.Abs(*r.LogZ-*earlier.LogZ))
		}
	}
	return distance
}

// accidentShare returns the share of a change or distance that counts in the uncertainty of e at least: the fourth root of what e
// discarded. After truncations of a percent a small change is as likely an accident as a sign of convergence.
func accidentShare(e *judge.Estimate) float64 {
	if e.Discarded == nil {
		return 0
	}
	return math.Sqrt(math.Sqrt(max(*e.Discarded, 0)))
}

// hiddenTruncation returns the error of ln Z that truncations may have if no second bond shows it. share is the largest share that one
// truncation discarded: the error is taken to be truncations times that, but at most singleBondRoot times its root.
func hiddenTruncation(share float64) float64 {
	share = max(share, 0)
	return min(truncations*share, singleBondRoot*math.Sqrt(share))
}

// raiseUncertainty returns the uncertainty of best, at least as large as three bounds that do not compare estimates: the share of the
// squared singular values that best discarded; the root of that share if there is no other plan (isAlone) or the last bond changed
// nothing; lostSignError if an estimate of at least half the bond came out at or below 0. If tables forbid combinations of values, the
// result is multiplied by judge.ForbiddenFactor.
func (j *legsJudge) raiseUncertainty(best *judge.Estimate, uncertainty float64, isAlone bool) float64 {
	if change, ok := j.LastChange(best); best.Discarded != nil {
		share := max(*best.Discarded, 0)
		uncertainty = max(uncertainty, share)
		isUnchanged := ok && change == 0
		if isAlone || isUnchanged {
			uncertainty = max(uncertainty, math.Sqrt(share))
		}
	}
	for _, e := range j.Estimates {
		isNotPositive := e.LogZ == nil && e.Truncated && e.Plan.Rule == btn.Linear // contracted, and without a logarithm
		if isNotPositive && e.Plan.Level >= best.Plan.Level-1 {                    // a level less is half the bond
			uncertainty = max(uncertainty, lostSignError)
		}
	}
	if j.IsHard {
		uncertainty *= judge.ForbiddenFactor
	}
	return uncertainty
}

// Reconsider implements judge.Judge. It raises the uncertainty of the own statement if a truncation may have lost a mode that chains found
// (judge.RaiseForHiddenModes), or a phase of belief propagation (minimumOfPhases).
func (j *legsJudge) Reconsider(own *judge.Statement, others []*judge.Statement) {
	j.RaiseForHiddenModes(own, others)
	if own.Uncertainty != nil && j.Propagation != nil && !j.Propagation.Impossible {
		own.Uncertainty = judge.Finite(max(*own.Uncertainty, j.minimumOfPhases()))
	}
}

// minimumOfPhases returns the smallest uncertainty if belief propagation has several phases, and 0 otherwise. Every truncation drops what
// is below the rounding of one phase, and another phase may have had the root of that.
func (j *legsJudge) minimumOfPhases() float64 {
	if j.Propagation == nil || j.Propagation.Together == nil {
		return 0
	}
	return leastBesidePhases
}

// Marginals implements judge.Judge. Its P are the marginals of all slices of e together. Their uncertainty is the largest of
//
//   - the largest change of a probability from the last estimate by truncated legs before e, of any plan, and secondChangeWeight times the
//     change from the one before that;
//   - the share that e discarded, or its root if nothing changes: symmetric truncations agree with each other and with belief propagation.
//
// If there are only estimates of other methods to compare with, the uncertainty is the change from the last of these, or what a truncation
// may hide (hiddenTruncation), if that is larger. If there are none at all, the uncertainty is not known.
func (j *legsJudge) Marginals(e *judge.Estimate) (m judge.Marginals) {
	if m.P, m.Warning = j.SumMarginals(e); m.P == nil {
		return m
	}
	if j.isComplete(e) {
		m.Uncertainty = judge.Finite(min(1, max(judge.Rounding, e.Rounding)))
		return m
	}
	if j.IsUnsure {
		return m
	}

	share := 0.0 // what a truncation of e discarded
	if e.Discarded != nil {
		share = max(*e.Discarded, 0)
	}
	change := 0.0 // the largest change of a probability
	earlier, otherMethods := j.marginalsBeside(e)
	switch n := len(earlier); {
	case n > 0:
		if change = judge.LargestDifference(m.P, earlier[n-1]); change <= judge.Rounding {
			share = math.Sqrt(share)
		}
		if n > 1 {
			change = max(change, secondChangeWeight*judge.LargestDifference(m.P, earlier[n-2]))
		}
	case len(otherMethods) > 0:
		change, share = judge.LargestDifference(m.P, otherMethods[len(otherMethods)-1]), hiddenTruncation(share)
	default:
		return m
	}
	if j.IsHard && e.Discarded != nil { // tables forbid combinations of values
		change *= judge.ForbiddenFactor
	}
	m.Uncertainty = judge.Finite(min(1, max(change, share, e.Rounding)))
	return m
}

// marginalsBeside returns the marginals of all estimates but e that have Z and marginals: those by truncated legs, and those by other
// methods, each in the order of the estimates.
func (j *legsJudge) marginalsBeside(e *judge.Estimate) (truncated, otherMethods [][][]float64) {
	for _, r := range j.Estimates {
		if r == e || r.LogZ == nil {
			continue
		}
		switch p, _ := j.SumMarginals(r); {
		case p == nil:
		case r.Plan.Rule == btn.Linear: // by truncated legs
			truncated = append(truncated, p)
		default:
			otherMethods = append(otherMethods, p)
		}
	}
	return truncated, otherMethods
}
