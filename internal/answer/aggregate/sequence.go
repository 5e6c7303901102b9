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

// Settled reports whether a query needs no more values. That is so if
//
//   - the query has failed
//   - its plan grows, which means that it is a sequence of estimates, and the uncertainty of its complete estimates is within the plan's
//     accuracy, or values contradict each other
//   - its plan has an estimate of known quality, and all values are there, or a search has proved the assignment that is all the query
//     wants.
func Settled(in Input) bool {
	a := in.Assignment
	switch {
	case a != nil && a.Error != nil:
		return true
	case a == nil || a.Plan == nil:
		return false
	case !a.Plan.Grows():
		return len(in.Values) >= a.Plan.PartCount() || in.isProvedBySearch()
	}

	parts, broken := collect(in.Query, a.Plan.PartCount(), sortedUnits(in.Values))
	const isLast = false // more values may come
	return broken != nil || evaluateSequence(in, parts, isLast).ended == endedSettled
}

// sequence is the estimates of a plan that have all their values, and what follows from them.
type sequence struct {
	*judge.Sequence
	judges    judge.Judges
	evaluated []*estimate // all estimates that are no bounds, with a value or an error
	// refused is an estimate of known quality that has an error although further estimates follow it. It is nil if there is none.
	refused  *estimate
	byJudged map[*judge.Estimate]*estimate // from an estimate as judges know it to the whole one
	ended    string                        // why the sequence ended, for answers; "" if it has not

	best       *estimate         // the answer; nil if there is none
	answer     judge.Statement   // of the best estimate's method, after the other methods and bounds; zero if its quality is known
	statements []judge.Statement // of the methods that have a value, unless one is complete
	answerZ    scaled.Number     // of the answer: that of the best estimate, or a bound if the estimate is outside of it
	outside    float64           // how far the best estimate is outside of the bounds, nats; 0 if not by more than it states
	// contradicted is the uncertainty that another method's contradiction makes, nats; 0 if none contradicts.
	contradicted float64
	proven       float64 // the distance of the answer from the farther bound, nats; +Inf without two bounds
}

// newSequence returns the sequence of a query, without estimates. sampling is the number of queries of the job that have drawn components:
// the probability that a sampled bound fails is divided among them.
func newSequence(a *btn.Assignment, sampling int) *sequence {
	s := &sequence{byJudged: map[*judge.Estimate]*estimate{}, Sequence: &judge.Sequence{
		Propagation: a.Propagation, IsHard: a.Hard, IsUnsure: a.Unsure, Targets: a.Want.Targets,
		Accuracy: a.Plan.Accuracy, FailureProbability: judge.BoundsDelta / float64(max(sampling, 1)),
	}}
	s.judges = judge.New(s.Sequence)
	return s
}

// evaluateSequence evaluates the estimates of a plan one after the other, until they have settled: until the uncertainty is within the
// accuracy of the plan. parts are the values of all parts of the plan. It stops at the first estimate that lacks values, unless no more
// values will come (isLast). Then it skips that estimate, or uses the values that are there, if the rule by which the estimate combines
// its parts allows that.
func evaluateSequence(in Input, parts []partValue, isLast bool) *sequence {
	a := in.Assignment
	s := newSequence(a, in.Sampling)
	hasAll := true
	for k := range a.Plan.Estimates {
		e := &a.Plan.Estimates[k]
		values := parts[:len(e.Parts)]
		parts = parts[len(e.Parts):]
		if isLast && s.takesAnyParts(e) {
			if reduced, arrived, ok := arrivedParts(e, values); ok { // some values are missing
				e, values, hasAll = reduced, arrived, false
			}
		}

		r, isComplete := s.evaluate(e, values)
		if !isComplete {
			hasAll = false
			if !isLast {
				return s
			}
			continue
		}
		s.add(r, k == len(a.Plan.Estimates)-1) // whether it is the last one of the plan
		s.decide()
		if s.isSettled() {
			s.ended = endedSettled
			return s
		}
	}

	s.ended = endedComplete
	if !hasAll {
		s.ended = EndedDeadline
	}
	return s
}

// takesAnyParts reports whether an estimate of unknown quality can be made from any of its parts.
func (g *sequence) takesAnyParts(e *btn.Estimate) bool {
	j := g.judges.ForRule(e.Rule)
	return e.Quality == nil && j != nil && j.AcceptsMissingParts()
}

// add adds an evaluated estimate to the sequence. A bound is known to its judge only. An estimate of known quality that has an error is set
// aside as refused, unless it is the last one of the plan (isLast).
func (g *sequence) add(r *estimate, isLast bool) {
	switch {
	case r.IsBound:
	case r.Plan.Quality != nil && r.err != nil && !isLast:
		g.refused = r
	default:
		g.evaluated = append(g.evaluated, r)
		g.Estimates = append(g.Estimates, &r.Estimate)
		g.byJudged[&r.Estimate] = r
	}
}

// arrivedParts returns a copy of an estimate that has only the parts whose values have arrived, and these values. ok is false if all values
// or none have arrived.
func arrivedParts(e *btn.Estimate, values []partValue) (reduced *btn.Estimate, arrived []partValue, ok bool) {
	reduced = new(btn.Estimate)
	*reduced = *e
	reduced.Parts = nil
	for i := range values {
		if values[i].hasArrived {
			reduced.Parts, arrived = append(reduced.Parts, e.Parts[i]), append(arrived, values[i])
		}
	}
	return reduced, arrived, len(arrived) > 0 && len(arrived) < len(values)
}

// isSettled reports whether no further estimate is needed. That is so if the best one has a known quality, or is complete (it dropped
// nothing), or if these three hold:
//
//   - the uncertainty of ln Z is within the accuracy
//   - the farther bound on ln Z is within the accuracy (proven), or the statement of the method says that it may settle without that
//   - the marginals have settled.
func (g *sequence) isSettled() bool {
	switch u := g.answer.Uncertainty; {
	case g.best == nil:
		return false
	case g.best.Plan.Quality != nil || g.answer.IsComplete:
		return true
	case u == nil || *u > g.Accuracy:
		return false
	}
	isTotalSettled := g.proven <= g.Accuracy || g.answer.MaySettle
	return isTotalSettled && g.areMarginalsSettled()
}

// CountSampling returns the number of assignments whose plans draw random samples. Bounds on ln Z from samples hold with a probability. As
// those of all these assignments are to hold together, the probability of failure that each may have is divided by this number.
func CountSampling(assignments []btn.Assignment) int {
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
