package aggregate

// Sequences of estimates: what they say about each other, and when that is enough. An exact plan is
// a sequence of one.

import (
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Reasons for which an approximate answer stopped growing.
const (
	endedSettled  = "settled"
	endedComplete = "complete"
	EndedDeadline = "deadline"
)

// Settled reports whether a query needs no more values: its complete estimates, in sequence, have
// an uncertainty within the plan's accuracy. An estimate whose quality is known needs all its
// values, unless a search has proved the assignment that alone is asked for; a query that has failed needs none.
func Settled(in Input) bool {
	a := in.Assignment
	switch {
	case a != nil && a.Error != nil:
		return true
	case a == nil || a.Plan == nil:
		return false
	case !a.Plan.Grows():
		return len(in.Values) >= a.Plan.Len() || in.proved()
	}

	parts, broken := collect(in.Query, a.Plan.Len(), sortedUnits(in.Values))
	return broken != nil || climb(in, parts, false).ended == endedSettled
}

// sequence is the complete estimates of a plan, and what follows from them.
type sequence struct {
	estimates   []*estimate
	bounded     []*estimate // those that are bounds alone
	refused     *estimate   // one whose quality would be known, without a value and with others behind it; nil: none
	ended       string
	best        int                // position of the estimate that is the answer, −1 for none
	uncertainty *float64           // of the best estimate's ln Z in nats; nil: not known
	moved       bool               // the best estimate has a predecessor in its own track
	verdicts    []verdict          // of the families, where none of their estimates is exact
	bp          *query.Propagation // nil where belief propagation was not run
	hard        bool               // tables forbid combinations of values
	unsure      bool               // contractions in float64 may have lost entries; sampled components are in logarithms
	targets     []int              // variables whose marginals are wanted; nil: all
	pool        pool               // weights of sampled components
	bounds      bounds
	z           scaled.Number // of the answer: that of the best estimate, or a bound that it is outside of
	outside     float64       // how far the best estimate is outside of the bounds where that is beyond what it states, nats
	apart       float64       // the uncertainty that another family\'s contradiction makes, nats; 0: none contradicts
	proven      float64       // how far the bounds are at most, +Inf without two
}

// climb adds the estimates whose parts are all there, one after the other, until the sequence has
// settled. Estimates after an incomplete one count only if no more values will come (last).
func climb(in Input, parts []part, last bool) *sequence {
	a := in.Assignment
	s := &sequence{best: -1, bp: a.Propagation, hard: a.Hard, unsure: a.Unsure, targets: a.Want.Targets}
	s.pool.delta = boundsDelta / float64(max(in.Sampling, 1))
	whole := true
	for k := range a.Plan.Estimates {
		e := &a.Plan.Estimates[k]
		own := parts[:len(e.Parts)]
		parts = parts[len(e.Parts):]

		if last && (e.Rule == btn.Pooled || e.Rule == btn.Bounding) { // any of them say something
			e, own, whole = arrived(e, own, whole)
		}
		r, complete := s.evaluate(e, own)
		if !complete {
			whole = false
			if !last {
				return s
			}
			continue
		}

		switch {
		case e.Rule == btn.Bounding:
			s.bounded = append(s.bounded, r)
		case e.Quality != nil && r.err != nil && k < len(a.Plan.Estimates)-1:
			s.refused = r
		default:
			s.estimates = append(s.estimates, r)
		}
		s.judge()
		if s.settled(a.Plan.Accuracy) {
			s.ended = endedSettled
			return s
		}
	}

	s.ended = endedComplete
	if !whole {
		s.ended = EndedDeadline
	}
	return s
}

// settled reports whether no further estimate is needed: the best one has a known quality, or truncated nothing, or both
// ln Z and the marginals have settled. ln Z settles if its uncertainty is within accuracy and follows from bounds, from
// enough sampled components, or from the estimate's own track, for truncated legs with another track of at least its level.
func (g *sequence) settled(accuracy float64) bool {
	if g.best < 0 {
		return false
	}

	best := g.estimates[g.best]
	if best.of.Quality != nil || best.lossless() && !g.unsure {
		return true
	}
	return g.total(accuracy) && g.marginalsSettled(accuracy)
}

// total reports whether ln Z is settled.
func (g *sequence) total(accuracy float64) bool {
	best := g.estimates[g.best]
	switch {
	case g.uncertainty == nil || *g.uncertainty > accuracy:
		return false
	case g.proven <= accuracy:
		return true
	case best.isPooled():
		return best.believed()
	case !g.moved:
		return false
	case best.isLogLinear():
		return true
	}

	for _, r := range g.estimates {
		if r.LogZ != nil && r.of.Rule == best.of.Rule && r.of.Track != best.of.Track && r.of.Level >= best.of.Level {
			return true
		}
	}
	return false
}
