package aggregate

// The value of one estimate: its parts by its rule.

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/judge"
	"github.com/basetensor/basetensor/internal/network/additive"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// estimate is an estimate of the plan with the values of its parts and what follows from them.
type estimate struct {
	judge.Estimate
	findings []finding       // the values of parts that find assignments
	alpha    []scaled.Number // weights of the parts, if the quality is known
	// isRoundingBounded reports whether all parts bound their rounding errors, so that Rounding bounds the error of the sum.
	isRoundingBounded bool
	err               *query.ErrorInfo // why there is no value; nil if there is one
}

// evaluate computes an estimate from the values of its parts: the sum Z of the parts that are shares of Z, and the findings of the parts
// that search assignments. If the quality of the estimate is known (e.Quality), sumKnown adds the shares. Otherwise the judge of its rule
// does (sumJudged), which may also use the estimates that were added to the sequence before. If a part or the sum fails, r.err is the
// error. isComplete is false if the values of some parts have not arrived; then the estimate is not to be used.
func (g *sequence) evaluate(e *btn.Estimate, values []partValue) (r *estimate, isComplete bool) {
	r = &estimate{Estimate: judge.Estimate{Plan: e}}
	if len(e.Parts) > 0 {
		r.EstimateResult = e.Parts[0].About().Result
	}
	r.Slices, r.Components = e.Slices, len(e.Parts)

	// Assignments go to findings, shares of Z to Parts.
	r.Parts = make([]btn.Value, 0, len(values)) // without those that find assignments
	for i := range values {
		p := &values[i]
		if !p.hasArrived {
			return r, false
		}
		if p.err != nil && r.err == nil {
			r.err = p.err
		}
		r.Flops += p.value.Flops
		if ask := e.Parts[i].About().Finds; ask != "" {
			r.findings = append(r.findings, finding{ask, p.value})
			r.Components-- // the part is no component of Z
		} else {
			r.Parts = append(r.Parts, p.value)
		}
	}

	// Z of the shares.
	switch {
	case r.err != nil: // of a part: there is no sum
	case e.Quality != nil:
		r.err = r.sumKnown(g.IsUnsure)
	default:
		r.err = g.sumJudged(r)
	}
	if r.err != nil {
		r.Failed = r.err.Message
	} else {
		r.LogZ = finite(r.Z.LogAbs())
	}
	return r, true
}

// sumJudged lets the judge of the estimate's rule combine the parts. It is for estimates of unknown quality, so a total that is 0 or not
// finite is an error. If the estimate is a bound (IsBound), there is no total: the judge keeps the bounds, and r.Z stays 0.
func (g *sequence) sumJudged(r *estimate) *query.ErrorInfo {
	j := g.judges.ForRule(r.Plan.Rule)
	if j == nil {
		return failure(fault.Internal, "%q is no rule of this version", r.Plan.Rule)
	}
	err := j.Add(&r.Estimate)
	switch {
	case err != nil: // of the judge; see below
	case r.IsBound: // no total to check
	case r.Z.IsZero():
		err = errors.New("the total is exactly 0, and an estimate cannot show that Z is 0")
	case !isFinite(r.Z.LogAbs()):
		err = fmt.Errorf("%w: the total is no finite number", additive.ErrNotFinite)
	}
	if err != nil { // FailedEstimate, unless the error has a code already
		return failure(fault.CodeOf(fault.Wrap(fault.FailedEstimate, err)), "%v", err)
	}
	return nil
}

// signDigits is the number of cancelled decimal digits from which on a negative total is put down to rounding, and not to the model.
// Measured: totals of 25 planted networks come out negative, at 3 to 36 digits. A quarter of it calls none a model of both signs, four
// times also the totals of 11 to 36 digits, which a float64 does not have, decision 20.
const signDigits = 10

// sumKnown computes Z̃ = Σ_i α_i Z_i (the linear rule), its cancelled digits and its rounding error, for an estimate of known quality. It
// returns an error if Z̃ is not finite, if its rounding error is too large, or if checkSign does not accept its sign. isUnsure means that
// contractions may have lost terms.
func (r *estimate) sumKnown(isUnsure bool) *query.ErrorInfo {
	r.alpha = r.Plan.Weights()[:len(r.Parts)]
	z := make([]scaled.Number, len(r.Parts))
	for i, v := range r.Parts {
		z[i] = v.Z
	}

	r.Digits = math.NaN() // not known until there is a sum
	sum, err := additive.Sum(r.alpha, z)
	switch {
	case errors.Is(err, additive.ErrNotFinite) && slices.ContainsFunc(z, hasOverflown):
		return failure(fault.Unsupported, "%v: a table left the range of float64 on the way", err)
	case errors.Is(err, additive.ErrNotFinite):
		return failure(fault.Internal, "%v", err)
	}

	r.Z = sum.Z
	_, r.Digits = cancelledDigits(r.alpha, r.Parts)
	r.sumRounding()
	if r.Rounding > policy.LeastCertain && !r.Z.IsZero() {
		return failure(fault.FailedEstimate, "%v: rounding among terms of both signs is up to %.1g of the total, %s",
			additive.ErrCancelled, r.Rounding, additive.Decimal(r.Z))
	}
	return r.checkSign(err, isUnsure) // err may be that the sum is negative
}

// checkSign returns an error if the total of an estimate of known quality is 0 or negative without proof that Z is. sumErr is the error of
// additive.Sum, nil if there is none. isUnsure means that contractions may have lost terms.
//
//   - A total of 0 is right if the estimate is exact and nothing casts doubt on it.
//   - A negative total is always an error. If the estimate is exact, without doubt and with few cancelled digits, the model is at fault.
func (r *estimate) checkSign(sumErr error, isUnsure bool) *query.ErrorInfo {
	isExact, doubt := r.Plan.Quality.Exact, firstDoubt(r.Parts)
	mayLackTerms := doubt != "" || isUnsure
	isModelAtFault := isExact && !mayLackTerms && r.Digits < signDigits // if the total is negative
	switch {
	case r.Z.IsZero() && sumErr == nil && isExact && (mayLackTerms || r.Rounding > 0): // Rounding: terms may have cancelled by it
		return failure(
			fault.Unsupported, "the total came out as 0, which proves nothing: %s",
			cmp.Or(doubt, "terms may be missing"),
		)
	case errors.Is(sumErr, additive.ErrNegative) && isModelAtFault:
		return failure(
			fault.BadInput, "the total is negative: not a probability model (Z is %s)",
			additive.Decimal(r.Z),
		)
	case sumErr != nil:
		return failure(fault.FailedEstimate, "%v", sumErr)
	case r.Z.IsZero() && !isExact:
		return failure(
			fault.FailedEstimate,
			"the total of %d components is exactly 0, and an estimate cannot show that Z is 0",
			len(r.Parts),
		)
	}
	return nil
}

// sumRounding fills in Rounding, the relative error of Z that follows from the errors that the parts state: Σ_i |α_i| error_i / |Z|. It is
// +Inf if Z is 0 and an error is not. Parts that state no error count as 0 there; isRoundingBounded is false if one of them is not 0.
func (r *estimate) sumRounding() {
	sum := scaled.Number{}
	r.isRoundingBounded = len(r.Parts) > 0
	for i, v := range r.Parts {
		switch {
		case v.Rounding != nil:
			sum = sum.Add(v.Rounding.Mul(r.alpha[i].Abs()))
		case !v.Z.IsZero():
			r.isRoundingBounded = false
		}
	}
	switch {
	case sum.IsZero():
		r.Rounding = 0
	case r.Z.IsZero():
		r.Rounding = math.Inf(1)
	default:
		r.Rounding = sum.Div(r.Z.Abs()).Float64()
	}
}
