// Package aggregate turns the values of the parts of a plan into the total of a demand: it adds them up (Lemma 5), lets the methods judge
// their estimates, and states how right the answer is.
package aggregate

import (
	"cmp"
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/network/additive"
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

// Input is what is known about one demand when its values have arrived.
type Input struct {
	Job        string
	Query      int             // position of the demand among those of the job
	Assignment *btn.Assignment // of this demand
	Values     []btn.UnitValue // of this demand, in any order; identical duplicates are fine

	// Sampling is how many demands of the job have sampled components: their bounds hold together. 0 is taken for 1.
	Sampling int

	// Deadline says that no more values will come: a demand that grows is answered with those that
	// are there.
	Deadline bool
}

// Total is what the values of a demand add up to: Z, and what is wanted beside it, as far as it is there.
type Total struct {
	// Result has what all answers share: status, ln Z, trust, method, work. It answers no question.
	query.Result
	Z    scaled.Number // where the status is ok and Z is not left open
	Want *btn.Want     // what was wanted

	// Marginals are P(x_v = a | evidence) of the variables wanted. MarginalUncertainty is the largest error of one.
	// It is nil if it is 0 or not known.
	Marginals           [][]float64
	MarginalUncertainty *float64
	// Joint are the cells of the joint marginal, the last variable fastest, and Shape the domains of its variables.
	Joint []float64
	Shape []int
	// Derivatives are ∂Z/∂θ, core by core, of Sizes numbers each. Target is the sum of the terms of Z that have the target value, and
	// TargetDerivatives are its derivatives.
	Derivatives, TargetDerivatives []scaled.Number
	Sizes                          []int
	Target                         scaled.Number
	// Found are the most probable assignments, by kind.
	Found map[btn.Ask]*btn.Found
	// Samples are draws, a value per variable. Weights are theirs if they do not all have the same; they sum to 1. Effective is 1/Σ w² then.
	Samples   [][]int
	Weights   []float64
	Effective *float64
	// Cases is what cases add up to.
	Cases *btn.CasesValue
	// Conflict has observations that contradict each other, if Z is 0 and it was found out.
	Conflict *query.Conflict
}

// Add adds up the values of a demand: Z̃ = Σ_i α_i Z_i (Lemma 5) with its measures of trust, or the reason why
// there is no number. It never fails; everything that goes wrong is in the result, and no field
// holds NaN or Inf. TimingsMS is empty, for the caller to fill.
//
//   - Status ok: LogZ in nats and Log10Z; or Zero, if the decomposition is exact and every term is
//     exactly 0, beyond doubt.
//   - unsupported: the total came out as 0, and terms may be missing.
//   - failed_estimate: the total is negative, lost all its digits, or is an inexact 0.
//   - bad_input: an exact total is negative, and not by rounding: the factors are no probability
//     model.
//   - internal: values are missing, contradict each other, belong elsewhere or are not finite.
//   - the assignment's or a unit's own error (of the lowest component, if several failed).
//
// The same input gives the same result whatever the order of Values.
func Add(in Input) Total {
	t := start(in)
	r := &t.Result
	fail := func(e *query.ErrorInfo) Total {
		r.Status = query.StatusError
		r.Error = e
		return Total{Result: *r, Want: t.Want}
	}

	// The values, and the estimates that are complete.
	parts, failed := values(in)
	if early, ok := in.explained(t, parts, failed != nil); ok {
		return early
	}
	if failed != nil {
		return fail(failed)
	}
	s := climb(in, parts, true)
	if s.ended == EndedDeadline && !in.Deadline {
		return fail(
			failure(
				fault.Internal, "values are missing, and the estimates there are have not settled",
			),
		)
	}

	s.took(r)
	var last *estimate
	if n := len(s.evaluated); n > 0 {
		last = s.evaluated[n-1]
	}
	if r := s.refused; r != nil && (s.best == nil || r.err.Code == fault.BadInput) { // nothing else is there, or the model is at fault
		last = r
	}
	known := last != nil && last.Plan.Quality != nil
	switch {
	case !in.Assignment.Plan.Grows():
	case known: // as if it had been alone
		quality(r, last.Plan.Quality)
		r.Components, r.Propagation = last.Components, nil
	default:
		r.Ended = s.ended
		for _, e := range s.evaluated {
			r.Estimates = append(r.Estimates, e.EstimateResult)
		}
		if s.refused != nil {
			r.Warnings = append(r.Warnings, "the exact way has no answer: "+s.refused.err.Message)
		}
		r.Warnings = append(r.Warnings, s.warnings()...)
	}

	if last == nil {
		return fail(failure(fault.Deadline, "the deadline came before the first estimate"))
	}
	if known && last.err != nil {
		r.CancellationDigits = finite(last.Digits)
	}
	if s.best == nil || known && last.err != nil {
		return fail(last.err)
	}

	// The best estimate is the answer.
	best := s.best
	r.Method = in.Assignment.Plan.By(best.Plan)
	r.LogZ = finite(s.z.LogAbs())
	r.Log10Z = finite(s.z.Log10Abs())
	r.CancellationDigits = finite(best.Digits)
	if best.Plan.Quality == nil {
		s.reportJudged(&t, in.Assignment)
	} else if failed := best.reportKnown(&t, in.Assignment); failed != nil {
		r.LogZ = nil
		r.Log10Z = nil
		return fail(failed)
	} else {
		s.z = best.Z
	}

	r.Status = query.StatusOK
	t.Z = s.z
	return t
}

// values returns the values of the plan's parts that have arrived, or why there is no answer; both where values are missing of a plan that
// does not grow.
func values(in Input) ([]part, *query.ErrorInfo) {
	a := in.Assignment
	switch {
	case a == nil:
		return nil, failure(fault.Internal, "query %d has no assignment", in.Query)
	case a.Error != nil:
		e := *a.Error
		return nil, &e
	case a.Plan == nil:
		return nil, failure(fault.Internal, "query %d has no plan", in.Query)
	}

	for _, e := range a.Plan.Estimates {
		if e.Alpha != nil && len(e.Alpha) != len(e.Parts) {
			return nil, failure(
				fault.Internal, "an estimate has %d components and %d weights", len(e.Parts),
				len(e.Alpha),
			)
		}
	}

	n := a.Plan.Len()
	sorted := sortedUnits(in.Values)
	parts, broken := collect(in.Query, n, sorted)
	if a.Plan.Grows() {
		return parts, broken
	}

	switch own := ownError(in.Query, sorted); {
	case in.Deadline && len(in.Values) < n:
		return parts, failure(
			fault.Deadline, "the deadline came before all components were contracted",
		)
	case own != nil:
		return nil, own
	case broken != nil:
		return nil, broken
	}

	for i := range parts {
		if !parts[i].there {
			return parts, failure(fault.Internal, "the value of component %d of %d is missing", i, n)
		}
	}
	return parts, nil
}

// took fills in what the complete estimates cost.
func (g *sequence) took(r *query.Result) {
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

// doubtedSamples is how far a probability from weighted samples may be off without a warning: that of 100 samples.
// Chosen.
const doubtedSamples = 0.1

// reportJudged fills in what the sequence says about its best estimate, whose quality is not known:
// uncertainty and marginals.
func (g *sequence) reportJudged(to *Total, a *btn.Assignment) {
	r := &to.Result
	r.Uncertainty = g.answer.Uncertainty
	r.Bounds = g.report()
	g.reportSamples(to, &a.Want)

	m := g.judgeMarginals()
	if m.Warning != "" {
		r.Warnings = append(r.Warnings, m.Warning)
	}
	if m.P == nil {
		return
	}
	to.Marginals, to.MarginalUncertainty = m.P, m.Uncertainty
	if to.MarginalUncertainty == nil {
		why := "no other estimate has marginals: nothing is known of their quality, and they need larger bonds than Z"
		if r.Uncertainty == nil {
			why = "nothing is known of the quality of the marginals, as of ln Z"
		}
		r.Warnings = append(r.Warnings, why)
	}
}

// reportSamples fills in the weighted samples that are wanted, if the best estimate has drawn some.
func (g *sequence) reportSamples(to *Total, want *btn.Want) {
	if want.Samples == 0 || !hasDraws(*g.best.Plan) {
		return
	}
	samples := g.judges.Of(g.best.Plan.Rule).Samples(&g.best.Estimate, want.Samples, want.Seed)
	to.Samples, to.Weights = samples.Values, samples.Weights
	if samples.Warning != "" {
		to.Result.Warnings = append(to.Result.Warnings, samples.Warning)
	}
	squares := 0.0
	for _, w := range to.Weights {
		squares += w * w
	}
	if squares > 0 {
		to.Effective = finite(1 / squares)
	}
	if off := sampleDoubt(to); off > doubtedSamples {
		to.Result.Warnings = append(to.Result.Warnings, fmt.Sprintf(
			"the samples count as %.0f of one weight, and some states may be missing: a probability from them may be off by %.2g",
			*to.Effective, off))
	}
}

// sampleDoubt is how far a probability may be off that weighted samples give: two standard errors of a half by as many as count, and the
// share of Z by which it may be off, as all of that may have one value. It is 0 without weighted samples.
func sampleDoubt(t *Total) float64 {
	if len(t.Weights) == 0 || t.Effective == nil {
		return 0
	}
	off := 1 / math.Sqrt(*t.Effective)
	if t.Result.Uncertainty == nil {
		return 1
	}
	return min(1, max(off, -math.Expm1(-*t.Result.Uncertainty)))
}

// reportKnown fills in what follows for an estimate whose quality is known: what was wanted beside Z, and
// whether it is exact, or else its certificate.
func (r *estimate) reportKnown(t *Total, a *btn.Assignment) *query.ErrorInfo {
	quality, to := r.Plan.Quality, &t.Result
	if len(r.Parts) == 0 { // an assignment alone
		return r.reportAssignments(t, &a.Want)
	}
	r.reportCases(t)
	if r.Z.IsZero() && r.possible() {
		return failure(fault.Unsupported, "the total came out as 0, and an assignment has a weight above 0: terms are missing")
	} else if r.Z.IsZero() {
		to.Zero = true
		to.LogZ = nil
		to.Log10Z = nil
		if len(r.Parts) == 1 {
			t.Conflict = r.Parts[0].Conflict
			if why := r.Parts[0].Why; why != "" {
				to.Warnings = append(to.Warnings, "Z is 0: "+why)
			}
		}
	} else if failed := r.reportMarginals(t, &a.Want); failed != nil {
		return failed
	} else if failed := r.reportDerivatives(t, &a.Want); failed != nil {
		return failed
	} else if failed := r.reportAssignments(t, &a.Want); failed != nil {
		return failed
	} else if !quality.Exact && first(r.Parts) == "" {
		to.Certificate = certificate(*to.LogZ, quality.LnNormError, a.LnLinks, r.Digits)
	}

	to.Exact = quality.Exact && !a.Unsure
	if doubt := r.doubts(to); doubt != "" {
		to.Exact = false
		to.Warnings = append(to.Warnings, "not marked exact: "+doubt)
	}

	lower := r.atLeast(t)
	switch {
	case !to.Exact && r.certified && quality.Exact && !a.Unsure && !to.Zero:
		r.reportRounding(t)
	case !to.Exact:
		to.Warnings = append(to.Warnings, unknownQuality)
		to.Bounds = cmp.Or(reportCertified(to.Certificate), reportHeaviest(lower))
	case !to.Zero:
		to.Bounds = reportExact(*to.LogZ, r.Rounding)
	}
	return nil
}

// reportMarginals fills in marginals and the joint marginal of a set, as far as the parts have
// them.
func (r *estimate) reportMarginals(to *Total, want *btn.Want) *query.ErrorInfo {
	each := make([]*btn.Marginals, len(r.Parts))
	together := make([]*btn.Marginals, len(r.Parts))
	for i, v := range r.Parts {
		each[i] = v.Marginals
		together[i] = v.Joint
	}

	p, warning, err := additive.Marginals(r.alpha, each, want.Targets)
	if err != nil {
		return failure(fault.Internal, "%v", err)
	}
	to.Marginals = p
	if warning != "" {
		to.Result.Warnings = append(to.Result.Warnings, warning)
	}

	to.Joint, to.Shape, warning, err = additive.Joint(r.alpha, together, want.Joint)
	if err != nil {
		return failure(fault.Internal, "%v", err)
	}
	if warning != "" {
		to.Result.Warnings = append(to.Result.Warnings, warning)
	}
	return nil
}

// trustedDigits may cancel in an exact total, in its components and between them: a sum of terms
// carries 13. withinDigits may cancel between components that have all the digits of an exact
// one.
// Chosen: an exact total then has ten digits.
const (
	trustedDigits = 3
	withinDigits  = 0.3
)

// doubts returns why a total is not known to be exact, or "": what its components say that they are off all together, where all say so;
// else the doubt of the first component that has one, or the digits that cancelled between the components on top of those that
// cancelled in them.
func (r *estimate) doubts(to *query.Result) string {
	if to.LogZ != nil && r.Rounding > exactRounding(*to.LogZ) {
		return fmt.Sprintf("by rounding and the fit of its components ln Z may be off by %.1g", r.Rounding)
	}
	if to.LogZ != nil && r.certified {
		return ""
	}
	if doubt := first(r.Parts); doubt != "" {
		return doubt
	}
	if between, all := cancelled(r.alpha, r.Parts); all > trustedDigits &&
		between > withinDigits {
		return fmt.Sprintf("%.1f digits cancel in the components and between them", all)
	}
	return ""
}

// first returns the doubt of the first component that has one.
func first(parts []btn.Value) string {
	for _, v := range parts {
		if v.Doubt != "" {
			return v.Doubt
		}
	}
	return ""
}

// cancelled returns the decimal digits that cancel between components, log10 (Σ_i |α_i Z_i| / |Z|),
// and all of them, with the digits d_i that cancelled in component i: log10 (Σ_i |α_i Z_i| 10^d_i /
// |Z|).
func cancelled(alpha []scaled.Number, parts []btn.Value) (between, all float64) {
	z := make([]scaled.Number, len(parts))
	terms := make([]scaled.Number, len(parts))
	for i, v := range parts {
		z[i] = v.Z
		terms[i] = v.Z.Mul(scaled.FromLog(v.Digits * math.Ln10))
	}

	total := scaled.SumProducts(alpha, z)
	between = additive.LostDigits(total, scaled.SumAbsProducts(alpha, z))
	all = additive.LostDigits(total, scaled.SumAbsProducts(alpha, terms))
	return between, all
}

// start fills in what does not depend on the values.
func start(in Input) Total {
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
		r.Components = p.Len() - descents(p)
		r.Warnings = append(r.Warnings, p.Warnings...)
		if !p.Grows() && len(p.Estimates) > 0 {
			quality(&r, p.Estimates[0].Quality)
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

// quality fills in how well an estimate fits B: the residual ρ, and ln(1−ρ). An exact one has 0 for
// both by definition.
func quality(r *query.Result, q *btn.Quality) {
	if q.Exact {
		r.Residual = finite(0)
		r.LnExplained = finite(0)
		return
	}
	r.Residual = finite(q.Residual)
	r.LnExplained = finite(q.LnExplained)
	r.ConditionGram = finite(q.ConditionGram)
}

// overflown reports whether a value exceeded the range of float64.
func overflown(z scaled.Number) bool { return math.IsInf(z.Mant, 0) }

// finiteCost returns a copy that JSON can hold: a cost beyond float64 becomes the largest float64.
// It returns nil if one is NaN.
func finiteCost(p *query.Cost) *query.Cost {
	if p == nil {
		return nil
	}

	q := *p
	for _, x := range []*float64{&q.Log2Table, &q.Flops, &q.Bytes} {
		if math.IsNaN(*x) {
			return nil
		}
		*x = max(-math.MaxFloat64, min(math.MaxFloat64, *x))
	}
	return &q
}

// finitePropagation returns a copy that JSON can hold: a change beyond float64 becomes the largest
// float64, and values that are not finite are left out.
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
