package judge

// Tracks: estimates of one rule whose accuracy parameter grows, and what their changes say.

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// PlanDistanceFactor is the factor by which an estimate may be farther off than it is from one along another plan at the same level. It is
// also the ratio of two methods' uncertainties of marginals from which on the surer method supplies the marginals.
// Chosen.
const PlanDistanceFactor = 2

// FirstLevelFactor is the ratio by which two plans at their first level may be closer to each other than to the truth.
const FirstLevelFactor = 10

// ForbiddenFactor is the factor on the uncertainty of estimates of a model with forbidden combinations: a small support loses whole
// branches, and the next levels do not show them.
const ForbiddenFactor = 4

// Track compares the estimates of one rule in a sequence with each other. The rule may have several tracks, each with estimates of growing
// levels.
type Track struct {
	Sequence *Sequence
	Rule     btn.Rule
	// ExpectedChange returns the change of ln Z, in nats, that the track of an estimate is expected to make next. ok is false if the track
	// has only one estimate.
	ExpectedChange func(e *Estimate) (change float64, ok bool)
}

// hasValue reports whether an estimate is one of the rule and has a value.
func (t Track) hasValue(e *Estimate) bool { return e.LogZ != nil && e.Plan.Rule == t.Rule }

// Best returns the estimate of the highest level of accuracy that has a value. If several tracks, sequences of estimates with growing
// levels, have reached that level, it is the one whose track is expected to change least next (ExpectedChange), the first one of equals. It
// returns nil if no estimate has a value.
func (t Track) Best() *Estimate {
	var highest *Estimate
	for _, e := range t.Sequence.Estimates {
		if t.hasValue(e) && (highest == nil || e.Plan.Level > highest.Plan.Level) {
			highest = e
		}
	}
	if highest == nil {
		return nil
	}

	steadiest, smallestChange := highest, math.Inf(1)
	for _, e := range t.Sequence.Estimates {
		if !t.hasValue(e) || e.Plan.Level != highest.Plan.Level {
			continue
		}
		if change, ok := t.ExpectedChange(e); ok && change < smallestChange {
			steadiest, smallestChange = e, change
		}
	}
	return steadiest
}

// LastOfOtherTracks returns the last estimate of each track other than that of best, for those of these tracks that have reached the
// highest level among them. A track is a sequence of estimates with growing levels of accuracy. Estimates of a level below 0 are starts of
// tracks, and do not count.
func (t Track) LastOfOtherTracks(best *Estimate) (estimates []*Estimate) {
	lastOf := map[string]*Estimate{} // by track
	var tracks []string              // in the sequence of their first estimates
	for _, e := range t.Sequence.Estimates {
		isOther := e.Plan.Track != best.Plan.Track
		isStart := e.Plan.Level < 0
		if !t.hasValue(e) || !isOther || isStart {
			continue
		}
		if lastOf[e.Plan.Track] == nil {
			tracks = append(tracks, e.Plan.Track)
		}
		lastOf[e.Plan.Track] = e
	}

	highest := math.Inf(-1)
	for _, track := range tracks {
		highest = max(highest, lastOf[track].Plan.Level)
	}
	for _, track := range tracks {
		if lastOf[track].Plan.Level == highest {
			estimates = append(estimates, lastOf[track])
		}
	}
	return estimates
}

// PreviousInTrack returns the estimate that e refines: of the estimates in the track of e that have a value and a lower level than e, the
// last. A track is a sequence of estimates with the same fixed parameters and growing levels. The result is nil if there is none.
func (s *Sequence) PreviousInTrack(e *Estimate) *Estimate {
	var last *Estimate
	for _, r := range s.Estimates {
		if r.LogZ != nil && r.Plan.Track == e.Plan.Track && r.Plan.Level < e.Plan.Level {
			last = r
		}
	}
	return last
}

// LastChange returns the distance in nats of an estimate from the one before it in its track. ok is false if it is the first of its track.
func (s *Sequence) LastChange(e *Estimate) (change float64, ok bool) {
	earlier := s.PreviousInTrack(e)
	if earlier == nil {
		return 0, false
	}
	return math.Abs(*e.LogZ - *earlier.LogZ), true
}

// settledBesideModes is the largest uncertainty, in nats, at which contractions are believed although chains miss modes.
// Measured: where a mode was lost in part, they stated 9e-7 to 0.005 and were off by 0.0002 to 0.02.
const settledBesideModes = 1e-9

// RaiseForHiddenModes raises the uncertainty of a contraction's statement (own) if drawn components have found modes that chains miss.
// Modes are separate sets of assignments that have a share of Z, and a chain is a random walk over assignments. A truncated contraction may
// have lost the same share of such a mode at every level, which the changes between levels do not show. So the uncertainty becomes at least
// the distance from each credible statement of drawn components, and at least the standard error of that. statements are those of other
// rules. Nothing changes if the contraction states at most settledBesideModes.
func (s *Sequence) RaiseForHiddenModes(own *Statement, statements []*Statement) {
	isDoubtful := own.Best != nil && own.Uncertainty != nil && *own.Uncertainty > settledBesideModes
	if !isDoubtful || !s.HasHiddenModes() {
		return
	}
	for _, statement := range statements {
		isOfDraws := statement.Best != nil && statement.Best.StandardError != nil // only drawn components have a standard error
		if !isOfDraws || !statement.IsCredible {
			continue
		}
		distance := math.Abs(*own.Best.LogZ - *statement.Best.LogZ)
		own.Uncertainty = Finite(max(*own.Uncertainty, distance, *statement.Best.StandardError))
	}
}
