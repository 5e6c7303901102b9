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

// legsJudge judges truncated legs.
type legsJudge struct {
	judge.Defaults
	*judge.Sequence
	tracks judge.Track
}

// NewJudge returns the judge of truncated legs.
func NewJudge(s *judge.Sequence) judge.Judge {
	j := &legsJudge{Sequence: s}
	j.tracks = judge.Track{Sequence: s, Rule: btn.Linear, Next: func(e *judge.Estimate) (float64, bool) {
		return j.expectedChange(e, math.Inf(1)) // without help from other plans
	}}
	return j
}

// Add implements judge.Judge: Z̃ = Σ_s Z_s over slices s.
func (j *legsJudge) Add(e *judge.Estimate) error {
	discarded, rounding := 0.0, scaled.Number{}
	terms := make([]scaled.Number, len(e.Parts))
	for i, v := range e.Parts {
		terms[i] = v.Z
		if t := v.Truncation; t != nil {
			discarded = max(discarded, t.Discarded)
			e.Truncated = e.Truncated || t.Truncated
			e.PeakBytes = max(e.PeakBytes, t.Bytes)
			if t.Rounding != nil {
				rounding = rounding.Add(*t.Rounding)
			}
		} else if !v.Z.IsZero() {
			return fmt.Errorf("component %d does not say what it truncated", i)
		}
	}

	e.Discarded = judge.Finite(discarded)
	total, err := additive.Sum(additive.Ones(len(terms)), terms)
	e.Z, e.Digits = total.Z, total.CancellationDigits
	if e.Z.IsZero() {
		return err
	}
	if e.Rounding = rounding.Div(e.Z.Abs()).Float64(); err == nil && e.Rounding >= 1 {
		err = fmt.Errorf("%w: rounding among terms of both signs is up to %s, the total %s",
			additive.ErrCancelled, additive.Decimal(rounding), additive.Decimal(e.Z))
	}
	return err
}

// State implements judge.Judge. An estimate along a tree that dropped nothing above rounding is complete. Else the best one is of the
// highest bond, the one whose plan has moved least. Its uncertainty is the largest of
//
//   - the change that its plan is expected to make next (expectedChange): last²/(last but one), or after two bonds the last change times
//     the ratio by which the distance between plans has fallen, but never less than a share of the last change (accidentShare);
//   - twice its distance (judge.PlanDistanceFactor) from the highest estimates of other plans, that is trees or orders. A plan that still
//     moves ten times as much (maxMovementRatio) tells little about the best one, so that a tenth of its distance counts;
//   - what changes and distances do not show (raise).
//
// If no plan has two bonds yet, the distance of the plans counts tenfold (judge.FirstLevelFactor), and what a truncation leaves out counts
// at least (hiddenTruncation). The discarded weight alone is no bound: it was seen at 1e-8 beside an error of 0.1.
func (j *legsJudge) State() judge.Statement {
	for _, e := range j.Estimates {
		if j.isComplete(e) {
			return judge.Statement{Best: e, Uncertainty: judge.Finite(max(e.FloorError(), j.minimumOfPhases())), IsComplete: true, MaySettle: true}
		}
	}
	best := j.tracks.Best()
	statement := judge.Statement{Best: best, IsCredible: true}
	if best == nil || j.IsUnsure {
		return statement
	}
	others := j.tracks.Others(best)
	last, hasMoved := j.tracks.Next(best)
	statement.MaySettle = hasMoved && j.isRepeated(best)

	// The distance of a plan that still moves much more than the best one is mainly its own error, as far as its truncations mean anything.
	spread := 0.0 // the largest distance of a plan that counts in full
	far := 0.0    // the largest of the others, reduced
	worse := 0    // the number of the others
	for _, other := range others {
		distance := math.Abs(*other.LogZ - *best.LogZ)
		theirs, known := j.tracks.Next(other)
		if known && hasMoved && theirs > maxMovementRatio*last {
			worse++
			far = max(far, distance/maxMovementRatio, distance*max(accidentShare(best), accidentShare(other)))
			continue
		}
		spread = max(spread, distance)
	}

	u, _ := j.expectedChange(best, spread)
	u = max(u, judge.PlanDistanceFactor*spread, far)
	switch {
	case hasMoved:
	case len(others) > 0 && best.Discarded != nil: // plans may agree because they are alike, so what was discarded counts as well
		u = max(u, judge.FirstLevelFactor*spread, hiddenTruncation(*best.Discarded))
	case spread > 0:
		u = max(u, judge.FirstLevelFactor*spread)
	default:
		return statement
	}
	if change, _ := j.LastChange(best); worse == len(others) {
		u = max(u, change) // there is no plan to compare with, so the next change is not assumed to be smaller
	}
	u = j.raise(best, u, len(others) == 0)
	statement.Uncertainty = judge.Finite(max(u, best.FloorError()))
	return statement
}

// isComplete reports whether an estimate is exact up to rounding, since it dropped nothing above rounding along a tree.
func (j *legsJudge) isComplete(e *judge.Estimate) bool {
	return e.LogZ != nil && e.Plan.Rule == btn.Linear && !e.Truncated && e.Plan.Lossless && !j.IsUnsure
}

// isRepeated reports whether another plan has an estimate of at least the level of best.
func (j *legsJudge) isRepeated(best *judge.Estimate) bool {
	for _, e := range j.Estimates {
		if e.LogZ != nil && e.Plan.Rule == btn.Linear && e.Plan.Track != best.Plan.Track && e.Plan.Level >= best.Plan.Level {
			return true
		}
	}
	return false
}

// expectedChange returns the change of ln Z that the plan of e is expected to make at its next bond. ok is false if the plan has one
// bond. spread is the distance of other plans from e. With last and before the last two changes it is last · min(1, last/before), but at
// least a share of either.
func (j *legsJudge) expectedChange(e *judge.Estimate, spread float64) (change float64, ok bool) {
	var values, levels []float64
	for _, r := range j.Estimates {
		if r.LogZ != nil && r.Plan.Track == e.Plan.Track && r.Plan.Level <= e.Plan.Level {
			values, levels = append(values, *r.LogZ), append(levels, r.Plan.Level)
		}
	}
	n := len(values)
	if n < 2 {
		return 0, false
	}

	last := math.Abs(values[n-1] - values[n-2])
	if step := levels[n-1] - levels[n-2]; step > 0 {
		last /= min(1, step) // as if the bond had doubled
	}
	if n == 2 { // the distance between plans shows how fast the change falls
		if before := j.spreadBefore(e); before > 0 {
			return last * min(1, max(secondChangeWeight, accidentShare(e), spread/before)), true
		}
		return last, true
	}
	before := math.Abs(values[n-2] - values[n-3])
	if before == 0 {
		return last, true
	}
	byRatio := last * min(1, max(minDecay, accidentShare(e), last/before))
	byAccident := before * min(1, max(priorChangeWeight, accidentShare(e)))
	return max(byRatio, byAccident), true
}

// spreadBefore returns the largest distance of other plans from the plan of e at the bond before that of e; 0 if there are none.
func (j *legsJudge) spreadBefore(e *judge.Estimate) (spread float64) {
	earlier := j.Before(e)
	for _, r := range j.Estimates {
		if earlier != nil && r.LogZ != nil && r.Plan.Track != e.Plan.Track && r.Plan.Level == earlier.Plan.Level {
			spread = max(spread, math.Abs(*r.LogZ-*earlier.LogZ))
		}
	}
	return spread
}

// accidentShare returns the share of a change that remains in the uncertainty after a truncation, the fourth root of what e discarded.
// After truncations of a percent a small change is as likely an accident as a sign of convergence.
func accidentShare(e *judge.Estimate) float64 {
	if e.Discarded == nil {
		return 0
	}
	return math.Sqrt(math.Sqrt(max(*e.Discarded, 0)))
}

// hiddenTruncation returns what truncations may leave out if no second bond shows it. share is the largest discarded share. Many
// truncations discard that much, and their roots add up if it is large.
func hiddenTruncation(share float64) float64 {
	share = max(share, 0)
	return min(truncations*share, singleBondRoot*math.Sqrt(share))
}

// raise returns the uncertainty u, raised to what changes and distances do not show. It is at least the discarded share, and the root of
// that if there is no other plan (isAlone) or the last bond changed nothing. It is at least lostSignError if an estimate of at least half
// the bond came out at or below 0. It is judge.ForbiddenFactor times as large if tables forbid combinations of values.
func (j *legsJudge) raise(best *judge.Estimate, u float64, isAlone bool) float64 {
	if change, known := j.LastChange(best); best.Discarded != nil {
		share := max(*best.Discarded, 0)
		u = max(u, share)
		if isAlone || known && change == 0 {
			u = max(u, math.Sqrt(share))
		}
	}
	for _, e := range j.Estimates {
		if e.LogZ == nil && e.Truncated && e.Plan.Rule == btn.Linear && e.Plan.Level >= best.Plan.Level-1 {
			u = max(u, lostSignError)
		}
	}
	if j.IsHard {
		u *= judge.ForbiddenFactor
	}
	return u
}

// Reconsider implements judge.Judge. A truncation may have lost a mode that chains found (judge.BesideModes), or a phase of belief
// propagation (minimumOfPhases).
func (j *legsJudge) Reconsider(own *judge.Statement, others []*judge.Statement) {
	j.BesideModes(own, others)
	if own.Uncertainty != nil && j.Propagation != nil && !j.Propagation.Impossible {
		own.Uncertainty = judge.Finite(max(*own.Uncertainty, j.minimumOfPhases()))
	}
}

// minimumOfPhases returns the smallest uncertainty if belief propagation has several phases, and 0 if it has one. Truncations drop what
// is below rounding of one phase, even if they drop nothing above it, and another phase may have the root of that.
func (j *legsJudge) minimumOfPhases() float64 {
	if j.Propagation == nil || j.Propagation.Together == nil {
		return 0
	}
	return leastBesidePhases
}

// Marginals implements judge.Judge. P is that of all slices together. Its uncertainty is its largest change from the last estimate of
// truncated legs before e that has marginals, of any plan, and a part of that from the second last. Symmetric truncations repeat belief
// propagation and each other, so that what was discarded counts as well: the share, or the root of it if nothing changes. If only another
// method is there to compare with, hiddenTruncation counts.
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
	var earlier, otherMethods [][][]float64 // of truncated legs, and of other methods
	for _, r := range j.Estimates {
		if r == e || r.LogZ == nil {
			continue
		}
		switch p, _ := j.SumMarginals(r); {
		case p == nil:
		case r.Plan.Rule == btn.Linear:
			earlier = append(earlier, p)
		default:
			otherMethods = append(otherMethods, p)
		}
	}
	share := 0.0
	if e.Discarded != nil {
		share = max(*e.Discarded, 0)
	}
	change, n := 0.0, len(earlier)
	switch {
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
	if j.IsHard && e.Discarded != nil {
		change *= judge.ForbiddenFactor
	}
	m.Uncertainty = judge.Finite(min(1, max(change, share, e.Rounding)))
	return m
}
