package aggregate

// Sequences of estimates: what they say about each other, and when that is enough. An exact plan is
// a sequence of one.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/methods/judge"
	"github.com/basetensor/basetensor/internal/network/btn"
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
	*judge.Sequence
	judges    judge.Judges
	evaluated []*estimate // all but bounds
	bounded   []*estimate // those that are bounds alone
	refused   *estimate   // one whose quality would be known, without a value and with others behind it; nil: none
	of        map[*judge.Estimate]*estimate
	ended     string

	best       *estimate         // the answer; nil if there is none
	answer     judge.Statement   // of the best estimate's method, beside the other methods and bounds; zero if its quality is known
	statements []judge.Statement // of the methods that have a value, unless one is complete
	z          scaled.Number     // of the answer: that of the best estimate, or a bound that it is outside of
	outside    float64           // how far the best estimate is outside of the bounds if that is beyond what it states, nats
	// contradicted is the uncertainty that another method's contradiction makes, nats; 0 if none contradicts.
	contradicted float64
	proven       float64 // how far the bounds are at most, +Inf without two
}

// newSequence returns the sequence of a query without any estimates. sampling is how many queries of the job have drawn components.
func newSequence(a *btn.Assignment, sampling int) *sequence {
	s := &sequence{of: map[*judge.Estimate]*estimate{}, Sequence: &judge.Sequence{
		Propagation: a.Propagation, IsHard: a.Hard, IsUnsure: a.Unsure, Targets: a.Want.Targets,
		Accuracy: a.Plan.Accuracy, Delta: judge.BoundsDelta / float64(max(sampling, 1)),
	}}
	s.judges = judge.New(s.Sequence)
	return s
}

// climb adds the estimates whose parts are all there, one after the other, until the sequence has
// settled. Estimates after an incomplete one count only if no more values will come (last).
func climb(in Input, parts []part, last bool) *sequence {
	a := in.Assignment
	s := newSequence(a, in.Sampling)
	isWhole := true
	for k := range a.Plan.Estimates {
		e := &a.Plan.Estimates[k]
		values := parts[:len(e.Parts)]
		parts = parts[len(e.Parts):]

		if j := s.judges.Of(e.Rule); last && e.Quality == nil && j != nil && j.TakesAny() {
			e, values, isWhole = arrived(e, values, isWhole)
		}
		r, complete := s.evaluate(e, values)
		if !complete {
			isWhole = false
			if !last {
				return s
			}
			continue
		}

		switch {
		case r.IsBound:
			s.bounded = append(s.bounded, r)
		case e.Quality != nil && r.err != nil && k < len(a.Plan.Estimates)-1:
			s.refused = r
		default:
			s.evaluated = append(s.evaluated, r)
			s.Estimates = append(s.Estimates, &r.Estimate)
			s.of[&r.Estimate] = r
		}
		s.decide()
		if s.isSettled() {
			s.ended = endedSettled
			return s
		}
	}

	s.ended = endedComplete
	if !isWhole {
		s.ended = EndedDeadline
	}
	return s
}

// arrived returns the parts of an estimate whose values are there, if no more will come and any of them make an estimate. isWhole is false
// if some are missing.
func arrived(e *btn.Estimate, values []part, isWhole bool) (*btn.Estimate, []part, bool) {
	some := *e
	some.Parts = nil
	var there []part
	for i := range values {
		if values[i].there {
			some.Parts, there = append(some.Parts, e.Parts[i]), append(there, values[i])
		}
	}
	if len(there) == len(values) || len(there) == 0 {
		return e, values, isWhole
	}
	return &some, there, false
}

// isSettled reports whether no further estimate is needed: the best one has a known quality, or is complete, or both ln Z and the marginals
// have settled. ln Z settles if its uncertainty is within the accuracy, and follows from bounds or may settle by its method.
func (g *sequence) isSettled() bool {
	switch u := g.answer.Uncertainty; {
	case g.best == nil:
		return false
	case g.best.Plan.Quality != nil || g.answer.IsComplete:
		return true
	case u == nil || *u > g.Accuracy:
		return false
	}
	return (g.proven <= g.Accuracy || g.answer.MaySettle) && g.marginalsSettled()
}

// Sampling returns how many queries have drawn components, whose bounds hold together.
func Sampling(assignments []btn.Assignment) int {
	n := 0
	for _, a := range assignments {
		if a.Plan != nil && slices.ContainsFunc(a.Plan.Estimates, hasDraws) {
			n++
		}
	}
	return n
}

// hasDraws reports whether the components of an estimate are drawn at random.
func hasDraws(e btn.Estimate) bool {
	return len(e.Parts) > 0 && e.Parts[0].About().Sample.Components > 0
}
