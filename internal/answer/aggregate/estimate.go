package aggregate

// The value of one estimate: its parts by its rule.

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/base/sampling"
	"github.com/basetensor/basetensor/internal/network/additive"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// estimate is an estimate of the plan with the values of its parts and what follows from them.
type estimate struct {
	query.EstimateResult
	of     *btn.Estimate
	z      scaled.Number   // Z̃
	parts  []btn.Value     // in the order of of.Parts, without those of descents
	found  []descended     // those, which come last
	alpha  []scaled.Number // weights of the parts, where the quality is known
	digits float64         // decimal digits that cancelled in the sum over the parts
	// rounds bounds the error that the parts say, by rounding of terms of both signs or on paper, relative to Z̃; 0: there is none. certified:
	// all of them say so.
	rounds    float64
	certified bool
	err       *query.ErrorInfo // why there is no z; nil if there is
	mean      sampling.Mean    // of sampled components
	shares    []*btn.Weights   // those of them that have marginals
}

// evaluate computes an estimate from the values of its parts, and of the sampled ones before it. It
// returns false if some have not arrived.
func (g *sequence) evaluate(e *btn.Estimate, parts []part) (*estimate, bool) {
	r := &estimate{of: e}
	if len(e.Parts) > 0 {
		r.EstimateResult = e.Parts[0].About().Result
	}
	r.Slices, r.Components = e.Slices, len(e.Parts)

	r.parts = make([]btn.Value, 0, len(parts))
	for i := range parts {
		p := &parts[i]
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
			r.parts = append(r.parts, p.value)
		}
	}

	if r.err == nil {
		r.err = r.sum(g)
	}

	if r.err != nil {
		r.Failed = r.err.Message
	} else {
		r.LogZ = finite(r.z.LogAbs())
	}
	return r, true
}

// sum combines the parts by the estimate's rule.
func (r *estimate) sum(g *sequence) *query.ErrorInfo {
	if r.of.Quality != nil {
		return r.known(g.unsure)
	}

	var err error
	switch r.of.Rule {
	case btn.LogLinear:
		err = r.logLinear()
	case btn.Pooled:
		err = r.pooled(&g.pool)
	case btn.Bounding:
		return g.bounds.add(r.parts, r.of.Parts)
	default:
		err = r.linear()
	}

	// A total that proves nothing is a failure: the quality of the estimate is not known.
	if err == nil && g.hard && r.contradicted() {
		err = errContradiction
	}
	if err == nil && r.z.IsZero() {
		err = errors.New("the total is exactly 0, and an estimate cannot show that Z is 0")
	}
	if err == nil && !isFinite(r.z.LogAbs()) {
		err = fmt.Errorf("%w: the total is no finite number", additive.ErrNotFinite)
	}

	if err != nil {
		return failure(fault.FailedEstimate, "%v", err)
	}
	return nil
}

// signDigits is the cancellation from which the sign of an exact total is put down to rounding,
// and not to the model.
// Measured: totals of 25 planted networks come out negative, at 3 to 36 digits. A quarter of it
// calls none a model of both signs, four times also the totals of 11 to 36 digits, which a float64
// does not have, decision 20.
const signDigits = 10

// known is the linear rule Z̃ = Σ_i α_i Z_i where the quality of the estimate is known: a total of
// 0 and one below 0 can be right then.
func (r *estimate) known(unsure bool) *query.ErrorInfo {
	exact := r.of.Quality.Exact
	r.alpha = r.of.Weights()[:len(r.parts)]
	alpha := r.alpha

	z := make([]scaled.Number, len(r.parts))
	for i, v := range r.parts {
		z[i] = v.Z
	}

	r.digits = math.NaN()
	e, err := additive.Sum(alpha, z)
	switch {
	case errors.Is(err, additive.ErrNotFinite) && slices.ContainsFunc(z, overflown):
		return failure(fault.Unsupported, "%v: a table left the range of float64 on the way", err)
	case errors.Is(err, additive.ErrNotFinite):
		return failure(fault.Internal, "%v", err)
	}

	r.z = e.Z
	_, r.digits = cancelled(alpha, r.parts)
	r.certify()
	if r.rounds > policy.LeastCertain && !r.z.IsZero() {
		return failure(fault.FailedEstimate, "%v: rounding among terms of both signs is up to %.1g of the total, %s",
			additive.ErrCancelled, r.rounds, additive.Decimal(r.z))
	}

	switch doubt := first(r.parts); {
	case e.Z.IsZero() && err == nil && exact && (doubt != "" || unsure || r.rounds > 0):
		return failure(
			fault.Unsupported, "the total came out as 0, which proves nothing: %s",
			cmp.Or(doubt, "terms may be missing"),
		)
	case errors.Is(
		err, additive.ErrNegative,
	) && exact && r.digits < signDigits && doubt == "" && !unsure:
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
	r.certified = len(r.parts) > 0
	for i, v := range r.parts {
		switch {
		case v.Rounding != nil:
			off = off.Add(v.Rounding.Mul(r.alpha[i].Abs()))
		case !v.Z.IsZero():
			r.certified = false
		}
	}
	switch {
	case off.IsZero():
		r.rounds = 0
	case r.z.IsZero():
		r.rounds = math.Inf(1)
	default:
		r.rounds = off.Div(r.z.Abs()).Float64()
	}
}

// errContradiction is the error of regions of constraints of which some allow no value at all: ln Z
// of the other regions says nothing then.
var errContradiction = errors.New(
	"the constraints of a region contradict each other or nearly so: Z may be 0, which " +
		"the exact way would show",
)

// contradicted reports whether the constraints of some region allow nothing.
func (r *estimate) contradicted() bool {
	return slices.ContainsFunc(
		r.parts, func(v btn.Value) bool { return v.Region != nil && v.Region.NonPositive > 0 },
	)
}

// linear is the rule Z̃ = Σ_s Z_s over slices s.
func (r *estimate) linear() error {
	discarded, rounding := 0.0, scaled.Number{}
	terms := make([]scaled.Number, len(r.parts))
	for i, v := range r.parts {
		terms[i] = v.Z
		if t := v.Truncation; t != nil {
			discarded = max(discarded, t.Discarded)
			r.Truncated = r.Truncated || t.Truncated
			r.PeakBytes = max(r.PeakBytes, t.Bytes)
			if t.Rounding != nil {
				rounding = rounding.Add(*t.Rounding)
			}
		} else if !v.Z.IsZero() {
			return fmt.Errorf("component %d does not say what it truncated", i)
		}
	}

	r.Discarded = finite(discarded)
	e, err := additive.Sum(additive.Ones(len(terms)), terms)
	r.z = e.Z
	r.digits = e.CancellationDigits
	if r.z.IsZero() {
		return err
	}
	if r.rounds = rounding.Div(r.z.Abs()).Float64(); err == nil && r.rounds >= 1 {
		err = fmt.Errorf("%w: rounding among terms of both signs is up to %s, the total %s",
			additive.ErrCancelled, additive.Decimal(rounding), additive.Decimal(r.z))
	}
	return err
}

// rounding is the error that rounding alone leaves in ln Z, nats.
func (r *estimate) rounding() float64 { return max(floor(*r.LogZ), -math.Log1p(-r.rounds)) }

// logLinear is the rule Z̃ = exp(ln Z_BP + Σ_r α_r ln(Z_r/Z_BP)) over regions r. Beside it LogZLinear is the logarithm of
// Z_BP (1 + Σ_r α_r (Z_r/Z_BP − 1)), as far as the parts' Linear says.
func (r *estimate) logLinear() error {
	r.Truncated = true
	lnBethe, lnSum, correction, isPossible := 0.0, 0.0, scaled.One, false
	for i, v := range r.parts { // some of the regions
		if v.Region == nil {
			if v.Z.IsZero() { // the network is impossible
				continue
			}
			return fmt.Errorf("component %d has no regions", i)
		}
		isPossible, lnBethe = true, v.Region.LnBethe
		lnSum += v.Region.LnSum
		correction = correction.Add(v.Region.Linear)
		r.Regions += v.Region.Regions
		r.PeakBytes = max(r.PeakBytes, 8*math.Exp2(v.Region.Widest))
	}
	if !isPossible {
		return nil
	}
	if linear := scaled.FromLog(lnBethe).Mul(correction); linear.Sign() > 0 {
		r.LogZLinear = finite(linear.LogAbs())
	}
	r.z = scaled.FromLog(lnBethe + lnSum)
	return nil
}

// marginals returns the marginals of all slices together, weighted by their Z, or a warning why
// there are none.
func (r *estimate) marginals(targets []int) ([][]float64, string) {
	var m []*btn.Marginals
	for _, v := range r.parts {
		if v.Marginals != nil {
			m = append(m, v.Marginals)
		} else if !v.Z.IsZero() {
			return nil, ""
		}
	}

	p, warning, err := additive.Marginals(additive.Ones(len(m)), m, targets)
	if err != nil {
		return nil, err.Error()
	}
	return p, warning
}
