package judge

// Tracks: estimates of one rule whose accuracy parameter grows, and what their changes say.

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// PlanDistanceFactor is the factor on the distance of two plans at one level, and the least ratio of two methods' uncertainties of
// marginals at which the surer one supplies them.
// Chosen.
const PlanDistanceFactor = 2

// FirstLevelFactor is the ratio by which two plans at their first level may be closer to each other than to the truth.
const FirstLevelFactor = 10

// ForbiddenFactor is the factor on the uncertainty of estimates of a model with forbidden combinations: a small support loses whole
// branches, and the next levels do not show them.
const ForbiddenFactor = 4

// Track is the values of the estimates of a rule, as far as they compare with each other.
type Track struct {
	Sequence *Sequence
	Rule     btn.Rule
	// Next is the change that an estimate's track is expected to make next. ok is false if the track has one value.
	Next func(e *Estimate) (change float64, ok bool)
}

// Best returns the estimate of the highest level. Of several it is the one whose own track has moved least, the first of equals. It returns
// nil if none has a value.
func (t Track) Best() *Estimate {
	var best *Estimate
	for _, e := range t.Sequence.Estimates {
		if e.LogZ != nil && e.Plan.Rule == t.Rule && (best == nil || e.Plan.Level > best.Plan.Level) {
			best = e
		}
	}
	if best == nil {
		return nil
	}
	steadiest, least := best, math.Inf(1)
	for _, e := range t.Sequence.Estimates {
		if e.LogZ == nil || e.Plan.Rule != t.Rule || e.Plan.Level != best.Plan.Level {
			continue
		}
		if change, moved := t.Next(e); moved && change < least {
			steadiest, least = e, change
		}
	}
	return steadiest
}

// Others returns the highest estimates of the other tracks of the rule. An estimate of a level below 0 is a start and no estimate beside
// others.
func (t Track) Others(best *Estimate) (others []*Estimate) {
	latest := map[string]*Estimate{}
	var names []string
	top := math.Inf(-1)
	for _, e := range t.Sequence.Estimates {
		if e.LogZ == nil || e.Plan.Rule != t.Rule || e.Plan.Track == best.Plan.Track || e.Plan.Level < 0 {
			continue
		}
		if _, known := latest[e.Plan.Track]; !known {
			names = append(names, e.Plan.Track)
		}
		latest[e.Plan.Track] = e
	}
	for _, name := range names {
		top = max(top, latest[name].Plan.Level)
	}
	for _, name := range names {
		if latest[name].Plan.Level == top {
			others = append(others, latest[name])
		}
	}
	return others
}

// Before returns the estimate before one in its track; nil if it is the first.
func (s *Sequence) Before(e *Estimate) *Estimate {
	var last *Estimate
	for _, r := range s.Estimates {
		if r.LogZ != nil && r.Plan.Track == e.Plan.Track && r.Plan.Level < e.Plan.Level {
			last = r
		}
	}
	return last
}

// LastChange returns the distance of an estimate from the one before it in its track. ok is false if it is the first.
func (s *Sequence) LastChange(e *Estimate) (change float64, ok bool) {
	earlier := s.Before(e)
	if earlier == nil {
		return 0, false
	}
	return math.Abs(*e.LogZ - *earlier.LogZ), true
}

// settledBesideModes is the largest uncertainty, in nats, at which contractions are believed beside modes that chains miss.
// Measured: where a mode was lost in part, they stated 9e-7 to 0.005 and were off by 0.0002 to 0.02.
const settledBesideModes = 1e-9

// BesideModes changes the statement of a contraction if components that are drawn have found hidden modes. A truncation may have lost the
// same share of a mode at every level, which changes do not show. Unless the contraction has settled (settledBesideModes), it is uncertain
// by its distance from credible drawn components and by one standard error of these, at least.
func (s *Sequence) BesideModes(own *Statement, others []*Statement) {
	if own.Best == nil || own.Uncertainty == nil || *own.Uncertainty <= settledBesideModes || !s.HasHiddenModes() {
		return
	}
	for _, other := range others {
		if other.Best == nil || !other.IsCredible || other.Best.StandardError == nil {
			continue
		}
		distance := math.Abs(*own.Best.LogZ - *other.Best.LogZ)
		own.Uncertainty = Finite(max(*own.Uncertainty, distance, *other.Best.StandardError))
	}
}
