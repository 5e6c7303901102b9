package aggregate

// What is reported of an answer whose quality is known: whether it is exact, its bounds, and what is wanted in addition to Z.

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

// reportKnown fills in the answer of an estimate whose quality is known: everything that the query wants in addition to Z, whether the
// answer is exact, and its bounds. It returns an error if the total is 0 but an assignment has a weight above 0, or if parts do not fit
// together.
func (r *estimate) reportKnown(t *Total, a *btn.Assignment) *query.ErrorInfo {
	if len(r.Parts) == 0 { // only an assignment is wanted
		return r.reportAssignments(t, &a.Want)
	}
	r.reportCases(t)
	if r.Z.IsZero() {
		if r.hasPossibleAssignment() {
			return failure(fault.Unsupported, "the total came out as 0, and an assignment has a weight above 0: terms are missing")
		}
		r.reportZero(t)
	} else if failed := r.reportWanted(t, a); failed != nil {
		return failed
	}
	r.reportTrust(t, a)
	return nil
}

// reportZero fills in that Z is 0, and the reason if the part of the estimate knows it.
func (r *estimate) reportZero(t *Total) {
	result := &t.Result
	result.Zero = true
	result.LogZ = nil
	result.Log10Z = nil
	if len(r.Parts) == 1 {
		t.Conflict = r.Parts[0].Conflict
		if why := r.Parts[0].Why; why != "" {
			result.Warnings = append(result.Warnings, "Z is 0: "+why)
		}
	}
}

// reportWanted fills in what the query wants in addition to a Z that is not 0, and the certificate of an estimate that is not exact.
func (r *estimate) reportWanted(t *Total, a *btn.Assignment) *query.ErrorInfo {
	if failed := r.reportMarginals(t, &a.Want); failed != nil {
		return failed
	}
	if failed := r.reportDerivatives(t, &a.Want); failed != nil {
		return failed
	}
	if failed := r.reportAssignments(t, &a.Want); failed != nil {
		return failed
	}
	// A part with a doubt, a reason to mistrust its digits, leaves the certificate's bound without proof.
	if quality := r.Plan.Quality; !quality.Exact && firstDoubt(r.Parts) == "" {
		t.Result.Certificate = certificate(*t.Result.LogZ, quality.LnNormError, a.LnLinks, r.Digits)
	}
	return nil
}

// reportTrust fills in whether the answer is exact, and its bounds:
//
//   - an exact ln Z, widened by rounding; no bounds if Z is 0
//   - ln Z with its known rounding error, if that is the only thing which makes the answer not exact
//   - otherwise the interval of the certificate, or without one the lower bound by the heaviest assignment found, and a warning.
func (r *estimate) reportTrust(t *Total, a *btn.Assignment) {
	quality, result := r.Plan.Quality, &t.Result
	result.Exact = quality.Exact && !a.Unsure // Unsure: the total may miss terms
	if doubt := r.doubt(result); doubt != "" {
		result.Exact = false
		result.Warnings = append(result.Warnings, "not marked exact: "+doubt)
	}

	lower := lnHeaviestAssignment(t)
	r.raiseToWeight(lower, t) // Z is at least the weight of one assignment
	isRoundedOnly := quality.Exact && r.isRoundingBounded && !a.Unsure
	switch {
	case !result.Exact && isRoundedOnly && !result.Zero:
		r.reportRounding(t)
	case !result.Exact:
		result.Warnings = append(result.Warnings, unknownQuality)
		result.Bounds = cmp.Or(certificateBounds(result.Certificate), assignmentBounds(lower))
	case !result.Zero:
		result.Bounds = exactBounds(*result.LogZ, r.Rounding)
	}
}

// reportMarginals fills in the marginals of variables and the joint marginal of a set of variables, if the parts have them: the weighted
// sums of those of the parts. It returns an error if the marginals of parts do not fit together.
func (r *estimate) reportMarginals(total *Total, want *btn.Want) *query.ErrorInfo {
	marginals := make([]*btn.Marginals, len(r.Parts))
	joints := make([]*btn.Marginals, len(r.Parts))
	for i, v := range r.Parts {
		marginals[i] = v.Marginals
		joints[i] = v.Joint
	}

	p, warning, err := additive.Marginals(r.alpha, marginals, want.Targets)
	if err != nil {
		return failure(fault.Internal, "%v", err)
	}
	total.Marginals = p
	if warning != "" {
		total.Result.Warnings = append(total.Result.Warnings, warning)
	}

	total.Joint, total.Shape, warning, err = additive.Joint(r.alpha, joints, want.Joint)
	if err != nil {
		return failure(fault.Internal, "%v", err)
	}
	if warning != "" {
		total.Result.Warnings = append(total.Result.Warnings, warning)
	}
	return nil
}

// Decimal digits that may cancel in an exact total, which is a sum of terms with 13 digits.
// Chosen: an exact total then has ten digits.
const (
	trustedDigits = 3   // in components and between them
	withinDigits  = 0.3 // between components that have all the digits of an exact one
)

// doubt returns why a total is not known to be exact, in words, or "" if it is:
//
//   - If the rounding error is known and too large for an exact answer, that is the reason.
//   - Otherwise there is no doubt if all components bound their rounding errors.
//   - Otherwise the reason is the doubt of the first component that has one, or the digits that cancelled between the components in
//     addition to those that cancelled inside of them.
func (r *estimate) doubt(result *query.Result) string {
	if result.LogZ != nil && r.Rounding > exactRounding(*result.LogZ) {
		return fmt.Sprintf("by rounding and the fit of its components ln Z may be off by %.1g", r.Rounding)
	}
	if result.LogZ != nil && r.isRoundingBounded {
		return ""
	}
	if doubt := firstDoubt(r.Parts); doubt != "" {
		return doubt
	}
	between, all := cancelledDigits(r.alpha, r.Parts)
	if all > trustedDigits && between > withinDigits {
		return fmt.Sprintf("%.1f digits cancel in the components and between them", all)
	}
	return ""
}

// firstDoubt returns the doubt of the first component that has one, "" if none has.
func firstDoubt(parts []btn.Value) string {
	for _, v := range parts {
		if v.Doubt != "" {
			return v.Doubt
		}
	}
	return ""
}

// cancelledDigits returns how many decimal digits of a total Z = Σ_i α_i Z_i have cancelled, with d_i digits inside component i before:
//
//	between = log10 (Σ_i |α_i Z_i| / |Z|)            between the components only
//	all     = log10 (Σ_i |α_i Z_i| 10^d_i / |Z|)     between them and inside
func cancelledDigits(alpha []scaled.Number, parts []btn.Value) (between, all float64) {
	z := make([]scaled.Number, len(parts))
	terms := make([]scaled.Number, len(parts)) // Z_i 10^d_i
	for i, v := range parts {
		z[i] = v.Z
		terms[i] = v.Z.Mul(scaled.FromLog(v.Digits * math.Ln10))
	}

	total := scaled.SumProducts(alpha, z)
	between = additive.LostDigits(total, scaled.SumAbsProducts(alpha, z))
	all = additive.LostDigits(total, scaled.SumAbsProducts(alpha, terms))
	return between, all
}

// reportQuality fills in how well an estimate B̃, a sum of components, fits the base tensor B: the residual ρ = ‖B − B̃‖²/‖B‖² and ln(1−ρ),
// which are both 0 for an exact one, and otherwise also the condition number of the Gram matrix, that of the components' scalar products.
func reportQuality(r *query.Result, q *btn.Quality) {
	if q.Exact {
		r.Residual = finite(0)
		r.LnExplained = finite(0)
		return
	}
	r.Residual = finite(q.Residual)
	r.LnExplained = finite(q.LnExplained)
	r.ConditionGram = finite(q.ConditionGram)
}
