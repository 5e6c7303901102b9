package aggregate

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// The answer to one query.

// stage is this stage's name in errors.
const stage = "aggregator"

// unknownQuality is the warning on every answer that is not exact.
const unknownQuality = "this is an estimate of unknown quality: neither the residual nor the explained fraction says how far ln Z is off, and the certificate's interval is usually vacuous"

// Input is what is known about one query when all its values have arrived.
type Input struct {
	Job           string
	Query         int
	Assignment    *btn.Assignment    // of this query
	Decomposition *btn.Decomposition // the assigned one; nil if the assignment has an error
	Values        []btn.UnitValue    // of this query, in any order; identical duplicates are fine
	EvidenceFile  string             // empty if there was none
	// Deadline says that no more values will come: a query that grows is answered with what is there.
	Deadline bool
}

// Result answers a query: Z̃ = Σ_i α_i Z_i (Lemma 5) with its measures of trust, or the reason why there is no number.
// It never fails; everything that goes wrong is in the result, and no field holds NaN or Inf. TimingsMS is empty, for the
// caller to fill.
//
//   - Status ok: LogZ in nats and Log10Z; or Zero, if the decomposition is exact and every term is exactly 0, beyond doubt.
//   - unsupported: the total came out as 0, and terms may be missing.
//   - failed_estimate: the total is negative, lost all its digits, or is an inexact 0.
//   - bad_input: an exact total is negative, and not by rounding: the factors are no probability model.
//   - internal: values are missing, contradict each other, belong elsewhere or are not finite.
//   - the assignment's or a unit's own error (of the lowest component, if several failed).
//
// The same input gives the same result whatever the order of Values.
func Result(in Input) btn.Result {
	r, _ := answer(in)
	return r
}

// answer is Result, and Z where the result is ok.
func answer(in Input) (btn.Result, scaled.Number) {
	if in.Decomposition != nil && in.Decomposition.Growth != nil && in.Assignment != nil && in.Assignment.Error == nil {
		return grown(in)
	}
	r := start(in)
	parts, failed := values(in)
	var z scaled.Number
	if failed == nil {
		r.Run = run(in.Decomposition, parts)
		z, failed = total(&r, in.Decomposition, in.Assignment, parts)
	}
	if failed != nil {
		r.Status, r.Error = "error", failed
		return r, z
	}
	r.Status, r.Exact = "ok", in.Decomposition.Exact && !in.Assignment.Unsure
	if doubt := doubts(in.Decomposition.Alpha, parts); doubt != "" {
		r.Exact = false
		r.Warnings = append(r.Warnings, "not marked exact: "+doubt)
	}
	if !r.Exact {
		r.Warnings = append(r.Warnings, unknownQuality)
	}
	return r, z
}

// doubts says why a total is not known to be exact: the first component's reason, or the digits that cancelled between them on top of
// those that did inside.
func doubts(alpha []scaled.Number, parts []btn.Value) string {
	if doubt := first(parts); doubt != "" {
		return doubt
	}
	if between, all := cancelled(alpha, parts); all > policy.TrustedDigits && between > policy.WithinDigits {
		return fmt.Sprintf("%.1f digits cancel in the components and between them", all)
	}
	return ""
}

// first is the reason of the first component that has one.
func first(parts []btn.Value) string {
	for _, v := range parts {
		if v.Doubt != "" {
			return v.Doubt
		}
	}
	return ""
}

// cancelled returns the digits that cancel between components, and those with what cancelled in them: log10 of Σ|terms| over |Z|.
func cancelled(alpha []scaled.Number, parts []btn.Value) (between, all float64) {
	z, terms := make([]scaled.Number, len(parts)), make([]scaled.Number, len(parts))
	for i, v := range parts {
		z[i], terms[i] = v.Z, v.Z.Mul(scaled.FromLog(v.Digits*math.Ln10))
	}
	total := scaled.SumProducts(alpha, z)
	return lostDigits(total, scaled.SumAbsProducts(alpha, z)), lostDigits(total, scaled.SumAbsProducts(alpha, terms))
}

// run sums what the components took.
func run(d *btn.Decomposition, parts []btn.Value) *btn.Run {
	var r btn.Run
	for i, v := range parts {
		r.Flops += v.Flops
		if q := d.Components[i]; d.Contraction != nil && len(d.Contraction.Groups) == 0 && q.Class == btn.ClassBase && q.Order == nil {
			r.Slices += float64(max(0, q.To-q.From))
		}
	}
	r.Flops = min(r.Flops, math.MaxFloat64)
	return &r
}

// start fills what does not depend on the values.
func start(in Input) btn.Result {
	r := btn.Result{Job: in.Job, Query: in.Query, Warnings: []string{}, Cache: "off", TimingsMS: map[string]float64{}}
	if in.EvidenceFile != "" {
		r.EvidenceFile = &in.EvidenceFile
	}
	if d := in.Decomposition; d != nil {
		r.Method, r.Components = d.Method, len(d.Components)
		r.Warnings = append(r.Warnings, d.Warnings...)
		quality(&r, d)
	}
	if a := in.Assignment; a != nil {
		r.Plan, r.Relearned = finitePlan(a.Plan), a.Relearned
		r.Warnings = append(r.Warnings, a.Warnings...)
		if a.Cache != "" {
			r.Cache = a.Cache
		}
	}
	return r
}

// quality fills how well the decomposition fits B: ρ = 0 and ln(1−ρ) = 0 by definition where it is exact.
func quality(r *btn.Result, d *btn.Decomposition) {
	if d.Exact {
		r.Residual, r.LnExplained = finite(0), finite(0)
		return
	}
	r.Residual, r.LnExplained, r.ConditionGram = finite(d.Residual), finite(d.LnExplained), finite(d.ConditionGram)
}

// values returns the value of every component, or why there are none.
func values(in Input) ([]btn.Value, *btn.ErrorInfo) {
	d := in.Decomposition
	switch {
	case in.Assignment == nil:
		return nil, failure(fault.Internal, "query %d has no assignment", in.Query)
	case in.Assignment.Error != nil:
		e := *in.Assignment.Error
		return nil, &e
	case d == nil:
		return nil, failure(fault.Internal, "query %d has no decomposition", in.Query)
	case in.Deadline && len(in.Values) < len(d.Components):
		return nil, failure(fault.Deadline, "the deadline came before all components were contracted")
	case len(d.Alpha) != len(d.Components):
		return nil, failure(fault.Internal, "the decomposition has %d components and %d weights", len(d.Components), len(d.Alpha))
	}
	return collect(in.Query, len(d.Components), in.Values)
}

// total sums the components, fills the numbers of the answer, and returns Z.
func total(r *btn.Result, d *btn.Decomposition, a *btn.Assignment, parts []btn.Value) (scaled.Number, *btn.ErrorInfo) {
	none := scaled.Number{}
	z, m, together := make([]scaled.Number, len(parts)), make([]*btn.Marginals, len(parts)), make([]*btn.Marginals, len(parts))
	for i, v := range parts {
		z[i], m[i], together[i] = v.Z, v.Marginals, v.Joint
	}
	e, err := Sum(d.Alpha, z)
	switch {
	case errors.Is(err, ErrNotFinite) && slices.ContainsFunc(z, overflown):
		return none, failure(fault.Unsupported, "%v: a table left the range of float64 on the way", err)
	case errors.Is(err, ErrNotFinite):
		return none, failure(fault.Internal, "%v", err)
	}
	digits := e.CancellationDigits
	if err == nil || !errors.Is(err, ErrNotFinite) {
		_, digits = cancelled(d.Alpha, parts)
	}
	r.CancellationDigits = finite(digits)
	switch doubt := first(parts); {
	case e.Total.IsZero() && err == nil && d.Exact && (doubt != "" || a.Unsure):
		return none, failure(fault.Unsupported, "the total came out as 0, which proves nothing: %s", cmp.Or(doubt, "terms may be missing"))
	case errors.Is(err, ErrNegative) && d.Exact && digits < policy.SignDigits && doubt == "" && !a.Unsure:
		return none, failure(fault.BadInput, "the total is negative: not a probability model (Z is %s)", decimal(e.Total))
	case err != nil:
		return none, failure(fault.FailedEstimate, "%v", err)
	case e.Total.IsZero() && !d.Exact:
		return none, failure(fault.FailedEstimate, "the total of %d components is exactly 0, and an estimate cannot show that Z is 0", len(z))
	case e.Total.IsZero():
		r.Zero = true
		return none, nil
	}
	p, warning, err := marginals(d.Alpha, m)
	if err != nil {
		return none, failure(fault.Internal, "%v", err)
	}
	if r.Marginals = p; warning != "" {
		r.Warnings = append(r.Warnings, warning)
	}
	if r.Joint, warning, err = joint(d.Alpha, together, a.Joint); err != nil {
		return none, failure(fault.Internal, "%v", err)
	}
	if warning != "" {
		r.Warnings = append(r.Warnings, warning)
	}
	r.LogZ, r.Log10Z = finite(e.Total.LogAbs()), finite(e.Total.Log10Abs())
	if !d.Exact {
		r.Certificate = certificate(*r.LogZ, d.LnNormError, a.LnLinks)
	}
	return e.Total, nil
}

// overflown reports whether a value is what float64 makes of too large a number.
func overflown(z scaled.Number) bool { return math.IsInf(z.Mant, 0) }

// finitePlan returns a copy of the plan fit for JSON: a cost beyond float64 is its largest value, a plan with NaN is none.
func finitePlan(p *btn.Cost) *btn.Cost {
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

// finitePropagation returns a copy fit for JSON: a change beyond float64 is its largest value, values that are no numbers are
// left out.
func finitePropagation(p *btn.Propagation) *btn.Propagation {
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
func failure(code fault.Code, format string, args ...any) *btn.ErrorInfo {
	return &btn.ErrorInfo{Code: code, Message: fmt.Sprintf(format, args...), Stage: stage}
}
