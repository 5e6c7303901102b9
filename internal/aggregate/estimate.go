package aggregate

// The value of one estimate: its parts by its rule.

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

// estimate is an estimate with what it is made of.
type estimate struct {
	btn.EstimateResult
	of     *btn.Estimate
	z      scaled.Number
	parts  []btn.Value
	alpha  []scaled.Number // of the parts, where the quality is known
	digits float64         // cancelled in the sum over its parts
	err    *btn.ErrorInfo
}

// evaluate makes an estimate of its parts. It reports false where some have not arrived.
func evaluate(e *btn.Estimate, hard, unsure bool, parts []part) (*estimate, bool) {
	r := &estimate{of: e, EstimateResult: btn.EstimateResult{Slices: e.Slices, Components: len(e.Parts)}}
	if len(e.Parts) > 0 {
		e.Parts[0].Describe(&r.EstimateResult)
	}
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
		r.parts = append(r.parts, p.value)
	}
	if r.err == nil {
		r.err = r.sum(hard, unsure)
	}
	if r.err != nil {
		r.Failed = r.err.Message
	} else {
		r.LogZ = finite(r.z.LogAbs())
	}
	return r, true
}

// sum applies the rule.
func (r *estimate) sum(hard, unsure bool) *btn.ErrorInfo {
	if r.of.Quality != nil {
		return r.known(unsure)
	}
	var err error
	if r.of.Rule == btn.LogLinear {
		err = r.logLinear()
	} else {
		err = r.linear()
	}
	if err == nil && hard && r.contradicted() {
		err = errContradiction
	}
	if err == nil && r.z.IsZero() {
		err = errors.New("the total is exactly 0, and an estimate cannot show that Z is 0")
	}
	if err != nil {
		return failure(fault.FailedEstimate, "%v", err)
	}
	return nil
}

// known is the linear rule where the quality of the estimate is known: a total of 0 and one below 0 can be right then.
func (r *estimate) known(unsure bool) *btn.ErrorInfo {
	exact := r.of.Quality.Exact
	r.alpha = r.of.Weights()
	alpha := r.alpha
	z := make([]scaled.Number, len(r.parts))
	for i, v := range r.parts {
		z[i] = v.Z
	}
	r.digits = math.NaN()
	e, err := Sum(alpha, z)
	switch {
	case errors.Is(err, ErrNotFinite) && slices.ContainsFunc(z, overflown):
		return failure(fault.Unsupported, "%v: a table left the range of float64 on the way", err)
	case errors.Is(err, ErrNotFinite):
		return failure(fault.Internal, "%v", err)
	}
	r.z = e.Total
	_, r.digits = cancelled(alpha, r.parts)
	switch doubt := first(r.parts); {
	case e.Total.IsZero() && err == nil && exact && (doubt != "" || unsure):
		return failure(fault.Unsupported, "the total came out as 0, which proves nothing: %s", cmp.Or(doubt, "terms may be missing"))
	case errors.Is(err, ErrNegative) && exact && r.digits < policy.SignDigits && doubt == "" && !unsure:
		return failure(fault.BadInput, "the total is negative: not a probability model (Z is %s)", decimal(e.Total))
	case err != nil:
		return failure(fault.FailedEstimate, "%v", err)
	case e.Total.IsZero() && !exact:
		return failure(fault.FailedEstimate, "the total of %d components is exactly 0, and an estimate cannot show that Z is 0", len(z))
	}
	return nil
}

// errContradiction is why regions of constraints fail that leave nothing possible: ln Z of the others says nothing then.
var errContradiction = errors.New("the constraints of a region contradict each other or nearly so: Z may be 0, which " +
	"the exact way would show")

// contradicted reports whether some region had nothing that is possible.
func (r *estimate) contradicted() bool {
	return slices.ContainsFunc(r.parts, func(v btn.Value) bool { return v.Region != nil && v.Region.NonPositive > 0 })
}

// linear is Z̃ = Σ_s Z_s over slices.
func (r *estimate) linear() error {
	discarded := 0.0
	terms := make([]scaled.Number, len(r.parts))
	for i, v := range r.parts {
		terms[i] = v.Z
		if t := v.Truncation; t != nil {
			discarded = max(discarded, t.Discarded)
			r.Truncated = r.Truncated || t.Truncated
			r.Reused = r.Reused || t.Reused
			if r.Relearned == "" {
				r.Relearned = t.Relearned
			}
			r.PeakBytes = max(r.PeakBytes, t.Bytes)
		} else if !v.Z.IsZero() {
			return fmt.Errorf("component %d does not say what it truncated", i)
		}
	}
	r.Discarded = finite(discarded)
	e, err := Sum(ones(len(terms)), terms)
	r.z, r.digits = e.Total, e.CancellationDigits
	return err
}

// logLinear is Z̃ = Σ_s exp(ln Z_BP(s) + Σ_r α_r ln(Z_r/Z_BP(s))) over slices.
func (r *estimate) logLinear() error {
	r.Truncated = true
	n := r.Slices
	logs, linear := make([]scaled.Number, n), make([]scaled.Number, n)
	lnZ, sum := make([]float64, n), make([]scaled.Number, n)
	seen := make([]bool, n)
	for i, v := range r.parts {
		s := sliceOf(r.of.Parts[i])
		if v.Region == nil {
			if v.Z.IsZero() { // the slice is impossible
				continue
			}
			return fmt.Errorf("component %d has no regions", i)
		}
		if !seen[s] {
			seen[s], lnZ[s], sum[s] = true, v.Region.LnBethe, scaled.One
		}
		lnZ[s] += v.Region.LnSum
		sum[s] = sum[s].Add(v.Region.Linear)
		r.Regions += v.Region.Regions
		r.PeakBytes = max(r.PeakBytes, 8*math.Exp2(v.Region.Widest))
		linear[s] = scaled.FromLog(v.Region.LnBethe)
	}
	for s := range logs {
		if seen[s] {
			logs[s] = scaled.FromLog(lnZ[s])
			linear[s] = linear[s].Mul(sum[s])
		}
	}
	if e, err := Sum(ones(len(linear)), linear); err == nil && !e.Total.IsZero() {
		r.LogZLinear = finite(e.Total.LogAbs())
	}
	e, err := Sum(ones(len(logs)), logs)
	r.z = e.Total
	return err
}

// sliceOf is the slice that regions are of.
func sliceOf(part btn.Part) int64 {
	if q, ok := part.(*btn.Regions); ok {
		return q.Slice.At
	}
	return 0
}

func ones(n int) []scaled.Number {
	a := make([]scaled.Number, n)
	for i := range a {
		a[i] = scaled.One
	}
	return a
}

// marginals returns those of the estimate's slices together, by their weights.
func (r *estimate) marginals() ([][]float64, string) {
	var m []*btn.Marginals
	for _, v := range r.parts {
		if v.Marginals != nil {
			m = append(m, v.Marginals)
		} else if !v.Z.IsZero() {
			return nil, ""
		}
	}
	p, warning, err := marginals(ones(len(m)), m)
	if err != nil {
		return nil, err.Error()
	}
	return p, warning
}
