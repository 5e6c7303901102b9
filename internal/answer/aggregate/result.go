// Package aggregate turns the values of the parts of a plan into the total of a demand: it adds them up (Lemma 5), lets the methods judge
// their estimates, and states how right the answer is.
package aggregate

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// The total of one demand.

// stage is the name of this stage in errors.
const stage = query.StageAggregate

// unknownQuality is the warning on every answer that is not exact.
const unknownQuality = "this is an estimate of unknown quality: neither the residual nor the " +
	"explained fraction says how far ln Z is off, and the certificate's interval is usually vacuous"

// Input is one demand with its plan and the values of the plan's parts that have arrived.
type Input struct {
	Job        string
	Query      int             // position of the demand among those of the job
	Assignment *btn.Assignment // of this demand
	Values     []btn.UnitValue // of this demand, in any order; identical duplicates are fine

	// Sampling is the number of demands of the job that have sampled components: all their bounds hold together. 0 is taken for 1.
	Sampling int

	// IsDeadlineOver is true if no more values will come since the deadline has come. A plan that grows is answered with the values that
	// have arrived.
	IsDeadlineOver bool
}

// Total is the sum of the values of a demand: Z, and everything else that is wanted, as far as the plan provides it.
type Total struct {
	// Result has what all answers share: status, ln Z, trust, method, work. It answers no question.
	query.Result
	Z    scaled.Number // set if the status is ok and Z is not left open
	Want *btn.Want     // what was wanted

	// Marginals are P(x_v = a | evidence) of the variables wanted. MarginalUncertainty is the largest error of one of these probabilities;
	// nil if it is 0 or not known.
	Marginals           [][]float64
	MarginalUncertainty *float64
	// Joint are the cells of the joint marginal, the last variable fastest, and Shape are the domains of its variables.
	Joint []float64
	Shape []int
	// Derivatives are ∂Z/∂θ, core by core; core c has Sizes[c] of them. Target is the sum of the terms of Z that have the target value, and
	// TargetDerivatives are its derivatives.
	Derivatives, TargetDerivatives []scaled.Number
	Sizes                          []int
	Target                         scaled.Number
	// Found are the most probable assignments, by kind.
	Found map[btn.Ask]*btn.Found
	// Samples are drawn assignments, a value for each variable. If they do not all count the same, Weights are their weights, which sum
	// to 1, and Effective is 1/Σ w², the number of equal samples that would be worth as much. Otherwise both are nil.
	Samples   [][]int
	Weights   []float64
	Effective *float64
	// Cases is the sum over the cases of the demand; nil if it has none.
	Cases *btn.CasesValue
	// Conflict lists observations that contradict each other. It is nil unless Z is 0 and they were found.
	Conflict *query.Conflict
}

// AddUp adds up the values of a demand: Z̃ = Σ_i α_i Z_i, where Z_i is the value of part i of an estimate and α_i its weight (Lemma 5). The
// total also has measures of trust, or the reason why there is no number. AddUp never fails: everything that goes wrong is in the result.
// No field holds NaN or Inf. TimingsMS is empty, for the caller to fill. The status and the error code of the result are:
//
//   - ok: LogZ in nats and Log10Z; or Zero, if the decomposition is exact and every term is exactly 0, beyond doubt.
//   - unsupported: the total came out as 0, and terms may be missing.
//   - failed_estimate: the total is negative, lost all its digits, or is an inexact 0.
//   - bad_input: an exact total is negative, and not by rounding: the factors are no probability
//     model.
//   - internal: values are missing, contradict each other, belong elsewhere or are not finite.
//   - the assignment's or a unit's own error (of the lowest component, if several failed).
//
// The same input gives the same result whatever the order of Values.
func AddUp(in Input) Total {
	t := newTotal(in)
	r := &t.Result // filled in below
	fail := func(e *query.ErrorInfo) Total {
		r.Status = query.StatusError
		r.Error = e
		return Total{Result: *r, Want: t.Want}
	}

	parts, failed := valuesByPart(in)
	if answer, ok := in.answerBySearch(t, parts, failed != nil); ok { // the demand is for one assignment, and a search has found it
		return answer
	}
	if failed != nil {
		return fail(failed)
	}
	const isLast = true // no more values will come
	s := evaluateSequence(in, parts, isLast)
	if s.ended == EndedDeadline && !in.IsDeadlineOver { // some values did not arrive, and it is not because of the deadline
		return fail(
			failure(
				fault.Internal, "values are missing, and the estimates there are have not settled",
			),
		)
	}

	// What an answer and a failure both report: the work, and the sequence of estimates.
	s.reportWork(r)
	decisive := s.decisive() // the estimate whose error counts if there is no answer
	if in.Assignment.Plan.Grows() {
		s.reportSequence(r, decisive)
	}
	if decisive == nil {
		return fail(failure(fault.Deadline, "the deadline came before the first estimate"))
	}

	// The answer, or the error of the decisive estimate. s.best is the estimate that is the answer.
	hasKnownFailed := decisive.Plan.Quality != nil && decisive.err != nil // this error is the query's, whatever estimate has a value
	if hasKnownFailed {
		r.CancellationDigits = finite(decisive.Digits)
	}
	if s.best == nil || hasKnownFailed {
		return fail(decisive.err)
	}
	if failed := s.reportBest(&t, in.Assignment); failed != nil {
		return fail(failed)
	}
	return t
}

// decisive returns the estimate that stands for the whole sequence: without an answer its error is the query's, and with one its quality,
// if known, is the answer's.
//
//   - If an exact estimate had an error and evaluation went on without it (refused), it is that one, provided that there is no answer after
//     all or that the error says that the model is at fault.
//   - Otherwise it is the last estimate that was evaluated, nil if there is none.
func (g *sequence) decisive() *estimate {
	if r := g.refused; r != nil && (g.best == nil || r.err.Code == fault.BadInput) {
		return r
	}
	if n := len(g.evaluated); n > 0 {
		return g.evaluated[n-1]
	}
	return nil
}

// reportSequence fills in what an answer reports of a plan that is a sequence of estimates: how the sequence ended, its estimates, and
// warnings. If the quality of the decisive estimate is known, it reports only that quality, as for a plan of a single estimate.
func (g *sequence) reportSequence(r *query.Result, decisive *estimate) {
	if decisive != nil && decisive.Plan.Quality != nil {
		reportQuality(r, decisive.Plan.Quality)
		r.Components, r.Propagation = decisive.Components, nil
		return
	}
	r.Ended = g.ended
	for _, e := range g.evaluated {
		r.Estimates = append(r.Estimates, e.EstimateResult)
	}
	if g.refused != nil {
		r.Warnings = append(r.Warnings, "the exact way has no answer: "+g.refused.err.Message)
	}
	r.Warnings = append(r.Warnings, g.warnings()...)
}

// reportBest fills in the answer: Z of the best estimate, and everything that follows from it. It returns an error, and leaves Z out, if
// something that is wanted cannot be given.
func (g *sequence) reportBest(t *Total, a *btn.Assignment) *query.ErrorInfo {
	r, best := &t.Result, g.best
	r.Method = a.Plan.MethodOf(best.Plan)
	r.LogZ = finite(g.answerZ.LogAbs())
	r.Log10Z = finite(g.answerZ.Log10Abs())
	r.CancellationDigits = finite(best.Digits)
	if best.Plan.Quality == nil {
		g.reportJudged(t, a)
	} else if failed := best.reportKnown(t, a); failed != nil {
		r.LogZ = nil
		r.Log10Z = nil
		return failed
	} else {
		g.answerZ = best.Z // reportKnown may have raised it
	}

	r.Status = query.StatusOK
	t.Z = g.answerZ
	return nil
}

// valuesByPart returns the value of each part of the plan, in the sequence of the parts. It returns an error if there can be no answer. A
// plan that grows is a sequence of estimates, each of which may be an answer; any other plan needs the values of all parts. If the only
// error is that some of these are missing, it returns the others as well: a search among the parts may still be the answer.
func valuesByPart(in Input) ([]partValue, *query.ErrorInfo) {
	if failed := checkAssignment(in); failed != nil {
		return nil, failed
	}
	n := in.Assignment.Plan.PartCount()
	sorted := sortedUnits(in.Values)
	parts, broken := collect(in.Query, n, sorted) // broken: values contradict each other or belong elsewhere
	if in.Assignment.Plan.Grows() {
		return parts, broken // values may be missing, or be errors
	}

	// A plan that does not grow needs all values, and none may be an error.
	switch partError := firstPartError(in.Query, sorted); {
	case in.IsDeadlineOver && len(in.Values) < n:
		return parts, failure(
			fault.Deadline, "the deadline came before all components were contracted",
		)
	case partError != nil:
		return nil, partError
	case broken != nil:
		return nil, broken
	}

	for i := range parts {
		if !parts[i].hasArrived {
			return parts, failure(fault.Internal, "the value of component %d of %d is missing", i, n)
		}
	}
	return parts, nil
}

// checkAssignment returns an error unless the query has an assignment with a plan that fits together: each estimate has a weight for each
// part, or no weights, which means that all are 1. If planning has failed, the error is that of the assignment.
func checkAssignment(in Input) *query.ErrorInfo {
	a := in.Assignment
	switch {
	case a == nil:
		return failure(fault.Internal, "query %d has no assignment", in.Query)
	case a.Error != nil:
		e := *a.Error
		return &e
	case a.Plan == nil:
		return failure(fault.Internal, "query %d has no plan", in.Query)
	}
	for _, e := range a.Plan.Estimates {
		if e.Alpha != nil && len(e.Alpha) != len(e.Parts) {
			return failure(
				fault.Internal, "an estimate has %d components and %d weights", len(e.Parts),
				len(e.Alpha),
			)
		}
	}
	return nil
}

// reportWork fills in the work of the evaluated estimates: flops, components and slices.
func (g *sequence) reportWork(r *query.Result) {
	r.Run = &query.Run{}
	r.Components = 0
	for _, e := range g.evaluated {
		r.Run.Flops += e.Flops
		r.Components += e.Components
		for _, p := range e.Plan.Parts {
			r.Run.Slices += float64(p.About().Slices)
		}
	}

	r.Run.Flops = min(r.Run.Flops, math.MaxFloat64)
}

// newTotal returns a total with everything that does not depend on the values of parts: the work and the warnings of the plan, how belief
// propagation ended, and the state of the cache. Cost and propagation are given without infinite numbers, which JSON cannot hold.
func newTotal(in Input) Total {
	r := query.Result{
		Job:       in.Job,
		Query:     in.Query,
		Warnings:  []string{},
		Cache:     btn.CacheOff,
		TimingsMS: map[string]float64{},
	}
	a := in.Assignment
	if a == nil {
		return Total{Result: r, Want: &btn.Want{}}
	}

	if p := a.Plan; p != nil {
		r.Method = p.Method
		r.Components = p.PartCount() - countFinders(p) // parts that find assignments are no components of Z
		r.Warnings = append(r.Warnings, p.Warnings...)
		if !p.Grows() && len(p.Estimates) > 0 {
			reportQuality(&r, p.Estimates[0].Quality)
		}
	}
	r.Plan = finiteCost(a.Cost)
	r.Relearned = a.Relearned
	r.Propagation = finitePropagation(a.Propagation)
	r.Warnings = append(r.Warnings, a.Warnings...)

	if a.Cache != "" {
		r.Cache = a.Cache
	}
	return Total{Result: r, Want: &a.Want}
}

// hasOverflown reports whether a value exceeded the range of float64.
func hasOverflown(z scaled.Number) bool { return math.IsInf(z.Mant, 0) }

// finiteCost returns a copy of a cost that JSON can hold: ±Inf becomes the largest float64 of that sign. It returns nil if the cost is nil,
// or if one of its numbers is NaN.
func finiteCost(cost *query.Cost) *query.Cost {
	if cost == nil {
		return nil
	}

	c := *cost
	for _, x := range []*float64{&c.Log2Table, &c.Flops, &c.Bytes} {
		if math.IsNaN(*x) {
			return nil
		}
		*x = max(-math.MaxFloat64, min(math.MaxFloat64, *x))
	}
	return &c
}

// finitePropagation returns a copy of p that JSON can hold. A change that is NaN or +Inf becomes the largest float64; a ln Z and phases
// that are not finite are left out. It returns nil if p is nil.
func finitePropagation(p *query.Propagation) *query.Propagation {
	if p == nil {
		return nil
	}

	q := *p
	if q.Change = min(math.MaxFloat64, q.Change); math.IsNaN(q.Change) {
		q.Change = math.MaxFloat64
	}

	if q.LogZ != nil {
		q.LogZ = finite(*q.LogZ)
	}

	q.Phases = nil
	for _, x := range p.Phases {
		if isFinite(x) {
			q.Phases = append(q.Phases, x)
		}
	}
	return &q
}

// failure returns an error of this stage.
func failure(code fault.Code, format string, args ...any) *query.ErrorInfo {
	return &query.ErrorInfo{Code: code, Message: fmt.Sprintf(format, args...), Stage: stage}
}
