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
	found []descended     // the values of parts that find assignments
	alpha []scaled.Number // weights of the parts, if the quality is known
	// certified reports whether all parts bound their errors: Rounding is of all of them then.
	certified bool
	err       *query.ErrorInfo // why there is no value; nil if there is one
}

// evaluate computes an estimate from the values of its parts, and of the drawn ones before it. complete is false if some have not arrived.
func (g *sequence) evaluate(e *btn.Estimate, values []part) (r *estimate, complete bool) {
	r = &estimate{Estimate: judge.Estimate{Plan: e}}
	if len(e.Parts) > 0 {
		r.EstimateResult = e.Parts[0].About().Result
	}
	r.Slices, r.Components = e.Slices, len(e.Parts)

	r.Parts = make([]btn.Value, 0, len(values))
	for i := range values {
		p := &values[i]
		if !p.there {
			return r, false
		}
		if p.err != nil && r.err == nil {
			r.err = p.err
		}
		r.Flops += p.value.Flops
		if ask := e.Parts[i].About().Finds; ask != "" {
			r.found = append(r.found, descended{ask, p.value})
			r.Components--
		} else {
			r.Parts = append(r.Parts, p.value)
		}
	}

	switch {
	case r.err != nil:
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

// sumJudged combines the parts by the estimate's rule. A total that proves nothing is a failure: the quality of the estimate is not known.
func (g *sequence) sumJudged(r *estimate) *query.ErrorInfo {
	j := g.judges.Of(r.Plan.Rule)
	if j == nil {
		return failure(fault.Internal, "%q is no rule of this version", r.Plan.Rule)
	}
	err := j.Add(&r.Estimate)
	switch {
	case err != nil || r.IsBound:
	case r.Z.IsZero():
		err = errors.New("the total is exactly 0, and an estimate cannot show that Z is 0")
	case !isFinite(r.Z.LogAbs()):
		err = fmt.Errorf("%w: the total is no finite number", additive.ErrNotFinite)
	}
	if err != nil {
		return failure(fault.CodeOf(fault.Wrap(fault.FailedEstimate, err)), "%v", err)
	}
	return nil
}

// signDigits is the cancellation from which the sign of an exact total is put down to rounding,
// and not to the model.
// Measured: totals of 25 planted networks come out negative, at 3 to 36 digits. A quarter of it
// calls none a model of both signs, four times also the totals of 11 to 36 digits, which a float64
// does not have, decision 20.
const signDigits = 10

// sumKnown is the linear rule Z̃ = Σ_i α_i Z_i where the quality of the estimate is known: a total of
// 0 and one below 0 can be right then.
func (r *estimate) sumKnown(unsure bool) *query.ErrorInfo {
	exact := r.Plan.Quality.Exact
	r.alpha = r.Plan.Weights()[:len(r.Parts)]
	alpha := r.alpha

	z := make([]scaled.Number, len(r.Parts))
	for i, v := range r.Parts {
		z[i] = v.Z
	}

	r.Digits = math.NaN()
	e, err := additive.Sum(alpha, z)
	switch {
	case errors.Is(err, additive.ErrNotFinite) && slices.ContainsFunc(z, overflown):
		return failure(fault.Unsupported, "%v: a table left the range of float64 on the way", err)
	case errors.Is(err, additive.ErrNotFinite):
		return failure(fault.Internal, "%v", err)
	}

	r.Z = e.Z
	_, r.Digits = cancelled(alpha, r.Parts)
	r.certify()
	if r.Rounding > policy.LeastCertain && !r.Z.IsZero() {
		return failure(fault.FailedEstimate, "%v: rounding among terms of both signs is up to %.1g of the total, %s",
			additive.ErrCancelled, r.Rounding, additive.Decimal(r.Z))
	}

	switch doubt := first(r.Parts); {
	case e.Z.IsZero() && err == nil && exact && (doubt != "" || unsure || r.Rounding > 0):
		return failure(
			fault.Unsupported, "the total came out as 0, which proves nothing: %s",
			cmp.Or(doubt, "terms may be missing"),
		)
	case errors.Is(
		err, additive.ErrNegative,
	) && exact && r.Digits < signDigits && doubt == "" && !unsure:
		return failure(
			fault.BadInput, "the total is negative: not a probability model (Z is %s)",
			additive.Decimal(e.Z),
		)
	case err != nil:
		return failure(fault.FailedEstimate, "%v", err)
	case e.Z.IsZero() && !exact:
		return failure(
			fault.FailedEstimate,
			"the total of %d components is exactly 0, and an estimate cannot show that Z is 0",
			len(z),
		)
	}
	return nil
}

// certify adds up what the parts say that they are off.
func (r *estimate) certify() {
	off := scaled.Number{}
	r.certified = len(r.Parts) > 0
	for i, v := range r.Parts {
		switch {
		case v.Rounding != nil:
			off = off.Add(v.Rounding.Mul(r.alpha[i].Abs()))
		case !v.Z.IsZero():
			r.certified = false
		}
	}
	switch {
	case off.IsZero():
		r.Rounding = 0
	case r.Z.IsZero():
		r.Rounding = math.Inf(1)
	default:
		r.Rounding = off.Div(r.Z.Abs()).Float64()
	}
}
